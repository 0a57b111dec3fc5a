//! Synthesis with a small untrained voice: its speech is noise, but lengths, pauses and errors are real.

use super::*;
use crate::mel_scale::MelScale;
use crate::metrics::{MelFrames, level};
use crate::network::size::{ModelSize, VoiceConfig};
use crate::network::voice::Voice;
use crate::trained_voice::{KnownSpeaker, VOICE_VERSION, VoiceDocument};
use crate::vocoder::griffin_lim::GriffinLimConfig;
use burn::tensor::{Tensor, TensorData};
use tandem_audio::AudioConfig;
use tandem_audio::mel::MelConfig;
use tandem_text::{SymbolTable, TextConfig};
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
    // The condition has no effect on a new voice, since some of its weights are zero. Here it has one.
    let perturbed = |(number, weight): (usize, crate::weights::Weight)| {
        let count = weight.shape.iter().product();
        let noise: Vec<f32> = (0..count).map(|i| ((i + number) as f32 * 1.7).sin() * 0.1).collect();
        weight.values + Tensor::from_data(TensorData::new(noise, [count]), &device)
    };
    let voice = Voice::new(&config, Seed(1), &device);
    let weights =
        crate::weights::weights_of(&voice).into_iter().enumerate().map(perturbed).collect();
    let voice = crate::weights::with_weights(voice, weights);
    let speaker = |name: &str, language: &str, level| KnownSpeaker {
        name: name.into(),
        language: language.into(),
        level,
    };
    let trained = TrainedVoice {
        voice,
        document: VoiceDocument {
            version: VOICE_VERSION,
            size: ModelSize::Tiny,
            config,
            scale: MelScale { mean: -5.0, deviation: 2.0, level: None },
            mel: MelConfig::SPEECH_22K,
            audio: AudioConfig::default(),
            text: TextConfig { max_symbols: 40, ..TextConfig::default() },
            lexicon: None,
            symbols: table.version(),
            languages: vec!["en".into(), "fa".into()],
            speakers: vec![speaker("emma", "en", None), speaker("mina", "fa", None)],
        },
        speakers: vec![vec![0.5; 80 * 30], vec![-0.5; 80 * 20]],
        step: 7,
        path: "nowhere".into(),
        damaged: Vec::new(),
    };
    let quick = GriffinLimConfig { iterations: 1, ..GriffinLimConfig::SPEECH };
    Synthesizer::new(trained, &device, &VocoderChoice::GriffinLim(quick)).unwrap()
}

fn synthesize(
    synthesizer: &mut Synthesizer,
    text: &str,
    speaker: &SpeakerChoice,
) -> SynthesizedSpeech {
    synthesizer.synthesize(text, speaker, &SpeechOptions::default(), &mut |_, _| ()).unwrap()
}

fn clip(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus/wavs").join(name)
}

#[test]
fn a_text_is_synthesized_by_sentences_with_pauses() {
    let mut synthesizer = synthesizer();
    let mut calls = Vec::new();
    let speech = synthesizer
        .synthesize(
            "Hello there. سلام!",
            &SpeakerChoice::AnyKnown,
            &SpeechOptions::default(),
            &mut |done, all| {
                calls.push((done, all));
            },
        )
        .unwrap();
    assert_eq!(calls, [(0, 2), (1, 2), (2, 2)]);
    let languages: Vec<_> =
        speech.sentences.iter().map(|sentence| sentence.language.tag()).collect();
    assert_eq!(languages, ["en", "fa"]);
    let frames = |sentence: &SynthesizedSentence| {
        sentence.durations.iter().map(|&n| n as usize).sum::<usize>()
    };
    let [first, second] = &speech.sentences[..] else { panic!("two sentences") };
    let pause = second.start - frames(first);
    assert_eq!((first.start, pause), (0, (0.25 * 22050.0) as usize / 256));
    let total = second.start + frames(second);
    assert_eq!((speech.mel.len(), speech.samples.len()), (total * 80, total * 256));
    let silence = &speech.samples[frames(first) * 256..second.start * 256];
    assert!(silence.iter().all(|sample| *sample == 0.0));
    assert!(speech.mel[frames(first) * 80] < -11.0, "a pause is silence in the mel, too");
    assert!(speech.samples.iter().any(|sample| sample.abs() > 1e-4));
}

#[test]
fn each_speaker_has_a_level_and_a_reference_that_of_the_corpus() {
    let mut synthesizer = synthesizer();
    let spoken = |synthesizer: &mut Synthesizer, speaker: SpeakerChoice| {
        let speech = synthesize(synthesizer, "One two.", &speaker);
        level(MelFrames::new(&speech.mel, 80).unwrap())
    };
    let named = |name: &str| SpeakerChoice::Known(name.into());
    let emma = spoken(&mut synthesizer, named("emma"));
    let mina = spoken(&mut synthesizer, named("mina"));
    let document = &mut synthesizer.trained.document;
    document.speakers[0].level = Some((emma + 3.0) as f32);
    document.scale.level = Some((mina - 2.0) as f32);
    let reference =
        SpeakerChoice::Reference(Reference { level: None, ..synthesizer.trained.reference(1) });
    let close =
        |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-3, "{found} {wanted}");
    close(spoken(&mut synthesizer, named("emma")), emma + 3.0);
    // A voice of an older version has no level for its speakers.
    close(spoken(&mut synthesizer, named("mina")), mina - 2.0);
    close(spoken(&mut synthesizer, reference), mina - 2.0);
}

#[test]
fn the_same_seed_gives_the_same_samples_and_another_does_not() {
    let mut synthesizer = synthesizer();
    let one = synthesize(&mut synthesizer, "One two.", &SpeakerChoice::AnyKnown);
    assert!(
        synthesize(&mut synthesizer, "One two.", &SpeakerChoice::AnyKnown).samples == one.samples
    );
    let sampling = SamplingOptions { seed: Seed(5), ..SamplingOptions::default() };
    let options = SpeechOptions { sampling, ..SpeechOptions::default() };
    let other = synthesizer
        .synthesize("One two.", &SpeakerChoice::AnyKnown, &options, &mut |_, _| ())
        .unwrap();
    assert!(other.samples != one.samples);
}

#[test]
fn the_chosen_speaker_is_used() {
    let mut synthesizer = synthesizer();
    let known = |name: &str| SpeakerChoice::Known(name.into());
    let any = synthesize(&mut synthesizer, "سلام", &SpeakerChoice::AnyKnown);
    assert!(synthesize(&mut synthesizer, "سلام", &known("mina")).mel == any.mel);
    assert!(synthesize(&mut synthesizer, "سلام", &known("emma")).mel != any.mel);
    let reference = synthesizer.read_reference(&clip("en/en_jack_002.flac")).unwrap();
    assert!(
        synthesize(&mut synthesizer, "سلام", &SpeakerChoice::Reference(reference)).mel != any.mel
    );
    let error =
        synthesizer.synthesize("Hi", &known("bob"), &SpeechOptions::default(), &mut |_, _| ());
    let error = error.unwrap_err();
    assert_eq!(error.hint().unwrap(), "it has emma, mina", "{error}");
}

#[test]
fn a_reference_without_speech_is_refused() {
    let synthesizer = synthesizer();
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("voice.wav");
    for (samples, what) in [(vec![0.0; 44100], "silent"), (vec![0.5; 4000], "short")] {
        crate::vocoder::wav::write_wav(&path, &samples, tandem_units::SampleRate(22050)).unwrap();
        let error = synthesizer.read_reference(&path).unwrap_err();
        assert!(matches!(error, SynthesisError::Reference { .. }), "{what}: {error}");
        assert!(error.hint().unwrap().contains("seconds of clear speech"), "{what}");
    }
    let error = synthesizer.read_reference(&room.path().join("none.wav")).unwrap_err();
    assert!(error.to_string().contains("none.wav"), "{error}");
}

#[test]
fn invalid_texts_and_options_are_errors_with_a_hint() {
    let mut synthesizer = synthesizer();
    let mut fails = |text: &str, options: SpeechOptions| {
        let error = synthesizer
            .synthesize(text, &SpeakerChoice::AnyKnown, &options, &mut |_, _| ())
            .unwrap_err();
        assert!(error.hint().is_some(), "{error}");
        error
    };
    let usual = SpeechOptions::default();
    assert!(matches!(fails("...", usual), SynthesisError::NothingToSay));
    assert!(matches!(fails("Привет", usual), SynthesisError::Text { .. }));
    let russian = SpeechOptions { language: Some("ru".parse().unwrap()), ..usual };
    assert!(fails("Hello", russian).hint().unwrap().contains("en, fa"));
    let sampling = |sampling: SamplingOptions| SpeechOptions { sampling, ..usual };
    let speed = sampling(SamplingOptions { speed: 0.0, ..SamplingOptions::default() });
    let steps = sampling(SamplingOptions { steps: 0, ..SamplingOptions::default() });
    let heat = sampling(SamplingOptions { temperature: f32::NAN, ..SamplingOptions::default() });
    for options in [speed, steps, heat] {
        assert!(matches!(fails("Hello", options), SynthesisError::SamplingOptions { .. }));
    }
}

#[test]
fn a_slower_voice_takes_longer() {
    let mut synthesizer = synthesizer();
    let text = "A somewhat longer sentence to say";
    let usual = synthesize(&mut synthesizer, text, &SpeakerChoice::AnyKnown).samples.len() as f64;
    let sampling = SamplingOptions { speed: 0.25, ..SamplingOptions::default() };
    let options = SpeechOptions { sampling, ..SpeechOptions::default() };
    let slow =
        synthesizer.synthesize(text, &SpeakerChoice::AnyKnown, &options, &mut |_, _| ()).unwrap();
    assert!(slow.samples.len() as f64 > 1.5 * usual, "{} after {usual}", slow.samples.len());
}

#[test]
fn sentences_are_shown_as_they_are_ready_and_do_not_change() {
    let mut synthesizer = synthesizer();
    let (text, options) = ("Hello there. سلام! Yes.", SpeechOptions::default());
    let whole = synthesize(&mut synthesizer, text, &SpeakerChoice::AnyKnown);
    let mut shown: Vec<Vec<f32>> = Vec::new();
    let mut show = |speech: &SynthesizedSpeech, all: usize| {
        assert_eq!((speech.sentences.len(), all), (shown.len(), 3));
        shown.push(speech.samples.clone());
        ControlFlow::Continue(())
    };
    let any = SpeakerChoice::AnyKnown;
    synthesizer.synthesize_by_sentence(text, &any, &options, &mut show).unwrap();
    assert_eq!(shown.len(), 4);
    assert!(shown[0].is_empty());
    assert!(shown.iter().all(|samples| whole.samples.starts_with(samples)));
    assert!(shown[3] == whole.samples);
    // `Break` after the first sentence.
    let mut stop = |speech: &SynthesizedSpeech, _: usize| match speech.sentences.len() {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let part = synthesizer.synthesize_by_sentence(text, &any, &options, &mut stop).unwrap();
    assert_eq!(part.sentences.len(), 1);
}

#[test]
fn a_language_that_the_model_lacks_is_refused_before_the_first_sentence() {
    let mut synthesizer = synthesizer();
    synthesizer.trained.document.languages.pop();
    let mut never = |_: &SynthesizedSpeech, _: usize| -> ControlFlow<()> { panic!("shown") };
    let options = SpeechOptions::default();
    let any = SpeakerChoice::AnyKnown;
    let error = synthesizer
        .synthesize_by_sentence("Hello there. سلام!", &any, &options, &mut never)
        .unwrap_err();
    assert!(matches!(error, SynthesisError::Language { .. }), "{error}");
}
