//! Hugging Face's audio folder: `metadata.csv` with commas and quotes, or `metadata.jsonl`, each with `file_name`; in the
//! directory itself, or in `train/` and `validation/`.
//!
//! In: a directory. Out: its manifests, and the rows of a CSV file. Paths are relative to the manifest. Parquet is not
//! read: [`super::in_folder`] says so.

use super::{Found, Layout, Rows, Source};
use crate::DataError;
use crate::corpus::columns::Columns;
use crate::corpus::lines::{LONGEST, Line, Lines};
use crate::corpus::rejected::{Fault, RejectReason};
use crate::corpus::rows::{Entry, OwnedRow, RowReader, not_utf8, one_line};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use tandem_disk::{ReadFile, retry};

const MANIFESTS: [&str; 2] = ["metadata.csv", "metadata.jsonl"];
/// Stands for a comma between columns after the quotes are read: no text has it.
const CUT: char = '\u{1f}';

pub(super) fn find(folder: &Path) -> Option<Found> {
    let manifest = |below: &str| {
        let mut names = MANIFESTS.iter().map(|name| format!("{below}{name}"));
        names.find(|name| is_manifest(&folder.join(name)))
    };
    let source = |file: String, rows| Source { file: file.into(), rows };
    let sources = match (manifest(""), manifest("train/"), manifest("validation/")) {
        (Some(all), ..) => vec![source(all, Rows::Mixed)],
        (None, Some(train), Some(eval)) => {
            vec![source(train, Rows::Train), source(eval, Rows::Eval)]
        }
        (None, Some(train), None) => vec![source(train, Rows::Mixed)],
        (None, None, _) => return None,
    };
    Some(Found::new(Layout::HuggingFace, sources))
}

/// Its first line names `file_name`.
pub(super) fn is_manifest(file: &Path) -> bool {
    let Some(first) = super::first_line(file) else { return false };
    if first.starts_with('{') {
        return super::json_lines::layout_of(file) == Some(Layout::HuggingFace);
    }
    fields(&first).is_ok_and(|names| {
        names.iter().any(|name| name.trim() == "file_name") && columns(&names).is_some()
    })
}

fn columns(names: &[String]) -> Option<Columns> {
    Columns::from_header(&names.join(&CUT.to_string()), CUT)
}

pub(in crate::corpus) struct CsvRows {
    path: PathBuf,
    folder: String,
    lines: Lines<BufReader<File>>,
    columns: Columns,
}

impl CsvRows {
    pub fn open(root: &Path, file: &Path) -> Result<CsvRows, DataError> {
        let path = root.join(file);
        let failed = |source: io::Error| DataError::Read { path: path.clone(), source };
        let opened = retry(|| ReadFile::open(&path)).map_err(failed)?.into_inner();
        let mut lines = Lines::new(BufReader::new(opened));
        let header = match lines.next().map_err(failed)? {
            Some(line) => std::str::from_utf8(line.bytes).ok().and_then(|line| fields(line).ok()),
            None => return Err(DataError::ManifestEmpty { manifest: path }),
        };
        let Some(columns) = header.as_deref().and_then(columns) else {
            return Err(DataError::ManifestHeader { manifest: path });
        };
        Ok(CsvRows { lines, columns, folder: super::folder_of(file), path })
    }
}

impl RowReader for CsvRows {
    fn next_entry(&mut self) -> Result<Option<Entry>, DataError> {
        let failed = |source| DataError::Read { path: self.path.clone(), source };
        while let Some(line) = self.lines.next().map_err(failed)? {
            if line.bytes.trim_ascii().is_empty() {
                continue;
            }
            let row = row(&line, &self.columns, &self.folder);
            let id = row.as_ref().map(|row| row.recording.clone()).unwrap_or_default();
            return Ok(Some(Entry { line: line.number, id, row }));
        }
        Ok(None)
    }
}

fn row(line: &Line<'_>, columns: &Columns, folder: &str) -> Result<OwnedRow, Fault> {
    let wrong = |message: String| {
        let fix = "quote a text that has a comma (\"like, this\"), and double a quote in it (\"\")";
        Fault::new(RejectReason::WrongColumns, message, fix)
    };
    if line.overlong {
        return Err(wrong(format!("the line is longer than {LONGEST} bytes")));
    }
    let text = std::str::from_utf8(line.bytes).map_err(|_| not_utf8(line.bytes))?;
    let joined = fields(text).map_err(wrong)?.join(&CUT.to_string());
    let row = columns
        .cut(&joined, CUT)
        .map_err(|found| wrong(format!("{found} columns, expected {}", columns.count())))?;
    let owned = |text: &str| text.trim().to_owned();
    Ok(OwnedRow {
        id: String::new(),
        recording: format!("{folder}{}", row.id.trim()),
        text: one_line(row.text),
        normalised: one_line(row.normalised),
        speaker: owned(row.speaker),
        language: owned(row.language),
        phonemes: owned(row.phonemes),
        part: None,
    })
}

/// The fields of a line by RFC 4180. A field with a line end is a fault: lines are read one at a time.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = vec![String::new()];
    let (mut quoted, mut letters) = (false, line.chars().peekable());
    while let Some(letter) = letters.next() {
        let last = fields.len() - 1;
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                fields[last].push('"');
            }
            '"' if quoted || fields[last].is_empty() => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            CUT => return Err("it has the control character U+001F".into()),
            letter => fields[last].push(letter),
        }
    }
    if quoted {
        return Err("a quote is not closed on the line".into());
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn commas_and_quotes_inside_quotes_are_text() {
        let check = |line: &str, expected: &[&str]| assert_eq!(fields(line).unwrap(), expected);
        check("a.wav,plain text", &["a.wav", "plain text"]);
        check("a.wav,\"well, \"\"yes\"\"\",", &["a.wav", "well, \"yes\"", ""]);
        check("a.wav,5\" nail", &["a.wav", "5\" nail"]);
        assert!(fields("a.wav,\"open").is_err());
    }
}
