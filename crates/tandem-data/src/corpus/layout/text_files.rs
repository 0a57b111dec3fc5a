//! One `.txt` beside each recording, in any folders.
//!
//! In: a directory. Out: one row for each recording and each text, so that the one without the other is listed. A
//! folder without any pair is not part of the corpus. No speaker: folders are speakers in some corpora and chapters in
//! others.

use super::walk::{Folder, Walk, read_text};
use super::{Found, Layout, Rows, Source};
use crate::DataError;
use crate::corpus::rejected::{Fault, RejectReason};
use crate::corpus::rows::{Entry, OwnedRow, RowReader};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Folders that are looked at to recognise the layout.
const LOOKED_AT: usize = 64;

pub(super) fn find(folder: &Path) -> Option<Found> {
    let mut walk = Walk::below(folder, "");
    let found =
        (0..LOOKED_AT).map_while(|_| walk.next_folder().ok().flatten()).any(|f| has_pair(&f));
    let source = Source { file: ".".into(), rows: Rows::Mixed };
    found.then(|| Found::new(Layout::TextFiles, vec![source]))
}

fn has_pair(folder: &Folder) -> bool {
    let recordings = folder.recordings();
    folder.stems(".txt").any(|stem| recordings.binary_search(&stem).is_ok())
}

pub(in crate::corpus) struct Pairs {
    root: PathBuf,
    walk: Walk,
    folder: Option<Folder>,
    /// Names in the folder that are still to be read.
    waiting: VecDeque<String>,
    line: u32,
}

impl Pairs {
    pub fn open(root: &Path) -> Pairs {
        let walk = Walk::below(root, "");
        Pairs { root: root.into(), walk, folder: None, waiting: VecDeque::new(), line: 0 }
    }

    fn entry(&self, folder: &Folder, stem: &str) -> Result<OwnedRow, Fault> {
        let text = format!("{stem}.txt");
        if folder.files.binary_search(&text).is_err() {
            let message = format!("no text `{text}` beside the recording");
            let fix = "write what is said into that file, or remove the recording";
            return Err(Fault::new(RejectReason::EmptyText, message, fix));
        }
        Ok(OwnedRow {
            id: folder.join(stem),
            recording: folder.join(stem),
            text: read_text(&self.root, &folder.join(&text))?,
            ..OwnedRow::default()
        })
    }
}

impl RowReader for Pairs {
    fn next_entry(&mut self) -> Result<Option<Entry>, DataError> {
        loop {
            if let (Some(stem), Some(folder)) = (self.waiting.pop_front(), &self.folder) {
                self.line += 1;
                let (line, id) = (self.line, folder.join(&stem));
                return Ok(Some(Entry { line, id, row: self.entry(folder, &stem) }));
            }
            let Some(folder) = self.walk.next_folder()? else { return Ok(None) };
            if has_pair(&folder) {
                let notes = |stem: &&str| {
                    let lower = stem.to_lowercase();
                    lower.starts_with("readme") || lower.starts_with("licen")
                };
                let mut stems = folder.recordings();
                stems.extend(folder.stems(".txt").filter(|stem| !notes(stem)));
                stems.sort_unstable();
                stems.dedup();
                self.waiting = stems.into_iter().map(str::to_owned).collect();
            }
            self.folder = Some(folder);
        }
    }
}
