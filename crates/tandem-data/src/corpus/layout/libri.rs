//! LibriSpeech and LibriTTS: `SPEAKER/CHAPTER/`, with one `*.trans.txt` of all its recordings, or with
//! `*.normalized.txt` and `*.original.txt` beside each of them.
//!
//! In: a directory, or one above several (`train-clean-100`, `dev-clean`). Out: one row for each text. The speaker is
//! the first number of the name. LibriSpeech writes capitals only: they are read as small letters.

use super::walk::{Folder, Walk, read_text};
use super::{Found, Layout, Rows, Source};
use crate::DataError;
use crate::corpus::TextColumn;
use crate::corpus::lines::Lines;
use crate::corpus::rejected::Fault;
use crate::corpus::rows::{Entry, OwnedRow, RowReader, not_utf8, one_line};
use std::collections::VecDeque;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use tandem_disk::{ReadFile, retry};

const TABLE: &str = ".trans.txt";
const NORMALISED: &str = ".normalized.txt";
const ORIGINAL: &str = ".original.txt";
/// Folders that are looked at to recognise the layout.
const LOOKED_AT: usize = 64;

pub(super) fn find(folder: &Path) -> Option<Found> {
    let mut walk = Walk::below(folder, "");
    let found = (0..LOOKED_AT).map_while(|_| walk.next_folder().ok().flatten()).any(|folder| {
        folder.files.iter().any(|name| name.ends_with(TABLE) || name.ends_with(NORMALISED))
    });
    let source = Source { file: ".".into(), rows: Rows::Mixed };
    found.then(|| Found::new(Layout::Libri, vec![source]))
}

pub(in crate::corpus) struct Chapters {
    root: PathBuf,
    walk: Walk,
    column: TextColumn,
    waiting: VecDeque<(String, Result<OwnedRow, Fault>)>,
    line: u32,
}

impl Chapters {
    pub fn open(root: &Path, column: TextColumn) -> Chapters {
        let walk = Walk::below(root, "");
        Chapters { root: root.into(), walk, column, waiting: VecDeque::new(), line: 0 }
    }

    fn add(&mut self, folder: &Folder) -> Result<(), DataError> {
        for name in folder.files.iter().filter(|name| name.ends_with(TABLE)) {
            self.add_table(folder, name)?;
        }
        for stem in folder.stems(NORMALISED) {
            let text = |end: &str| read_text(&self.root, &folder.join(&format!("{stem}{end}")));
            let row = match self.column {
                TextColumn::Normalised => text(NORMALISED),
                TextColumn::Text => text(ORIGINAL),
            };
            self.waiting.push_back((stem.to_owned(), row.map(|text| row_of(folder, stem, text))));
        }
        Ok(())
    }

    fn add_table(&mut self, folder: &Folder, name: &str) -> Result<(), DataError> {
        let path = self.root.join(folder.join(name));
        let failed = |source| DataError::Read { path: path.clone(), source };
        let target = retry(|| path.canonicalize()).map_err(failed)?;
        if !target.starts_with(&self.root) {
            let fault = Fault::link_leaves_corpus(&folder.join(name), &target);
            self.waiting.push_back((name.to_owned(), Err(fault)));
            return Ok(());
        }
        let file = retry(|| ReadFile::open(&target)).map_err(failed)?.into_inner();
        let mut lines = Lines::new(BufReader::new(file));
        while let Some(line) = lines.next().map_err(failed)? {
            if line.bytes.trim_ascii().is_empty() {
                continue;
            }
            let lossy = String::from_utf8_lossy(line.bytes);
            let (id, text) =
                lossy.trim().split_once(char::is_whitespace).unwrap_or((lossy.trim(), ""));
            let row = match std::str::from_utf8(line.bytes) {
                Ok(_) => Ok(row_of(folder, id, without_capitals(text))),
                Err(_) => Err(not_utf8(line.bytes)),
            };
            self.waiting.push_back((id.to_owned(), row));
        }
        Ok(())
    }
}

fn row_of(folder: &Folder, stem: &str, text: String) -> OwnedRow {
    OwnedRow {
        id: stem.to_owned(),
        recording: folder.join(stem),
        text,
        speaker: stem.split(['_', '-']).next().unwrap_or_default().to_owned(),
        ..OwnedRow::default()
    }
}

fn without_capitals(text: &str) -> String {
    let text = one_line(text);
    if text.chars().any(char::is_lowercase) { text } else { text.to_lowercase() }
}

impl RowReader for Chapters {
    fn next_entry(&mut self) -> Result<Option<Entry>, DataError> {
        while self.waiting.is_empty() {
            let Some(folder) = self.walk.next_folder()? else { return Ok(None) };
            self.add(&folder)?;
        }
        self.line += 1;
        Ok(self.waiting.pop_front().map(|(id, row)| Entry { line: self.line, id, row }))
    }
}
