//! Evaluates a small untrained voice on the demo corpus.

use super::*;
use std::path::Path;
use tandem_audio::AudioConfig;
use tandem_audio::mel::MelConfig;
use tandem_data::corpus::CorpusConfig;
use tandem_model::Device;
use tandem_model::mel_scale::MelScale;
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_model::network::voice::Voice;
use tandem_model::trained_voice::{TrainedVoice, VOICE_VERSION, VoiceDocument};
use tandem_model::vocoder::VocoderChoice;
use tandem_model::vocoder::griffin_lim::GriffinLimConfig;
use tandem_text::{SymbolTable, TextConfig};
use tandem_units::{Hint, Seed};

fn synthesizer(languages: &[&str]) -> Synthesizer {
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
    let trained = TrainedVoice {
        voice: Voice::new(&config, Seed(1), &device),
        document: VoiceDocument {
            version: VOICE_VERSION,
            size: ModelSize::Tiny,
            config,
            scale: MelScale { mean: -5.0, deviation: 2.5, level: None },
            mel: MelConfig::SPEECH_22K,
            audio: AudioConfig::default(),
            text: TextConfig::default(),
            lexicon: None,
            symbols: table.version(),
            languages: languages.iter().map(|tag| tag.to_string()).collect(),
            speakers: Vec::new(),
        },
        speakers: Vec::new(),
        step: 3,
        path: "nowhere".into(),
        damaged: Vec::new(),
    };
    let quick = GriffinLimConfig { iterations: 1, ..GriffinLimConfig::SPEECH };
    Synthesizer::new(trained, &device, &VocoderChoice::GriffinLim(quick)).unwrap()
}

fn demo() -> Corpus {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus");
    Corpus::read(&root, &CorpusConfig::default()).unwrap()
}

fn run(synthesizer: &mut Synthesizer, limit: usize) -> Result<Evaluation, EvaluateError> {
    let sampling = SamplingOptions { steps: 1, ..SamplingOptions::default() };
    let options = EvaluateOptions { limit: Some(limit), sampling, ..EvaluateOptions::default() };
    evaluate(synthesizer, &demo(), &options, &mut |_, _| (), &CancelToken::new())
}

#[test]
fn an_untrained_voice_is_scored() {
    let found = run(&mut synthesizer(&["en", "fa"]), 4).unwrap();
    assert_eq!((found.all.utterances, found.step, found.skipped.len()), (4, 3, 0));
    assert_eq!(found.languages.keys().collect::<Vec<_>>(), ["en", "fa"]);
    let counts: usize = found.speakers.values().map(|tally| tally.utterances).sum();
    assert_eq!(counts, 4);
    // NumPy over all training rows and all held-out ones gives 12.37 dB.
    assert!((11.0..14.0).contains(&found.all.baseline), "{}", found.all.baseline);
    assert!(found.all.distortion > 5.0, "{}", found.all.distortion);
    for row in &found.utterances {
        let health = row.scores.alignment.unwrap();
        assert_eq!(health.monotonic, 1.0, "the path visits all symbols");
        assert!((0.0..=1.0).contains(&health.entropy.unwrap()));
    }
    assert!(found.spoken.0 > 0.1);
    let json = serde_json::to_value(&found).unwrap();
    assert!(json["utterances"][0]["distortion"].is_number(), "{json}");
}

#[test]
fn rows_in_an_unknown_language_are_skipped_and_a_corpus_of_them_is_an_error() {
    let found = run(&mut synthesizer(&["en"]), 4).unwrap();
    assert_eq!((found.all.utterances, found.skipped.len()), (2, 2));
    assert!(found.skipped[0].why.contains("does not speak `fa`"), "{:?}", found.skipped);
    let error = run(&mut synthesizer(&["de"]), 2).unwrap_err();
    assert!(matches!(error, EvaluateError::NothingScored { rows: 2, .. }), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn a_cancelled_evaluation_is_an_error() {
    let cancel = CancelToken::new();
    cancel.cancel();
    let mut synthesizer = synthesizer(&["en", "fa"]);
    let options = EvaluateOptions::default();
    let stopped = evaluate(&mut synthesizer, &demo(), &options, &mut |_, _| (), &cancel);
    assert!(matches!(stopped, Err(EvaluateError::Stopped(_))));
}

#[test]
fn advice_follows_from_the_means() {
    let scores = Scores {
        distortion: 13.0,
        baseline: 12.0,
        duration: -0.3,
        alignment: None,
        speaker: None,
        pitch: Some(-5.0),
        change_over_time: 1.0,
        change_over_bands: 1.0,
        level: 0.0,
    };
    let facts = |scores: Scores| {
        let found = findings(&Tally::of(&[scores]).unwrap());
        found.into_iter().map(|finding| finding.fact).collect::<Vec<_>>()
    };
    let found = facts(scores);
    assert!(found[0].contains("nothing was learned"), "{found:?}");
    assert!(found[1].starts_with("speech is 30 % shorter"), "{found:?}");
    assert!(found[2].contains("5.0 semitones"), "{found:?}");
    let fine = Scores { distortion: 6.0, duration: 0.1, pitch: Some(1.0), ..scores };
    assert_eq!(facts(fine), [""; 0]);
}

#[test]
fn a_limit_is_spread_over_the_whole_list() {
    let all = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let all: Vec<&i32> = all.iter().collect();
    assert_eq!(spread(&all, 4), [&0, &2, &5, &7]);
    assert_eq!(spread(&all, 99).len(), 10);
    assert!(spread(&all, 0).is_empty());
}
