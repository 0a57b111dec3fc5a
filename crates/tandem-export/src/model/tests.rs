//! The graphs of a small untrained voice: complete, in order, with the names that callers use. That they compute the
//! same as the voice is tested with ONNX Runtime by `xtask/tests/export_tests.sh`.

use super::*;
use crate::description::description;
use crate::messages::GraphProto;
use crate::piper;
use serde_json::Value as Json;
use std::collections::HashSet;
use tandem_audio::AudioConfig;
use tandem_audio::mel::MelConfig;
use tandem_model::mel_scale::MelScale;
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_model::network::voice::Voice;
use tandem_model::trained_voice::{VOICE_VERSION, VoiceDocument};
use tandem_model::vocoder::neural::config::{VocoderConfig, VocoderSize};
use tandem_model::vocoder::neural::network::VocoderNetwork;
use tandem_model::vocoder::neural::trained::{VOCODER_VERSION, VocoderDocument};
use tandem_text::{Pronunciation, TextConfig};
use tandem_units::Seed;

fn trained(pronunciation: Pronunciation) -> TrainedVoice {
    let table = SymbolTable::standard();
    let config = VoiceConfig::of(ModelSize::Micro, table.len(), 2, 80);
    TrainedVoice {
        voice: Voice::new(&config, Seed(1), &Device::flex()),
        document: VoiceDocument {
            version: VOICE_VERSION,
            size: ModelSize::Micro,
            config,
            scale: MelScale { mean: -5.0, deviation: 2.0, level: Some(-3.0) },
            mel: MelConfig::SPEECH_22K,
            audio: AudioConfig::default(),
            text: TextConfig { pronunciation, ..TextConfig::default() },
            lexicon: None,
            symbols: table.version(),
            languages: vec!["en".into(), "fa".into()],
            speakers: Vec::new(),
        },
        speakers: Vec::new(),
        step: 7,
        path: "nowhere".into(),
        damaged: Vec::new(),
    }
}

fn neural() -> ExportedVocoder {
    let (mel, size) = (MelConfig::SPEECH_22K, VocoderSize::Micro);
    let config = VocoderConfig::of(size, &mel).unwrap();
    let network = VocoderNetwork::new(&config, Seed(2), &Device::flex());
    let scale = MelScale { mean: -5.0, deviation: 2.5, level: None };
    let document = VocoderDocument { version: VOCODER_VERSION, size, config, scale, mel };
    ExportedVocoder::Neural(Box::new(NeuralVocoder::new(document, network).unwrap()))
}

fn griffin_lim() -> ExportedVocoder {
    ExportedVocoder::GriffinLim(GriffinLimConfig { iterations: 2, ..GriffinLimConfig::SPEECH })
}

fn speaker(name: &str, language: Language, language_number: i32) -> ExportedSpeaker {
    let reference = Reference { mel: vec![0.5; 80 * 30], level: None };
    ExportedSpeaker { name: name.into(), language, language_number, reference }
}

fn two_speakers() -> Vec<ExportedSpeaker> {
    vec![speaker("emma", Language::English, 0), speaker("mina", Language::Persian, 1)]
}

fn with_export<T>(
    speakers: Vec<ExportedSpeaker>,
    vocoder: ExportedVocoder,
    steps: usize,
    use_it: impl FnOnce(&VoiceExport<'_>) -> T,
) -> T {
    let trained = trained(Pronunciation::Characters);
    let device = Device::flex();
    let (noise, notation) = (NoiseSource::Input, InputNotation::Voice);
    use_it(&VoiceExport {
        trained: &trained,
        device: &device,
        speakers,
        vocoder,
        steps,
        noise,
        notation,
    })
}

fn decoded(speakers: Vec<ExportedSpeaker>, vocoder: ExportedVocoder) -> ModelProto {
    let bytes = with_export(speakers, vocoder, 3, |export| export.model().unwrap());
    ModelProto::decode(&bytes[..]).unwrap()
}

/// Every input of a node is an input of the graph, a constant, or the output of an earlier node; no name is used twice.
fn check(graph: &GraphProto, around: &HashSet<String>) {
    let mut known = around.clone();
    let names = |all: &[crate::messages::ValueInfoProto]| -> Vec<String> {
        all.iter().filter_map(|value| value.name.clone()).collect()
    };
    let inputs = names(&graph.input);
    known.extend(inputs.iter().cloned());
    for tensor in &graph.initializer {
        let name = tensor.name.clone().unwrap();
        let size = match tensor.data_type {
            Some(element::FLOAT) => 4,
            Some(element::BOOL) => 1,
            _ => 8,
        };
        let values: i64 = tensor.dims.iter().product();
        assert_eq!(tensor.raw_data.as_ref().map(Vec::len), Some(size * values as usize), "{name}");
        assert!(known.insert(name.clone()) || inputs.contains(&name), "{name} twice");
    }
    for node in &graph.node {
        let name = node.name.as_deref().unwrap_or_default();
        for input in &node.input {
            assert!(known.contains(input), "{name} uses {input} before it exists");
        }
        for body in node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()) {
            check(body, &known);
        }
        for output in &node.output {
            assert!(known.insert(output.clone()), "{output} twice");
        }
    }
    for output in names(&graph.output) {
        assert!(known.contains(&output), "no node writes {output}");
    }
}

fn names(graph: &GraphProto) -> (Vec<&str>, Vec<&str>) {
    (
        graph.input.iter().filter_map(|value| value.name.as_deref()).collect(),
        graph.output.iter().filter_map(|value| value.name.as_deref()).collect(),
    )
}

#[test]
fn the_graphs_are_complete_and_in_order() {
    for vocoder in [neural(), griffin_lim()] {
        let model = decoded(vec![speaker("emma", Language::English, 0)], vocoder);
        assert_eq!(model.opset_import[0].version, Some(OPSET));
        let graph = model.graph.unwrap();
        check(&graph, &HashSet::new());
        let (inputs, outputs) = names(&graph);
        assert_eq!(inputs, ["input", "input_lengths", "scales", "noise"]);
        assert_eq!(outputs, ["output", "durations", "mel"]);
    }
}

#[test]
fn several_speakers_are_chosen_by_an_input() {
    let graph = decoded(two_speakers(), griffin_lim()).graph.unwrap();
    check(&graph, &HashSet::new());
    assert_eq!(names(&graph).0, ["input", "input_lengths", "scales", "sid", "noise"]);
}

#[test]
fn the_noise_has_a_default_so_that_callers_may_leave_it_out() {
    let graph = decoded(two_speakers(), griffin_lim()).graph.unwrap();
    let default = graph.initializer.iter().find(|tensor| tensor.name.as_deref() == Some("noise"));
    assert_eq!(default.map(|tensor| tensor.dims.clone()), Some(vec![0, 80]));
}

#[test]
fn weights_are_stored_once_for_all_steps() {
    let size = |steps| {
        with_export(two_speakers(), griffin_lim(), steps, |export| export.model().unwrap().len())
    };
    let (few, many) = (size(2), size(12));
    assert!(many < few + few / 2, "{few} bytes with 2 steps, {many} with 12");
}

#[test]
fn the_metadata_says_what_is_in_the_graph() {
    let model = decoded(two_speakers(), griffin_lim());
    let value = |key: &str| {
        let entry = model.metadata_props.iter().find(|entry| entry.key.as_deref() == Some(key));
        entry.and_then(|entry| entry.value.clone()).unwrap_or_default()
    };
    assert_eq!(value("vocoder"), "Griffin-Lim, 2 iterations");
    assert_eq!(value("speakers"), "emma,mina");
    assert_eq!(value("languages"), "en,fa");
    assert_eq!(value("sample_rate"), "22050");
    assert_eq!(value("flow_steps"), "3");
}

#[test]
fn a_graph_needs_a_speaker_and_a_few_steps() {
    let error = with_export(Vec::new(), griffin_lim(), 8, |export| export.model().unwrap_err());
    assert!(matches!(error, ExportError::NoSpeaker), "{error}");
    for steps in [0, 65] {
        let error = with_export(two_speakers(), griffin_lim(), steps, |e| e.model().unwrap_err());
        assert!(matches!(error, ExportError::Steps { .. }), "{error}");
    }
}

#[test]
fn the_file_of_piper_has_every_key_that_it_reads() {
    let text = with_export(two_speakers(), griffin_lim(), 8, |export| {
        piper::config(export, "anna", 0.3).unwrap()
    });
    let config: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(config["audio"]["sample_rate"], 22050);
    assert_eq!(config["phoneme_type"], "text");
    assert_eq!(config["num_speakers"], 2);
    assert_eq!(config["speaker_id_map"]["mina"], 1);
    assert_eq!(config["espeak"]["voice"], Language::English.voice());
    assert_eq!(config["hop_length"], 256);
    let ids = &config["phoneme_id_map"];
    assert_eq!(ids["_"], serde_json::json!([0]));
    assert_eq!(ids["^"], serde_json::json!([288]));
    assert_eq!(ids["$"], serde_json::json!([289]));
    assert_eq!(ids["A"], ids["a"]);
    assert!(config["num_symbols"].as_u64().unwrap() > 290);
}

/// The graph and the configuration of a Piper voice.
fn piper_voice(pronunciation: Pronunciation, language: Language) -> (GraphProto, Json) {
    let (trained, device) = (trained(pronunciation), Device::flex());
    let export = VoiceExport {
        trained: &trained,
        device: &device,
        speakers: vec![speaker("emma", language, 0)],
        vocoder: griffin_lim(),
        steps: 8,
        noise: NoiseSource::Graph,
        notation: InputNotation::Espeak,
    };
    let config: Json = serde_json::from_str(&piper::config(&export, "anna", 0.3).unwrap()).unwrap();
    let graph = ModelProto::decode(&export.model().unwrap()[..]).unwrap().graph.unwrap();
    check(&graph, &HashSet::new());
    (graph, config)
}

#[test]
fn a_voice_of_phonemes_asks_piper_for_phonemes() {
    let (graph, config) = piper_voice(Pronunciation::Espeak, Language::English);
    assert_eq!(config["phoneme_type"], "espeak");
    assert_eq!(config["num_speakers"], 1);
    assert_eq!(config["speaker_id_map"], serde_json::json!({}));
    // Symbols are used as they are: a capital letter is no phoneme.
    assert_eq!(config["phoneme_id_map"]["A"], Json::Null);
    assert!(config["phoneme_id_map"]["ˈ"].is_array());
    assert_eq!(names(&graph).0, ["input", "input_lengths", "scales"]);
}

#[test]
fn the_symbols_of_espeak_are_rewritten_where_the_voice_has_built_in_phonemes() {
    let nodes = |pronunciation, language| piper_voice(pronunciation, language).0.node.len();
    for language in [Language::English, Language::Persian] {
        let as_they_are = nodes(Pronunciation::Espeak, language);
        assert!(nodes(Pronunciation::BuiltIn, language) > as_they_are + 20, "{language:?}");
    }
    // Voices of German characters or of espeak-ng's own phonemes have nothing to rewrite.
    let german = nodes(Pronunciation::Espeak, Language::German);
    assert_eq!(german, nodes(Pronunciation::Espeak, Language::English));
    let ids = piper_voice(Pronunciation::BuiltIn, Language::English).1["phoneme_id_map"].clone();
    assert!(ids["ɾ"].is_array() && ids["ː"].is_array() && ids["\u{329}"].is_array());
    assert_eq!(ids["1"], serde_json::json!([0]));
}

#[test]
fn the_description_lists_symbols_and_speakers() {
    let text =
        with_export(two_speakers(), griffin_lim(), 8, |export| description(export, 0.3).unwrap());
    let found: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(found["ids"]["a"], 17);
    assert_eq!((&found["begin"], &found["end"]), (&288.into(), &289.into()));
    assert_eq!(found["speakers"][1]["language"], "fa");
    assert_eq!(found["speakers"][1]["symbols"], "characters");
}
