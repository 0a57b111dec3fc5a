//! VCTK: `txt/p225/p225_001.txt`, and `wav48/` or `wav48_silence_trimmed/` with the same names.
//!
//! In: a directory. Out: one row for each text. The speaker is the folder. Of two microphones the first one is read.

use super::walk::{Folder, Walk, read_text};
use super::{Found, Layout, Rows, Source, named_folder};
use crate::DataError;
use crate::corpus::rejected::Fault;
use crate::corpus::rows::{Entry, OwnedRow, RowReader};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

const TEXTS: &str = "txt";
/// What follows the name of the text in the name of its recording, in the order of preference.
const MICROPHONES: [&str; 3] = ["_mic1", "", "_mic2"];

pub(super) fn find(folder: &Path) -> Option<Found> {
    let there = folder.join(TEXTS).is_dir() && recordings_in(folder).is_some();
    let source = Source { file: TEXTS.into(), rows: Rows::Mixed };
    there.then(|| Found::new(Layout::Vctk, vec![source]))
}

fn recordings_in(folder: &Path) -> Option<String> {
    named_folder(folder, |name| name.starts_with("wav48") || name.starts_with("wav24"))
}

pub(in crate::corpus) struct Texts {
    root: PathBuf,
    walk: Walk,
    recordings: String,
    waiting: VecDeque<(String, Result<OwnedRow, Fault>)>,
    line: u32,
}

impl Texts {
    pub fn open(root: &Path) -> Texts {
        Texts {
            root: root.into(),
            walk: Walk::below(root, TEXTS),
            recordings: recordings_in(root).unwrap_or_else(|| "wav48".into()),
            waiting: VecDeque::new(),
            line: 0,
        }
    }

    fn add(&mut self, folder: &Folder) -> Result<(), DataError> {
        let speaker = folder.path.strip_prefix(TEXTS).unwrap_or_default().trim_start_matches('/');
        let beside = format!("{}/{speaker}", self.recordings);
        let there = match self.root.join(&beside).is_dir() {
            true => Walk::below(&self.root, &beside).next_folder()?,
            false => None,
        };
        let there = there.as_ref().map(Folder::recordings).unwrap_or_default();
        for stem in folder.stems(".txt") {
            let named = MICROPHONES.iter().map(|microphone| format!("{stem}{microphone}"));
            let named = named.into_iter().find(|name| there.binary_search(&name.as_str()).is_ok());
            let text = read_text(&self.root, &folder.join(&format!("{stem}.txt")));
            let row = text.map(|text| OwnedRow {
                id: format!("{speaker}/{stem}"),
                recording: format!("{beside}/{}", named.as_deref().unwrap_or(stem)),
                text,
                speaker: speaker.into(),
                ..OwnedRow::default()
            });
            self.waiting.push_back((stem.to_owned(), row));
        }
        Ok(())
    }
}

impl RowReader for Texts {
    fn next_entry(&mut self) -> Result<Option<Entry>, DataError> {
        while self.waiting.is_empty() {
            let Some(folder) = self.walk.next_folder()? else { return Ok(None) };
            self.add(&folder)?;
        }
        self.line += 1;
        Ok(self.waiting.pop_front().map(|(id, row)| Entry { line: self.line, id, row }))
    }
}
