//! Reads manifests row by row.
//!
//! In: the sources that [`super::layout`] found. Out: [`CorpusRows`], which gives one row at a time. A row is
//! used or rejected, never dropped; only a manifest that is invalid as a whole is an error.
//!
//! The manifests are read twice. The first pass finds every error of a whole manifest, the ids that are
//! written more than once, and what decides the split. The second one gives the rows. Between two rows
//! there is one line in memory, eight bytes per recording, and the repeated ids.

use super::columns::{Columns, Row, SecondColumn, WrongCount, likely_separator};
use super::decisions::{Decision, Decisions};
use super::encoding::likely_encoding;
use super::layout::{
    self, CorpusFiles, Layout, Rows, Source, hugging_face, json_lines, kaldi, libri, text_files,
    vctk,
};
use super::lines::{LONGEST, Line, Lines};
use super::outside::{Location, Outside};
use super::recordings::{FOLDERS, Recordings, clean, without_kind};
use super::rejected::{Fault, RejectReason, RejectedRow, short};
use super::rows::{Entry, RowReader};
use super::split::{SplitCounts, SplitRule};
use super::{CorpusConfig, Part, Split, TextColumn, Utterance};
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
    layout: Layout,
    parts: Parts,
    outside: Outside,
    sources: Vec<Source>,
    /// Sources that were opened in this pass; the last one is being read.
    opened: usize,
    open: Option<OpenSource>,
    recordings: Recordings,
    repeated: RepeatedIds,
    split: SplitRule,
    decisions: Decisions,
    rows: usize,
}

/// What happens to rows that are a part of a longer recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    Rejected,
    Given,
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
    pub(super) fn open(
        files: CorpusFiles,
        config: &CorpusConfig,
        parts: Parts,
    ) -> Result<CorpusRows, DataError> {
        let mut split = SplitCounts::new(config.seed, config.eval_share);
        let splits_itself = files.splits_itself();
        let mut rows = CorpusRows {
            config: columns_config(config, files.layout),
            layout: files.layout,
            parts,
            outside: Outside::new(&files.root, config.recordings_dir.as_deref()),
            recordings: Recordings::new(&files.root),
            decisions: Decisions::read(&files.root)?,
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

    /// A manifest says which rows are held out.
    pub fn names_held_out(&self) -> bool {
        self.sources.iter().any(|source| source.rows == Rows::Eval)
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
    fn next_in(&mut self, open: &mut OpenSource) -> Result<Option<CorpusRow>, DataError> {
        match open {
            OpenSource::Columns(open) => self.next_line(open),
            OpenSource::Entries { reader, rows } => {
                while let Some(entry) = reader.next_entry()? {
                    *rows += 1;
                    if let Some(row) = self.entry(entry) {
                        return Ok(Some(row));
                    }
                }
                if *rows == 0 {
                    let manifest = self.root.join(&self.sources[self.opened - 1].file);
                    return Err(DataError::ManifestEmpty { manifest });
                }
                Ok(None)
            }
        }
    }

    fn next_line(&mut self, open: &mut OpenManifest) -> Result<Option<CorpusRow>, DataError> {
        let OpenManifest { path, sample, lines, columns, tally, .. } = open;
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
        let row = cut(line, columns, self.config.separator, tally);
        let fault = match row.and_then(|row| self.utterance(&row, line.number)) {
            Ok(utterance) => return utterance.map(CorpusRow::Usable),
            Err(fault) => fault,
        };
        let start = &line.bytes[..line.bytes.len().min(400)];
        let start = String::from_utf8_lossy(start);
        // The first field identifies the row, even if the rest is invalid.
        let id = start.split(self.config.separator).next().unwrap_or_default().trim();
        let id = columns.cut(&start, self.config.separator).map_or(id, |row| row.id.trim());
        Some(self.rejected(line.number, id, fault))
    }

    fn entry(&mut self, entry: Entry) -> Option<CorpusRow> {
        let Entry { line, id, row } = entry;
        match row.and_then(|row| self.utterance(&row.borrow(), line)) {
            Ok(utterance) => utterance.map(CorpusRow::Usable),
            Err(fault) => Some(self.rejected(line, &id, fault)),
        }
    }

    fn rejected(&self, line: u32, id: &str, fault: Fault) -> CorpusRow {
        CorpusRow::Rejected(RejectedRow {
            manifest: self.sources[self.opened - 1].file.display().to_string(),
            line,
            id: short(id),
            reason: fault.reason,
            message: fault.message,
            fix: fault.fix,
        })
    }

    /// The utterance of a row; `None` if an eval manifest already has it.
    fn utterance(&mut self, row: &Row<'_>, line: u32) -> Result<Option<Utterance>, Fault> {
        // A row without an id is named after its recording.
        let (mut audio, mut found_id) = (None, String::new());
        if row.id.is_empty() && !row.recording.is_empty() {
            let found = self.recording(row.recording)?;
            found_id = self.outside.name_of(&found) + &part_name(row.part);
            audio = Some(found);
        }
        let id = clean(if audio.is_some() { &found_id } else { row.id })?;
        let text = self.spoken(row)?;
        if row.part.is_some() && self.parts == Parts::Rejected {
            return Err(part_of_recording());
        }
        if let Some(first) = self.repeated.first_use(without_kind(&id)) {
            return self.repeats(first).map(|()| None);
        }
        let audio = match audio {
            Some(audio) => audio,
            None if row.recording.is_empty() => self.recordings.find(&id)?,
            None => self.recording(row.recording)?,
        };
        let id = without_kind(&id);
        let named = |field: &str| Some(field.trim()).filter(|f| !f.is_empty()).map(str::to_owned);
        let manifest = self.opened - 1;
        let split = match self.sources[manifest].rows {
            Rows::Eval => Split::Eval,
            _ => self.split.of(id),
        };
        let place = Place { manifest: manifest as u16, line };
        self.repeated.add(id, place);
        Ok(Some(Utterance {
            id: id.to_owned(),
            manifest: place.manifest,
            line,
            text: text.to_owned(),
            audio,
            speaker: named(row.speaker),
            language: named(row.language).or_else(|| self.config.default_language.clone()),
            phonemes: named(row.phonemes),
            split,
            part: row.part,
        }))
    }

    /// The recording that a row names by a path.
    fn recording(&mut self, written: &str) -> Result<PathBuf, Fault> {
        let absolute = self.layout.has_absolute_paths() && Path::new(written).is_absolute();
        let relative = match absolute {
            true => match self.outside.locate(written)? {
                Location::Inside(relative) => relative,
                Location::Allowed(path) => return Ok(path),
            },
            false => written.to_owned(),
        };
        self.recordings.find_path(&clean(&relative)?)
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
                    let opened =
                        OpenSource::open(self.layout, &self.root, &source.file, &self.config);
                    self.opened += 1;
                    match opened {
                        Ok(open) => open,
                        Err(error) => return Some(self.stop(error)),
                    }
                }
            };
            match self.next_in(&mut open) {
                Ok(Some(row)) => {
                    self.open = Some(open);
                    if let Some(row) = self.decided(row) {
                        return Some(Ok(row));
                    }
                }
                Ok(None) => {}
                Err(error) => return Some(self.stop(error)),
            }
        }
    }
}

impl CorpusRows {
    /// The row as a listener decided; none where it is dropped.
    fn decided(&self, row: CorpusRow) -> Option<CorpusRow> {
        let row = match row {
            CorpusRow::Usable(row) => row,
            CorpusRow::Rejected(row) => {
                let dropped = self.decisions.of(&row.id) == Some(&Decision::Drop);
                return (!dropped).then_some(CorpusRow::Rejected(row));
            }
        };
        let text = match self.decisions.of(&row.id) {
            Some(Decision::Drop) => return None,
            Some(Decision::Fix(text)) => text.clone(),
            Some(Decision::Keep) | None => return Some(CorpusRow::Usable(row)),
        };
        // Phonemes were those of the other text.
        Some(CorpusRow::Usable(Utterance { text, phonemes: None, ..row }))
    }

    fn stop(&mut self, error: DataError) -> Result<CorpusRow, DataError> {
        self.opened = self.sources.len();
        Err(error)
    }
}

/// A source that is being read.
enum OpenSource {
    Columns(Box<OpenManifest>),
    Entries { reader: Box<dyn RowReader>, rows: usize },
}

impl OpenSource {
    fn open(
        layout: Layout,
        root: &Path,
        file: &Path,
        config: &CorpusConfig,
    ) -> Result<OpenSource, DataError> {
        let is_json = file.extension().is_some_and(|end| end != "csv");
        let reader: Box<dyn RowReader> = match layout {
            Layout::Ljspeech | Layout::Piper | Layout::CommonVoice => {
                let open = OpenManifest::open(root.join(file), config)?;
                return Ok(OpenSource::Columns(Box::new(open)));
            }
            Layout::HuggingFace if !is_json => Box::new(hugging_face::CsvRows::open(root, file)?),
            Layout::HuggingFace | Layout::Nemo | Layout::Lhotse => {
                Box::new(json_lines::JsonRows::open(root, file)?)
            }
            Layout::Espnet => Box::new(kaldi::Tables::open(root)?),
            Layout::Vctk => Box::new(vctk::Texts::open(root)),
            Layout::Libri => Box::new(libri::Chapters::open(root, config.text_column)),
            Layout::TextFiles => Box::new(text_files::Pairs::open(root)),
        };
        Ok(OpenSource::Entries { reader, rows: 0 })
    }
}

/// The layout of a corpus, more exactly after a look at its columns, and a clause that describes it.
pub(super) fn describe(
    files: &CorpusFiles,
    config: &CorpusConfig,
) -> Result<(Layout, String), DataError> {
    let first = files.root.join(&files.sources[0].file);
    let columns_of = |layout| OpenManifest::open(first, &columns_config(config, layout));
    let name = files.sources[0].file.display();
    match files.layout {
        Layout::Ljspeech | Layout::Piper => {
            let open = columns_of(files.layout)?;
            let piper = open.columns.speaker_comes_first() && open.header == 0;
            let layout = if piper { Layout::Piper } else { files.layout };
            let mut text = format!("{} (`{name}`: {})", layout.title(), open.columns.describe());
            let undecided = config.layout.is_none() && open.header == 0 && open.columns.count() > 2;
            if undecided && piper {
                text += "; by its content the second column is a speaker, `--layout ljspeech` reads it as the text";
            } else if undecided && open.ambiguous {
                text += "; by its content the second column is a text, `--layout piper` reads it as the speaker";
            }
            Ok((layout, text))
        }
        layout @ Layout::CommonVoice => {
            let columns = columns_of(layout)?.columns.describe();
            let used: Vec<&str> = columns.split('|').filter(|name| *name != "-").collect();
            Ok((layout, format!("{} (`{name}`: {})", layout.title(), used.join(", "))))
        }
        layout if files.root.join(&files.sources[0].file).is_dir() => {
            Ok((layout, layout.title().to_owned()))
        }
        layout => Ok((layout, format!("{} (`{name}`)", layout.title()))),
    }
}

/// The configuration that columns are read with: a layout may demand a separator.
fn columns_config(config: &CorpusConfig, layout: Layout) -> CorpusConfig {
    let separator = if layout == Layout::CommonVoice { '\t' } else { config.separator };
    CorpusConfig { separator, ..config.clone() }
}

/// Distinguishes rows of one recording.
fn part_name(part: Option<Part>) -> String {
    part.map(|part| format!("_{:08}", part.start.as_millis())).unwrap_or_default()
}

fn part_of_recording() -> Fault {
    Fault::new(
        RejectReason::PartOfRecording,
        "the row is a part of a longer recording".into(),
        "cut the recordings: `tandem import SOURCE OUT` makes a corpus of such rows",
    )
}

/// A manifest that is being read, one line at a time, apart from a sample of its first lines, which shows
/// the role of each column.
struct OpenManifest {
    path: PathBuf,
    sample: std::vec::IntoIter<OwnedLine>,
    lines: Lines<BufReader<ManifestFile>>,
    columns: Columns,
    /// Lines of the header: 0 or 1.
    header: usize,
    /// The second column might also be a speaker.
    ambiguous: bool,
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
        let second = match config.layout {
            Some(Layout::Ljspeech) => SecondColumn::Text,
            Some(Layout::Piper) => SecondColumn::Speaker,
            _ => SecondColumn::ByContent,
        };
        let (columns, header) = sample.columns(&path, config.separator, second)?;
        let ambiguous = header == 0 && sample.has_words_second(config.separator);
        let mut sample = sample.lines.into_iter();
        sample.by_ref().take(header).for_each(drop);
        let tally = Tally::default();
        Ok(OpenManifest { path, sample, lines, columns, header, ambiguous, tally })
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
        let fix = format!(
            "save the manifest as UTF-8 (this line is probably {}), or correct this line",
            likely_encoding(line.bytes)
        );
        Fault::new(RejectReason::InvalidUtf8, message, &fix)
    })?;
    columns.cut(text, separator).map_err(|found| {
        tally.wrong_columns += 1;
        tally.found = found;
        let message = format!("{found} columns, expected {}", columns.count());
        let fix = format!(
            "write {separator:?} between columns only, or type `--separator` if it is another"
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
    fn columns(
        &self,
        path: &Path,
        separator: char,
        second: SecondColumn,
    ) -> Result<(Columns, usize), DataError> {
        let manifest = path.to_path_buf();
        if self.lines.is_empty() {
            return Err(DataError::ManifestEmpty { manifest });
        }
        // A file without a line feed is one line.
        if let [OwnedLine { bytes, .. }] = &self.lines[..]
            && bytes.trim_ascii().contains(&b'\r')
        {
            return Err(DataError::ManifestLineEnds { manifest });
        }
        let readable = |line: &OwnedLine| !line.overlong;
        let texts: Vec<&str> = self
            .lines
            .iter()
            .filter(|line| readable(line))
            .filter_map(|line| std::str::from_utf8(&line.bytes).ok())
            .collect();
        if texts.is_empty() {
            let bytes: Vec<u8> = self.lines.iter().flat_map(|line| line.bytes.clone()).collect();
            let found = likely_encoding(&bytes).into();
            return Err(DataError::ManifestEncoding { manifest, found });
        }
        let first = std::str::from_utf8(&self.lines[0].bytes).unwrap_or_default();
        if let Some(columns) = Columns::from_header(first, separator) {
            return Ok((columns, 1));
        }
        let columns = Columns::guess(&texts, separator, second).map_err(|WrongCount(found)| {
            let likely = likely_separator(&texts, separator);
            let expected = "2 to 5".into();
            DataError::ManifestColumns { manifest, expected, found, separator, likely }
        })?;
        Ok((columns, 0))
    }
}

impl Sample {
    /// The second column has one word in every line.
    fn has_words_second(&self, separator: char) -> bool {
        self.lines.iter().filter_map(|line| std::str::from_utf8(&line.bytes).ok()).all(|line| {
            let word = line.split(separator).nth(1).unwrap_or_default().trim();
            !word.is_empty() && !word.contains(char::is_whitespace)
        })
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
