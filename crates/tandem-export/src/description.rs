//! The JSON file that describes an ONNX voice to other programs, beside the model as `NAME.json`.
//!
//! In: a [`VoiceExport`]. Out: JSON: sample rate, speakers, and the ids of every symbol.

use crate::ExportError;
use crate::model::{OPSET, VoiceExport};
use crate::reading::Reading;
use serde::Serialize;
use std::collections::BTreeMap;
use tandem_text::{SymbolId, SymbolTable};

#[derive(Serialize)]
struct Description {
    /// Of this file.
    version: u32,
    opset: i64,
    sample_rate: u32,
    hop_length: usize,
    bands: usize,
    /// The ids of each symbol; a text is `begin`, its symbols, `end`.
    ids: BTreeMap<String, i64>,
    begin: i64,
    end: i64,
    speakers: Vec<Speaker>,
    temperature: f32,
    flow_steps: usize,
    vocoder: String,
    training_steps: u64,
}

#[derive(Serialize)]
struct Speaker {
    /// The value of the input `sid`.
    id: usize,
    name: String,
    language: &'static str,
    /// Whether its symbols are characters or phonemes.
    symbols: Reading,
}

/// The contents of `NAME.json`.
pub fn description(export: &VoiceExport<'_>, temperature: f32) -> Result<String, ExportError> {
    let document = &export.trained.document;
    let table = SymbolTable::standard();
    let [begin, end] =
        SymbolTable::EDGE_SYMBOLS.map(|edge| table.id(edge).map_or(0, |id| i64::from(id.0)));
    let id_of = |number: usize| {
        let symbol = table.symbol(SymbolId(number as u16))?;
        let edge = SymbolTable::EDGE_SYMBOLS.contains(&symbol);
        (!edge).then(|| (symbol.to_string(), number as i64))
    };
    let speaker = |(id, speaker): (usize, &crate::ExportedSpeaker)| Speaker {
        id,
        name: speaker.name.clone(),
        language: speaker.language.tag(),
        symbols: Reading::of(document, speaker.language),
    };
    let description = Description {
        version: 1,
        opset: OPSET,
        sample_rate: document.mel.rate.0,
        hop_length: document.mel.hop.0,
        bands: document.mel.bands,
        ids: (1..table.len()).filter_map(id_of).collect(),
        begin,
        end,
        speakers: export.speakers.iter().enumerate().map(speaker).collect(),
        temperature,
        flow_steps: export.steps,
        vocoder: export.vocoder.describe(),
        training_steps: export.trained.step,
    };
    Ok(serde_json::to_string_pretty(&description)? + "\n")
}
