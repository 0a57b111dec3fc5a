//! ESPnet and Kaldi: the tables `wav.scp` and `text`, and perhaps `utt2spk` and `utt2lang`, sorted by id.
//!
//! In: a directory. Out: one row for each line of `text`. All tables are read side by side, which needs no memory: that
//! is why their order must be the same, as Kaldi demands. A line of `wav.scp` that is a command is never run.

use super::{Found, Layout, Rows, Source};
use crate::DataError;
use crate::corpus::lines::Lines;
use crate::corpus::rejected::{Fault, RejectReason, short};
use crate::corpus::rows::{Entry, OwnedRow, RowReader, not_utf8, one_line};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use tandem_disk::{ReadFile, retry};

const TEXTS: &str = "text";
const RECORDINGS: &str = "wav.scp";
const BESIDE: [&str; 2] = ["utt2spk", "utt2lang"];
const PARTS: &str = "segments";

pub(super) fn find(folder: &Path) -> Option<Found> {
    let there = |name: &str| folder.join(name).is_file();
    if !there(TEXTS) || !there(RECORDINGS) {
        return None;
    }
    let mut found =
        Found::new(Layout::Espnet, vec![Source { file: TEXTS.into(), rows: Rows::Mixed }]);
    found.companions = [RECORDINGS, PARTS].into_iter().chain(BESIDE).map(PathBuf::from).collect();
    Some(found)
}

pub(in crate::corpus) struct Tables {
    texts: Table,
    recordings: Table,
    speakers: Option<Table>,
    languages: Option<Table>,
}

impl Tables {
    pub fn open(root: &Path) -> Result<Tables, DataError> {
        if root.join(PARTS).exists() {
            return Err(DataError::LayoutUnsupported {
                root: root.into(),
                what: "a table `segments`, whose rows are parts of long recordings".into(),
                fix: "cut the recordings first (`utils/data/extract_wav_segments_data_dir.sh` of Kaldi)".into(),
            });
        }
        let [speakers, languages] = BESIDE.map(|name| match root.join(name).exists() {
            true => Table::open(root, name).map(Some),
            false => Ok(None),
        });
        Ok(Tables {
            texts: Table::open(root, TEXTS)?,
            recordings: Table::open(root, RECORDINGS)?,
            speakers: speakers?,
            languages: languages?,
        })
    }

    fn row(&mut self, id: &str, text: String) -> Result<Result<OwnedRow, Fault>, DataError> {
        let Some(recording) = self.recordings.value_of(id)? else {
            let message = format!("`{RECORDINGS}` has no recording `{}` at this place", short(id));
            let fix =
                "sort all tables by id (`utils/fix_data_dir.sh` of Kaldi), or add the recording";
            return Ok(Err(Fault::new(RejectReason::MissingAudio, message, fix)));
        };
        if recording.ends_with('|') {
            let message = "the recording is the output of a command, which is not run".to_owned();
            let fix =
                "write the recordings to files (`utils/copy_data_dir.sh`, `wav-copy` of Kaldi)";
            return Ok(Err(Fault::new(RejectReason::MissingAudio, message, fix)));
        }
        let beside = |table: &mut Option<Table>| match table {
            Some(table) => table.value_of(id).map(Option::unwrap_or_default),
            None => Ok(String::new()),
        };
        let speaker = beside(&mut self.speakers)?;
        let language = beside(&mut self.languages)?;
        let id = id.to_owned();
        Ok(Ok(OwnedRow { id, recording, text, speaker, language, ..OwnedRow::default() }))
    }
}

impl RowReader for Tables {
    fn next_entry(&mut self) -> Result<Option<Entry>, DataError> {
        let Some((line, id, text)) = self.texts.next_pair()? else { return Ok(None) };
        let row = match text {
            Ok(text) => self.row(&id, text)?,
            Err(fault) => Err(fault),
        };
        Ok(Some(Entry { line, id, row }))
    }
}

/// Lines of an id and a value.
struct Table {
    path: PathBuf,
    lines: Lines<BufReader<File>>,
    /// Read, but of a later id.
    ahead: Option<(String, String)>,
}

impl Table {
    fn open(root: &Path, name: &str) -> Result<Table, DataError> {
        let path = root.join(name);
        let failed = |source| DataError::Read { path: path.clone(), source };
        let file = retry(|| ReadFile::open(&path)).map_err(failed)?.into_inner();
        Ok(Table { lines: Lines::new(BufReader::new(file)), ahead: None, path })
    }

    #[allow(clippy::type_complexity, reason = "line, id and value of one row")]
    fn next_pair(&mut self) -> Result<Option<(u32, String, Result<String, Fault>)>, DataError> {
        let failed = |source| DataError::Read { path: self.path.clone(), source };
        while let Some(line) = self.lines.next().map_err(failed)? {
            let lossy = String::from_utf8_lossy(line.bytes);
            let line_text = lossy.trim();
            if line_text.is_empty() {
                continue;
            }
            let (id, value) = line_text.split_once(char::is_whitespace).unwrap_or((line_text, ""));
            let value = match std::str::from_utf8(line.bytes) {
                Ok(_) => Ok(one_line(value)),
                Err(_) => Err(not_utf8(line.bytes)),
            };
            return Ok(Some((line.number, id.to_owned(), value)));
        }
        Ok(None)
    }

    /// The value of an id, if it is the next one; lines of smaller ids are passed over.
    fn value_of(&mut self, id: &str) -> Result<Option<String>, DataError> {
        loop {
            let (found, value) = match self.ahead.take() {
                Some(ahead) => ahead,
                None => match self.next_pair()? {
                    Some((_, found, value)) => (found, value.unwrap_or_default()),
                    None => return Ok(None),
                },
            };
            if found == id {
                return Ok(Some(value));
            }
            if found.as_str() > id {
                self.ahead = Some((found, value));
                return Ok(None);
            }
        }
    }
}
