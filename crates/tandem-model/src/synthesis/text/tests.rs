//! A small voice that has learned nothing: what it says is noise, how it is told is not.

use super::*;
use crate::mel_scale::MelScale;
use crate::network::size::{ModelSize, VoiceConfig};
use crate::network::voice::Voice;
use crate::trained_voice::{KnownSpeaker, VOICE_VERSION, VoiceDocument};
use burn::tensor::{Tensor, TensorData};
use tandem_data::audio::mel::MelConfig;
use tandem_data::text::{SymbolTable, TextConfig};
use tandem_units::{Hint, Seed};

fn synthesizer() -> Synthesizer {
    let device = Device::flex();
    let table = SymbolTable::standard();
    let config = VoiceConfig {
        text_width: 16,
        text_blocks: 1,
        decoder_width: 16,
        decoder_blocks: 1,
        head_width: 8,
        voice_width: 8,
        ..VoiceConfig::of(ModelSize::Tiny, table.len(), 2, 80)
    };
    // A fresh voice does not listen to its condition yet; this one does.
    let shaken = |(number, weight): (usize, crate::weights::Weight)| {
        let count = weight.shape.iter().product();
        let noise: Vec<f32> = (0..count).map(|i| ((i + number) as f32 * 1.7).sin() * 0.1).collect();
        weight.values + Tensor::from_data(TensorData::new(noise, [count]), &device)
    };
    let voice = Voice::new(&config, Seed(1), &device);
    let weights = crate::weights::weights_of(&voice).into_iter().enumerate().map(shaken).collect();
    let voice = crate::weights::with_weights(voice, weights);
    let speaker =
        |name: &str, language: &str| KnownSpeaker { name: name.into(), language: language.into() };
    let trained = TrainedVoice {
        voice,
        document: VoiceDocument {
            version: VOICE_VERSION,
            size: ModelSize::Tiny,
            config,
            scale: MelScale { mean: -5.0, deviation: 2.0 },
            mel: MelConfig::SPEECH_22K,
            text: TextConfig { max_symbols: 40, ..TextConfig::default() },
            lexicon: None,
            symbols: table.version(),
            languages: vec!["en".into(), "fa".into()],
            speakers: vec![speaker("emma", "en"), speaker("mina", "fa")],
        },
        speakers: vec![vec![0.5; 80 * 30], vec![-0.5; 80 * 20]],
        step: 7,
        path: "nowhere".into(),
    };
    let quick = GriffinLimConfig { iterations: 1, ..GriffinLimConfig::SPEECH };
    Synthesizer::new(trained, &device, quick).unwrap()
}

fn tell(synthesizer: &mut Synthesizer, text: &str, whose: &Whose) -> Narration {
    synthesizer.tell(text, whose, &Telling::default(), &mut |_, _| ()).unwrap()
}

fn clip(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus/wavs").join(name)
}

#[test]
fn a_text_is_told_sentence_by_sentence_with_pauses() {
    let mut synthesizer = synthesizer();
    let mut heard = Vec::new();
    let told = synthesizer
        .tell("Hello there. سلام!", &Whose::AnyKnown, &Telling::default(), &mut |done, all| {
            heard.push((done, all));
        })
        .unwrap();
    assert_eq!(heard, [(0, 2), (1, 2), (2, 2)]);
    let languages: Vec<_> = told.sentences.iter().map(|told| told.language.tag()).collect();
    assert_eq!(languages, ["en", "fa"]);
    let frames = |told: &Told| told.durations.iter().map(|&n| n as usize).sum::<usize>();
    let [first, second] = &told.sentences[..] else { panic!("two sentences") };
    let pause = second.start - frames(first);
    assert_eq!((first.start, pause), (0, (0.25 * 22050.0) as usize / 256));
    let total = second.start + frames(second);
    assert_eq!((told.mel.len(), told.samples.len()), (total * 80, total * 256));
    let silence = &told.samples[frames(first) * 256..second.start * 256];
    assert!(silence.iter().all(|sample| *sample == 0.0));
    assert!(told.mel[frames(first) * 80] < -11.0, "a pause is silence in the mel, too");
    assert!(told.samples.iter().any(|sample| sample.abs() > 1e-4));
}

#[test]
fn the_same_seed_tells_the_same_and_another_does_not() {
    let mut synthesizer = synthesizer();
    let one = tell(&mut synthesizer, "One two.", &Whose::AnyKnown);
    assert!(tell(&mut synthesizer, "One two.", &Whose::AnyKnown).samples == one.samples);
    let sampling = SamplingOptions { seed: Seed(5), ..SamplingOptions::default() };
    let telling = Telling { sampling, ..Telling::default() };
    let other = synthesizer.tell("One two.", &Whose::AnyKnown, &telling, &mut |_, _| ()).unwrap();
    assert!(other.samples != one.samples);
}

#[test]
fn the_voice_that_is_asked_for_is_used() {
    let mut synthesizer = synthesizer();
    let known = |name: &str| Whose::Known(name.into());
    let any = tell(&mut synthesizer, "سلام", &Whose::AnyKnown);
    assert!(tell(&mut synthesizer, "سلام", &known("mina")).mel == any.mel);
    assert!(tell(&mut synthesizer, "سلام", &known("emma")).mel != any.mel);
    let reference = synthesizer.hear(&clip("en/en_jack_002.flac")).unwrap();
    assert!(tell(&mut synthesizer, "سلام", &Whose::Reference(reference)).mel != any.mel);
    let error = synthesizer.tell("Hi", &known("bob"), &Telling::default(), &mut |_, _| ());
    let error = error.unwrap_err();
    assert_eq!(error.hint().unwrap(), "it keeps emma, mina", "{error}");
}

#[test]
fn a_reference_that_is_no_voice_is_refused() {
    let synthesizer = synthesizer();
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("voice.wav");
    for (samples, what) in [(vec![0.0; 44100], "silent"), (vec![0.5; 4000], "short")] {
        crate::vocoder::wav::write_wav(&path, &samples, tandem_units::SampleRate(22050)).unwrap();
        let error = synthesizer.hear(&path).unwrap_err();
        assert!(matches!(error, SynthesisError::Reference { .. }), "{what}: {error}");
        assert!(error.hint().unwrap().contains("seconds of clear speech"), "{what}");
    }
    let error = synthesizer.hear(&room.path().join("none.wav")).unwrap_err();
    assert!(error.to_string().contains("none.wav"), "{error}");
}

#[test]
fn what_cannot_be_told_is_an_error_with_a_way_out() {
    let mut synthesizer = synthesizer();
    let mut fails = |text: &str, telling: Telling| {
        let error = synthesizer.tell(text, &Whose::AnyKnown, &telling, &mut |_, _| ()).unwrap_err();
        assert!(error.hint().is_some(), "{error}");
        error
    };
    let usual = Telling::default();
    assert!(matches!(fails("...", usual), SynthesisError::NothingToSay));
    assert!(matches!(fails("Привет", usual), SynthesisError::Text { .. }));
    let russian = Telling { language: Some("ru".parse().unwrap()), ..usual };
    assert!(fails("Hello", russian).hint().unwrap().contains("en, fa"));
    let sampling = |sampling: SamplingOptions| Telling { sampling, ..usual };
    let speed = sampling(SamplingOptions { speed: 0.0, ..SamplingOptions::default() });
    let steps = sampling(SamplingOptions { steps: 0, ..SamplingOptions::default() });
    let heat = sampling(SamplingOptions { temperature: f32::NAN, ..SamplingOptions::default() });
    for telling in [speed, steps, heat] {
        assert!(matches!(fails("Hello", telling), SynthesisError::SamplingOptions { .. }));
    }
}

#[test]
fn a_slower_voice_takes_longer() {
    let mut synthesizer = synthesizer();
    let text = "A somewhat longer sentence to say";
    let usual = tell(&mut synthesizer, text, &Whose::AnyKnown).samples.len() as f64;
    let sampling = SamplingOptions { speed: 0.25, ..SamplingOptions::default() };
    let telling = Telling { sampling, ..Telling::default() };
    let slow = synthesizer.tell(text, &Whose::AnyKnown, &telling, &mut |_, _| ()).unwrap();
    assert!(slow.samples.len() as f64 > 1.5 * usual, "{} after {usual}", slow.samples.len());
}
