//! Reads manifests row by row.
//!
//! In: the sources that [`super::layout`] found. Out: [`CorpusRows`], which gives one row at a time. A row is
//! used or rejected, never dropped; only a manifest that is invalid as a whole is an error.
//!
//! The manifests are read twice. The first pass finds every error of a whole manifest, the ids that are
//! written more than once, and what decides the split. The second one gives the rows. Between two rows
//! there is one line in memory, eight bytes per recording, and the repeated ids.

use super::columns::{Columns, Row, likely_separator};
use super::layout::{self, CorpusFiles, Rows, Source};
use super::lines::{LONGEST, Line, Lines};
use super::recordings::{FOLDERS, Recordings, clean, without_kind};
use super::rejected::{Fault, RejectReason, RejectedRow, short};
use super::split::{SplitCounts, SplitRule};
use super::{CorpusConfig, Split, TextColumn, Utterance};
use crate::DataError;
use hashbrown::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use tandem_disk::read::look_up;
use tandem_disk::{AccessKind, ReadFile, retry};
use xxhash_rust::xxh3::xxh3_64;

/// Lines that are sampled to find the columns.
const SAMPLE: usize = 200;

/// The rows of a corpus, in the order of the manifests, without a list of them in memory.
pub struct CorpusRows {
    config: CorpusConfig,
    root: PathBuf,
    sources: Vec<Source>,
    /// Sources that were opened in this pass; the last one is being read.
    opened: usize,
    open: Option<Box<OpenManifest>>,
    recordings: Recordings,
    repeated: RepeatedIds,
    split: SplitRule,
    rows: usize,
}

/// One row of a manifest.
#[derive(Clone, Debug)]
pub enum CorpusRow {
    Usable(Utterance),
    Rejected(RejectedRow),
}

impl CorpusRows {
    /// Reads the manifests once, and starts again at the first row. An error if a manifest is invalid as a
    /// whole, or if there is no recording and no folder for them.
    pub(super) fn open(files: CorpusFiles, config: &CorpusConfig) -> Result<CorpusRows, DataError> {
        let mut split = SplitCounts::new(config.seed, config.eval_share);
        let splits_itself = files.splits_itself();
        let mut rows = CorpusRows {
            config: config.clone(),
            recordings: Recordings::new(&files.root),
            root: files.root,
            sources: files.sources,
            opened: 0,
            open: None,
            repeated: RepeatedIds::default(),
            split: SplitRule::default(),
            rows: 0,
        };
        let (mut ids, mut audio_missing) = (Vec::new(), false);
        while let Some(row) = rows.next() {
            rows.rows += 1;
            match row? {
                CorpusRow::Usable(row) => {
                    ids.push(xxh3_64(row.id.as_bytes()));
                    split.add(&row.id);
                }
                CorpusRow::Rejected(row) => {
                    audio_missing |= row.reason == RejectReason::MissingAudio;
                }
            }
        }
        if ids.is_empty() && !rows.recordings.has_folder() && audio_missing {
            return Err(rows.recordings_missing());
        }
        let distinct;
        (rows.repeated, distinct) = RepeatedIds::of(ids);
        if splits_itself {
            rows.split = split.rule(distinct);
        }
        rows.opened = 0;
        Ok(rows)
    }

    /// The corpus directory, with symbolic links resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The manifests, relative to [`CorpusRows::root`].
    pub fn manifests(&self) -> Vec<PathBuf> {
        self.sources.iter().map(|source| source.file.clone()).collect()
    }

    /// At least as many rows as the corpus has: a row that repeats one of an eval manifest is counted.
    pub fn most(&self) -> usize {
        self.rows
    }

    fn recordings_missing(self) -> DataError {
        let folders = FOLDERS.iter().map(|name| format!("{name}/"));
        DataError::RecordingsMissing {
            looked_for: folders.filter(|name| name != "/").collect(),
            near: layout::folders_in(&self.root),
            broken_links: self.recordings.broken_links().to_vec(),
            root: self.root,
        }
    }

    /// The next row of an open manifest; `None` at its end.
    fn next_in(&mut self, open: &mut OpenManifest) -> Result<Option<CorpusRow>, DataError> {
        let OpenManifest { path, sample, lines, columns, tally } = open;
        for line in sample.by_ref() {
            if let Some(row) = self.row(&line.borrow(), columns, tally) {
                return Ok(Some(row));
            }
        }
        let failed = |source: io::Error| DataError::Read { path: path.clone(), source };
        while let Some(line) = lines.next().map_err(failed)? {
            if let Some(row) = self.row(&line, columns, tally) {
                return Ok(Some(row));
            }
        }
        tally.check(path, columns, self.config.separator)?;
        Ok(None)
    }

    /// The row of a line; `None` if it is blank, or if an eval manifest already has it.
    fn row(&mut self, line: &Line<'_>, columns: &Columns, tally: &mut Tally) -> Option<CorpusRow> {
        if line.bytes.trim_ascii().is_empty() {
            return None;
        }
        tally.rows += 1;
        let fault = match self.utterance(line, columns, tally) {
            Ok(utterance) => return utterance.map(CorpusRow::Usable),
            Err(fault) => fault,
        };
        let start = &line.bytes[..line.bytes.len().min(400)];
        let start = String::from_utf8_lossy(start);
        // The first field identifies the row, even if the rest is invalid.
        let id = start.split(self.config.separator).next().unwrap_or_default().trim();
        let id = columns.cut(&start, self.config.separator).map_or(id, |row| row.id.trim());
        Some(CorpusRow::Rejected(RejectedRow {
            manifest: self.sources[self.opened - 1].file.display().to_string(),
            line: line.number,
            id: short(id),
            reason: fault.reason,
            message: fault.message,
            fix: fault.fix,
        }))
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
        if let Some(first) = self.repeated.first_use(without_kind(&id)) {
            return self.repeats(first).map(|()| None);
        }
        let audio = self.recordings.find(&id)?;
        let id = without_kind(&id);
        let named = |field: &str| Some(field.trim()).filter(|f| !f.is_empty()).map(str::to_owned);
        let manifest = self.opened - 1;
        let split = match self.sources[manifest].rows {
            Rows::Eval => Split::Eval,
            _ => self.split.of(id),
        };
        let place = Place { manifest: manifest as u16, line: line.number };
        self.repeated.add(id, place);
        Ok(Some(Utterance {
            id: id.to_owned(),
            manifest: place.manifest,
            line: line.number,
            text: text.to_owned(),
            audio,
            speaker: named(row.speaker),
            language: named(row.language).or_else(|| self.config.default_language.clone()),
            phonemes: named(row.phonemes),
            split,
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

    fn repeats(&self, first: Place) -> Result<(), Fault> {
        let source = &self.sources[usize::from(first.manifest)];
        let here = &self.sources[self.opened - 1];
        if source.rows == Rows::Eval && here.rows == Rows::TrainOutsideEval {
            return Ok(());
        }
        let manifest = source.file.display();
        Err(Fault::new(
            RejectReason::DuplicateId,
            format!("the id is that of line {} of `{manifest}`", first.line),
            "give each recording one row; delete or rename this one",
        ))
    }
}

impl Iterator for CorpusRows {
    type Item = Result<CorpusRow, DataError>;

    /// After an error there are no more rows.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut open = match self.open.take() {
                Some(open) => open,
                None => {
                    let source = self.sources.get(self.opened)?;
                    let opened = OpenManifest::open(self.root.join(&source.file), &self.config);
                    self.opened += 1;
                    match opened {
                        Ok(open) => Box::new(open),
                        Err(error) => return Some(self.stop(error)),
                    }
                }
            };
            match self.next_in(&mut open) {
                Ok(Some(row)) => {
                    self.open = Some(open);
                    return Some(Ok(row));
                }
                Ok(None) => {}
                Err(error) => return Some(self.stop(error)),
            }
        }
    }
}

impl CorpusRows {
    fn stop(&mut self, error: DataError) -> Result<CorpusRow, DataError> {
        self.opened = self.sources.len();
        Err(error)
    }
}

/// A manifest that is being read, one line at a time, apart from a sample of its first lines, which shows
/// the role of each column.
struct OpenManifest {
    path: PathBuf,
    sample: std::vec::IntoIter<OwnedLine>,
    lines: Lines<BufReader<ManifestFile>>,
    columns: Columns,
    tally: Tally,
}

impl OpenManifest {
    fn open(path: PathBuf, config: &CorpusConfig) -> Result<OpenManifest, DataError> {
        let failed = |source: io::Error| DataError::Read { path: path.clone(), source };
        let file = retry(|| ReadFile::open(&path)).map_err(failed)?.into_inner();
        let file = ManifestFile { file, path: path.clone() };
        let mut bytes = BufReader::with_capacity(1 << 16, file);
        refuse_utf16(&path, bytes.fill_buf().map_err(failed)?)?;
        let mut lines = Lines::new(bytes);
        let sample = Sample::take(&mut lines).map_err(failed)?;
        let (columns, header) = sample.columns(&path, config.separator)?;
        let mut sample = sample.lines.into_iter();
        sample.by_ref().take(header).for_each(drop);
        Ok(OpenManifest { path, sample, lines, columns, tally: Tally::default() })
    }
}

/// Tries a read that fails again.
struct ManifestFile {
    file: File,
    path: PathBuf,
}

impl Read for ManifestFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        retry(|| look_up(AccessKind::Read, &self.path, || self.file.read(bytes)))
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
    fn check(&self, path: &Path, columns: &Columns, separator: char) -> Result<(), DataError> {
        let manifest = path.to_path_buf();
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

/// Where a row is.
#[derive(Clone, Copy)]
struct Place {
    manifest: u16,
    line: u32,
}

/// The first use of each id that is written more than once. The others need no memory.
#[derive(Default)]
struct RepeatedIds {
    /// Hashes of ids that occur more than once, sorted.
    hashes: Vec<u64>,
    first: HashMap<Box<str>, Place>,
}

impl RepeatedIds {
    /// From the hashes of all ids; also returns how many of them are distinct.
    fn of(mut ids: Vec<u64>) -> (RepeatedIds, usize) {
        ids.sort_unstable();
        let mut hashes: Vec<u64> =
            ids.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        ids.dedup();
        hashes.dedup();
        (RepeatedIds { hashes, first: HashMap::new() }, ids.len())
    }

    fn first_use(&self, id: &str) -> Option<Place> {
        self.first.get(id).copied()
    }

    /// Remembers an id, if it occurs again.
    fn add(&mut self, id: &str, place: Place) {
        if self.hashes.binary_search(&xxh3_64(id.as_bytes())).is_ok() {
            self.first.entry(id.into()).or_insert(place);
        }
    }
}
