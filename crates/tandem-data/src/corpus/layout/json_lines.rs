//! JSON Lines: one object for each row. NeMo's `audio_filepath`, lhotse's cuts, ESPnet's `wav`, and `file_name` of a
//! Hugging Face audio folder.
//!
//! In: a manifest. Out: one row for each line; keys that are not known are ignored. A row with a start or an offset is a
//! part of a longer recording. Paths are relative to the manifest.

use super::{Found, Layout, Rows, Source};
use crate::DataError;
use crate::corpus::Part;
use crate::corpus::lines::{LONGEST, Line, Lines};
use crate::corpus::rejected::{Fault, RejectReason};
use crate::corpus::rows::{Entry, OwnedRow, RowReader, not_utf8, one_line};
use serde_json::Value;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tandem_disk::{ReadFile, retry};

const RECORDING: [&str; 10] = [
    "audio_filepath",
    "audio_file",
    "audio_path",
    "audio",
    "wav",
    "wav_path",
    "file_name",
    "filename",
    "path",
    "file",
];
const ID: [&str; 5] = ["id", "utt_id", "utt", "key", "utterance_id"];
const TEXT: [&str; 5] = ["text", "transcript", "transcription", "sentence", "raw_text"];
const NORMALISED: [&str; 3] = ["normalized_text", "text_normalized", "normalised_text"];
const SPEAKER: [&str; 5] = ["speaker", "speaker_id", "spk_id", "spk", "client_id"];
const LANGUAGE: [&str; 3] = ["lang", "language", "locale"];
/// Times of a cut that differ by less are equal: the length of a recording is rounded.
const ROUNDING: f64 = 0.02;

/// One manifest, or one for training and one that is held out, by their names.
pub(super) fn find(folder: &Path) -> Option<Found> {
    let mut all: Vec<(String, Layout)> = super::names_in(folder)
        .into_iter()
        .filter(|name| is_manifest_name(name))
        .filter_map(|name| layout_of(&folder.join(&name)).map(|layout| (name, layout)))
        .collect();
    all.sort();
    let source = |name: &str, rows| Source { file: name.into(), rows };
    if let [(name, layout)] = &all[..] {
        return Some(Found::new(*layout, vec![source(name, Rows::Mixed)]));
    }
    let named = |words: &[&str]| {
        let fits = |name: &str| words.iter().any(|word| name.to_lowercase().contains(word));
        let mut fitting = all.iter().filter(|(name, _)| fits(name));
        let first = fitting.next();
        first.filter(|_| fitting.next().is_none())
    };
    let (train, layout) = named(&["train"])?;
    let sources = match named(&["dev", "val", "eval"]) {
        Some((eval, _)) => vec![source(train, Rows::Train), source(eval, Rows::Eval)],
        None => vec![source(train, Rows::Mixed)],
    };
    Some(Found::new(*layout, sources))
}

pub(super) fn is_manifest_name(name: &str) -> bool {
    [".jsonl", ".ndjson", ".json"].iter().any(|end| name.to_lowercase().ends_with(end))
}

/// The layout of a file whose first line is an object with a recording.
pub(super) fn layout_of(file: &Path) -> Option<Layout> {
    let first: Value = serde_json::from_str(&super::first_line(file)?).ok()?;
    match () {
        () if first.get("supervisions").is_some() => Some(Layout::Lhotse),
        () if first.get("file_name").is_some() => Some(Layout::HuggingFace),
        () => RECORDING.iter().any(|key| first.get(key).is_some()).then_some(Layout::Nemo),
    }
}

pub(in crate::corpus) struct JsonRows {
    path: PathBuf,
    /// Folder of the manifest in the corpus, with `/` at its end if it is not the root.
    folder: String,
    lines: Lines<BufReader<File>>,
}

impl JsonRows {
    pub fn open(root: &Path, file: &Path) -> Result<JsonRows, DataError> {
        let path = root.join(file);
        let failed = |source| DataError::Read { path: path.clone(), source };
        let opened = retry(|| ReadFile::open(&path)).map_err(failed)?.into_inner();
        let folder = super::folder_of(file);
        Ok(JsonRows { lines: Lines::new(BufReader::new(opened)), folder, path })
    }
}

impl RowReader for JsonRows {
    fn next_entry(&mut self) -> Result<Option<Entry>, DataError> {
        let failed = |source| DataError::Read { path: self.path.clone(), source };
        while let Some(line) = self.lines.next().map_err(failed)? {
            if line.bytes.trim_ascii().is_empty() {
                continue;
            }
            let row = parse(&line, &self.folder);
            let id = row
                .as_ref()
                .map(|row| if row.id.is_empty() { row.recording.clone() } else { row.id.clone() });
            return Ok(Some(Entry { line: line.number, id: id.unwrap_or_default(), row }));
        }
        Ok(None)
    }
}

fn parse(line: &Line<'_>, folder: &str) -> Result<OwnedRow, Fault> {
    if line.overlong {
        let message = format!("the line is longer than {LONGEST} bytes");
        return Err(Fault::new(RejectReason::LineTooLong, message, "look for a missing line end"));
    }
    let text = std::str::from_utf8(line.bytes).map_err(|_| not_utf8(line.bytes))?;
    let object: Value = serde_json::from_str(text).map_err(|error| {
        let message = format!("not a JSON object: {error}");
        Fault::new(RejectReason::WrongColumns, message, "write one JSON object on each line")
    })?;
    let row = if object.get("supervisions").is_some() { cut(&object) } else { plain(&object) }?;
    if row.recording.is_empty() {
        let message = format!("no key names a recording (such as `{}`)", RECORDING[0]);
        let fix = "write the path of the recording, relative to the manifest";
        return Err(Fault::new(RejectReason::EmptyId, message, fix));
    }
    let relative = !Path::new(&row.recording).is_absolute();
    let recording = if relative { format!("{folder}{}", row.recording) } else { row.recording };
    Ok(OwnedRow { recording, ..row })
}

fn plain(object: &Value) -> Result<OwnedRow, Fault> {
    let part = match seconds(object, "offset") {
        Some(start) => Some(Part::new(start, seconds(object, "duration")).ok_or_else(bad_times)?),
        None => None,
    };
    Ok(OwnedRow {
        id: field(object, &ID),
        recording: field(object, &RECORDING),
        text: one_line(&field(object, &TEXT)),
        normalised: one_line(&field(object, &NORMALISED)),
        speaker: field(object, &SPEAKER),
        language: field(object, &LANGUAGE),
        phonemes: String::new(),
        part,
    })
}

/// A cut of lhotse: one recording, or a part of it, with one supervision.
fn cut(object: &Value) -> Result<OwnedRow, Fault> {
    let several = |what: &str| {
        let message = format!("the cut has not exactly one {what}");
        let fix =
            "cut it first (`lhotse cut trim-to-supervisions`, `cuts.save_audios` for its channels)";
        Fault::new(RejectReason::WrongColumns, message, fix)
    };
    let one = |list: Option<&Value>| match list.and_then(Value::as_array).map(Vec::as_slice) {
        Some([one]) => Some(one.clone()),
        _ => None,
    };
    let said = one(object.get("supervisions")).ok_or_else(|| several("supervision"))?;
    let recording = object.get("recording").ok_or_else(|| several("recording"))?;
    let source = one(recording.get("sources")).ok_or_else(|| several("source"))?;
    if source.get("type").and_then(Value::as_str) != Some("file") {
        let message =
            "the recording is not a file (its source is a command or an address)".to_owned();
        let fix = "write the recordings to files (`cuts.save_audios` of lhotse)";
        return Err(Fault::new(RejectReason::MissingAudio, message, fix));
    }
    let start = seconds(object, "start").unwrap_or(0.0);
    let length = seconds(object, "duration");
    let whole = match (length, seconds(recording, "duration")) {
        (Some(length), Some(all)) => start == 0.0 && (all - length).abs() < ROUNDING,
        _ => start == 0.0,
    };
    let part = match whole {
        true => None,
        false => Some(Part::new(start, length).ok_or_else(bad_times)?),
    };
    Ok(OwnedRow {
        id: field(object, &ID),
        recording: field(&source, &["source"]),
        text: one_line(&field(&said, &TEXT)),
        speaker: field(&said, &SPEAKER),
        language: field(&said, &LANGUAGE),
        part,
        ..OwnedRow::default()
    })
}

fn bad_times() -> Fault {
    let message = "a start or a length is negative, or not a number".to_owned();
    Fault::new(RejectReason::WrongColumns, message, "write seconds, 0 or more")
}

fn seconds(object: &Value, key: &str) -> Option<f64> {
    object.get(key)?.as_f64()
}

/// The first of these keys that has a value; a number is written as text.
fn field(object: &Value, keys: &[&str]) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        // `{"audio": {"path": ..}}` of Hugging Face's library.
        Value::Object(inside) => inside.get("path")?.as_str().map(str::to_owned),
        _ => None,
    };
    let mut values = keys.iter().filter_map(|key| object.get(key).and_then(text));
    values.find(|text| !text.is_empty()).unwrap_or_default()
}

impl Part {
    /// None for times that no recording has.
    fn new(start: f64, length: Option<f64>) -> Option<Part> {
        let start = Duration::try_from_secs_f64(start).ok()?;
        let length = length.map(Duration::try_from_secs_f64).transpose().ok()?;
        Some(Part { start, length })
    }
}
