//! The JSON file of a Piper voice, which lies beside the model as `NAME.onnx.json`.
//!
//! In: a [`VoiceExport`]. Out: JSON in the form that `piper-tts` (1.2 and later) reads. A voice of characters has phoneme
//! type `text`: Piper looks up each code point of the text. A voice of phonemes has phoneme type `espeak`: Piper runs its
//! own espeak-ng and looks up each code point of the IPA; the graph rewrites it where the voice reads built-in phonemes.

use crate::ExportError;
use crate::model::{OPSET, VoiceExport};
use crate::reading::Reading;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_text::{Language, SymbolTable};

/// What Piper calls padding, begin and end of a text.
const PAD: &str = "_";
const BEGIN: &str = "^";
const END: &str = "$";

/// The contents of `NAME.onnx.json`. `temperature` is the default scale of the noise.
pub fn config(
    export: &VoiceExport<'_>,
    name: &str,
    temperature: f32,
) -> Result<String, ExportError> {
    let document = &export.trained.document;
    let languages: Vec<Language> = export.speakers.iter().map(|one| one.language).collect();
    let language = *languages.first().ok_or(ExportError::NoSpeaker)?;
    let readings = languages.iter().map(|&language| Reading::of(document, language));
    let phoneme_type = match Reading::common(readings)? {
        Reading::Characters => "text",
        Reading::Phonemes => "espeak",
    };
    let map = export.symbol_map();
    let speakers: BTreeMap<&str, usize> = match export.speakers.len() {
        1 => BTreeMap::new(),
        _ => export.speakers.iter().enumerate().map(|(id, one)| (one.name.as_str(), id)).collect(),
    };
    let config = json!({
        "dataset": name,
        "audio": { "sample_rate": document.mel.rate.0, "quality": document.size.name() },
        "espeak": { "voice": language.voice() },
        "language": { "code": language.tag(), "family": language.tag(), "name_english": language.name() },
        "phoneme_type": phoneme_type,
        "phoneme_map": {},
        "phoneme_id_map": phoneme_ids(&map.ids),
        "num_symbols": map.len(),
        "num_speakers": export.speakers.len(),
        "speaker_id_map": speakers,
        "hop_length": document.mel.hop.0,
        "inference": { "noise_scale": temperature, "length_scale": 1.0, "noise_w": 0.0 },
        "tandem": {
            "version": env!("CARGO_PKG_VERSION"),
            "opset": OPSET,
            "metadata": export.metadata().into_iter().map(|(key, value)| (key.to_owned(), Value::String(value))).collect::<serde_json::Map<_, _>>(),
        },
    });
    Ok(serde_json::to_string_pretty(&config)? + "\n")
}

/// The ids of each code point, with Piper's names of padding, begin and end.
fn phoneme_ids(ids: &BTreeMap<char, Vec<i64>>) -> BTreeMap<String, Vec<i64>> {
    let mut all: BTreeMap<String, Vec<i64>> =
        ids.iter().map(|(symbol, ids)| (symbol.to_string(), ids.clone())).collect();
    let [begin, end] = SymbolTable::EDGE_SYMBOLS.map(|edge| all.remove(&edge.to_string()));
    all.insert(PAD.into(), vec![0]);
    all.insert(BEGIN.into(), begin.unwrap_or_default());
    all.insert(END.into(), end.unwrap_or_default());
    all
}
