//! Reads manifests row by row into a corpus.
//!
//! In: the sources that [`super::layout`] found. Out: [`Corpus`]. A row is used or rejected, never
//! dropped; only a manifest that is invalid as a whole is an error. Keeps one line in memory at a
//! time, apart from a sample of the first lines, which shows the role of each column.

use super::columns::{Columns, Row, likely_separator};
use super::layout::{self, Rows, Source};
use super::lines::{LONGEST, Line, Lines};
use super::recordings::{FOLDERS, Recordings, clean, without_kind};
use super::rejected::{Fault, RejectReason, RejectedRow, short};
use super::{Corpus, CorpusConfig, Split, TextColumn, Utterance};
use crate::DataError;
use hashbrown::HashTable;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use tandem_disk::retry::RetryRead;
use tandem_disk::{ReadFile, retry};
use xxhash_rust::xxh3::xxh3_64;

/// Lines that are sampled to find the columns.
const SAMPLE: usize = 200;

pub(super) struct CorpusReader<'a> {
    config: &'a CorpusConfig,
    corpus: Corpus,
    uses: Vec<Rows>,
    recordings: Recordings,
    known: KnownIds,
}

impl<'a> CorpusReader<'a> {
    /// Starts without rows; symbolic links in `root` must be resolved.
    pub(super) fn start(root: &Path, config: &'a CorpusConfig) -> Self {
        let corpus = Corpus {
            root: root.into(),
            manifests: Vec::new(),
            utterances: Vec::new(),
            rejected: Vec::new(),
        };
        let recordings = Recordings::new(root);
        Self { config, corpus, uses: Vec::new(), recordings, known: KnownIds::default() }
    }

    /// Adds the rows of one manifest.
    pub(super) fn read(&mut self, source: &Source) -> Result<(), DataError> {
        let path = self.corpus.root.join(&source.file);
        self.corpus.manifests.push(source.file.clone());
        self.uses.push(source.rows);
        let closed = |source: io::Error| DataError::Read { path: path.clone(), source };
        let file = retry(|| ReadFile::open(&path)).map_err(closed)?;
        let mut bytes = BufReader::with_capacity(1 << 16, RetryRead(file));
        refuse_utf16(&path, bytes.fill_buf().map_err(closed)?)?;
        let mut lines = Lines::new(bytes);
        let sample = Sample::take(&mut lines).map_err(closed)?;
        let (columns, header) = sample.columns(&path, self.config.separator)?;
        let mut tally = Tally::default();
        for line in sample.lines.iter().skip(header) {
            self.row(&line.borrow(), &columns, &mut tally);
        }
        while let Some(line) = lines.next().map_err(closed)? {
            self.row(&line, &columns, &mut tally);
        }
        tally.check(path, &columns, self.config.separator)
    }

    /// The corpus; an error if there is no recording and no folder for them.
    pub(super) fn finish(self) -> Result<Corpus, DataError> {
        let missing = |row: &RejectedRow| row.reason == RejectReason::MissingAudio;
        if self.corpus.utterances.is_empty()
            && !self.recordings.has_folder()
            && self.corpus.rejected.iter().any(missing)
        {
            return Err(DataError::RecordingsMissing {
                looked_for: FOLDERS
                    .iter()
                    .map(|name| format!("{name}/"))
                    .filter(|n| n != "/")
                    .collect(),
                near: layout::folders_in(&self.corpus.root),
                broken_links: self.recordings.broken_links().to_vec(),
                root: self.corpus.root,
            });
        }
        Ok(self.corpus)
    }

    fn row(&mut self, line: &Line<'_>, columns: &Columns, tally: &mut Tally) {
        if line.bytes.trim_ascii().is_empty() {
            return;
        }
        tally.rows += 1;
        let fault = match self.utterance(line, columns, tally) {
            Ok(Some(utterance)) => {
                self.corpus.utterances.push(utterance);
                return self.known.add_last(&self.corpus.utterances);
            }
            Ok(None) => return,
            Err(fault) => fault,
        };
        let start = &line.bytes[..line.bytes.len().min(400)];
        let start = String::from_utf8_lossy(start);
        // The first field identifies the row, even if the rest is invalid.
        let id = start.split(self.config.separator).next().unwrap_or_default().trim();
        let id = columns.cut(&start, self.config.separator).map_or(id, |row| row.id.trim());
        self.corpus.rejected.push(RejectedRow {
            manifest: self.corpus.manifests[self.corpus.manifests.len() - 1].display().to_string(),
            line: line.number,
            id: short(id),
            reason: fault.reason,
            message: fault.message,
            fix: fault.fix,
        });
    }

    /// The utterance of a line; `None` if an eval manifest already has it.
    fn utterance(
        &mut self,
        line: &Line<'_>,
        columns: &Columns,
        tally: &mut Tally,
    ) -> Result<Option<Utterance>, Fault> {
        let row = cut(line, columns, self.config.separator, tally)?;
        let id = clean(row.id)?;
        let text = self.spoken(&row)?;
        if let Some(first) = self.known.find(without_kind(&id), &self.corpus.utterances) {
            return self.repeated(first).map(|()| None);
        }
        let audio = self.recordings.find(&id)?;
        let id = without_kind(&id);
        let named = |field: &str| Some(field.trim()).filter(|f| !f.is_empty()).map(str::to_owned);
        let is_eval = self.uses.last() == Some(&Rows::Eval);
        Ok(Some(Utterance {
            id: id.to_owned(),
            manifest: (self.uses.len() - 1) as u16,
            line: line.number,
            text: text.to_owned(),
            audio,
            speaker: named(row.speaker),
            language: named(row.language).or_else(|| self.config.default_language.clone()),
            phonemes: named(row.phonemes),
            split: if is_eval { Split::Eval } else { Split::Train },
        }))
    }

    fn spoken<'r>(&self, row: &Row<'r>) -> Result<&'r str, Fault> {
        let wants_normalised = self.config.text_column == TextColumn::Normalised;
        let text = match wants_normalised && !is_blank(row.normalised) {
            true => row.normalised,
            false => row.text,
        };
        if !is_blank(text) {
            return Ok(text);
        }
        let fix = "write what is said in the recording, or delete the row";
        Err(Fault::new(RejectReason::EmptyText, "the text is empty".into(), fix))
    }

    fn repeated(&self, first: usize) -> Result<(), Fault> {
        let first = &self.corpus.utterances[first];
        let in_eval = self.uses[usize::from(first.manifest)] == Rows::Eval;
        if in_eval && self.uses.last() == Some(&Rows::TrainOutsideEval) {
            return Ok(());
        }
        let manifest = self.corpus.manifests[usize::from(first.manifest)].display();
        Err(Fault::new(
            RejectReason::DuplicateId,
            format!("the id is that of line {} of `{manifest}`", first.line),
            "give each recording one row; delete or rename this one",
        ))
    }
}

fn cut<'l>(
    line: &Line<'l>,
    columns: &Columns,
    separator: char,
    tally: &mut Tally,
) -> Result<Row<'l>, Fault> {
    if line.overlong {
        let message = format!("the line is longer than {LONGEST} bytes");
        let fix = "look for a missing line end, or delete the line";
        return Err(Fault::new(RejectReason::LineTooLong, message, fix));
    }
    let text = std::str::from_utf8(line.bytes).map_err(|fault| {
        let at = fault.valid_up_to();
        let message = format!(
            "not valid UTF-8 at byte {} of the line (byte {} of the file)",
            at + 1,
            line.offset + at as u64 + 1
        );
        let fix = "save the manifest as UTF-8, or correct this line";
        Fault::new(RejectReason::InvalidUtf8, message, fix)
    })?;
    columns.cut(text, separator).map_err(|found| {
        tally.wrong_columns += 1;
        tally.found = found;
        let message = format!("{found} columns, expected {}", columns.count());
        let fix = format!(
            "write {separator:?} between columns only, or set `corpus.separator` if it is another"
        );
        Fault::new(RejectReason::WrongColumns, message, &fix)
    })
}

/// Only spaces and invisible marks (joiners, direction, byte order).
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_whitespace()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    })
}

/// Rows so far, and how many of them had a wrong number of columns.
#[derive(Default)]
struct Tally {
    rows: usize,
    wrong_columns: usize,
    found: usize,
}

impl Tally {
    /// One error instead of one rejected row per line.
    fn check(self, manifest: PathBuf, columns: &Columns, separator: char) -> Result<(), DataError> {
        if self.rows == 0 {
            return Err(DataError::ManifestEmpty { manifest });
        }
        if self.wrong_columns < self.rows {
            return Ok(());
        }
        Err(DataError::ManifestColumns {
            manifest,
            expected: columns.count().to_string(),
            found: self.found,
            separator,
            likely: None,
        })
    }
}

/// The first lines of a manifest that are not blank.
struct Sample {
    lines: Vec<OwnedLine>,
}

struct OwnedLine {
    number: u32,
    offset: u64,
    bytes: Vec<u8>,
    overlong: bool,
}

impl OwnedLine {
    fn borrow(&self) -> Line<'_> {
        let Self { number, offset, ref bytes, overlong } = *self;
        Line { number, offset, bytes, overlong }
    }
}

impl Sample {
    fn take(lines: &mut Lines<impl BufRead>) -> io::Result<Sample> {
        let mut sample = Vec::new();
        while sample.len() < SAMPLE {
            let Some(line) = lines.next()? else { break };
            if !line.bytes.trim_ascii().is_empty() {
                let Line { number, offset, bytes, overlong } = line;
                sample.push(OwnedLine { number, offset, bytes: bytes.to_vec(), overlong });
            }
        }
        Ok(Sample { lines: sample })
    }

    /// The columns, and the number of header lines in the sample.
    fn columns(&self, path: &Path, separator: char) -> Result<(Columns, usize), DataError> {
        let manifest = path.to_path_buf();
        if self.lines.is_empty() {
            return Err(DataError::ManifestEmpty { manifest });
        }
        let readable = |line: &OwnedLine| !line.overlong;
        let texts: Vec<&str> = self
            .lines
            .iter()
            .filter(|line| readable(line))
            .filter_map(|line| std::str::from_utf8(&line.bytes).ok())
            .collect();
        if texts.is_empty() {
            let found = "bytes of another encoding, in every sampled line".into();
            return Err(DataError::ManifestEncoding { manifest, found });
        }
        let first = std::str::from_utf8(&self.lines[0].bytes).unwrap_or_default();
        if let Some(columns) = Columns::from_header(first, separator) {
            return Ok((columns, 1));
        }
        let columns = Columns::guess(&texts, separator).map_err(|found| {
            let likely = likely_separator(&texts, separator);
            let expected = "2 to 5".into();
            DataError::ManifestColumns { manifest, expected, found, separator, likely }
        })?;
        Ok((columns, 0))
    }
}

fn refuse_utf16(path: &Path, start: &[u8]) -> Result<(), DataError> {
    if start.starts_with(b"\xFF\xFE") || start.starts_with(b"\xFE\xFF") {
        let found = "UTF-16".into();
        return Err(DataError::ManifestEncoding { manifest: path.into(), found });
    }
    Ok(())
}

/// The first use of each id, without a second copy of the ids.
#[derive(Default)]
struct KnownIds(HashTable<u32>);

impl KnownIds {
    fn find(&self, id: &str, utterances: &[Utterance]) -> Option<usize> {
        let is_it = |&index: &u32| utterances[index as usize].id == id;
        self.0.find(xxh3_64(id.as_bytes()), is_it).map(|&index| index as usize)
    }

    /// Adds the last of the utterances.
    fn add_last(&mut self, utterances: &[Utterance]) {
        let hash = |index: usize| xxh3_64(utterances[index].id.as_bytes());
        let Some(last) = utterances.len().checked_sub(1) else { return };
        self.0.insert_unique(hash(last), last as u32, |&index| hash(index as usize));
    }
}
