//! Reads a run record back, as much of it as is there.
//!
//! In: a file that a run wrote, is still writing, or left behind when it was killed. Out:
//! [`RunRecord`], or the same line by line through [`visit`]. A torn last line, a damaged line
//! and events of a newer minor version are counted and ignored; another program's file is
//! an error. No input causes a panic or needs more memory than one long line. Next: [`crate::summary`].

use crate::error::TelemetryError;
use crate::event::{Event, Kind, RunHeader, Schema, Stamped};
use crate::run_parts::main_part;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// A whole record in memory, for tools that need every event.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    pub header: RunHeader,
    /// All lines that could be read, the first one included, in the order of the file.
    pub events: Vec<Stamped>,
    /// What could not be read.
    pub notes: ReadNotes,
}

/// What a reader ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadNotes {
    /// Lines read, good or not.
    pub lines: u64,
    /// Unknown events of a newer version, by tag.
    pub unknown: BTreeMap<String, u64>,
    pub broken: u64,
    /// The first of them, counted from one.
    pub first_broken: Option<u64>,
    /// Bytes of a last line that was cut off, as a killed program leaves it.
    pub torn: Option<u64>,
}

impl RunRecord {
    /// The name of the first record in a run's directory.
    pub const FILE_NAME: &'static str = "run.jsonl";

    /// Reads a record; `path` is the file or the run's directory.
    pub fn read(path: &Path) -> Result<RunRecord, TelemetryError> {
        let mut events = Vec::new();
        let (header, notes) = visit(path, |stamped| events.push(stamped))?;
        Ok(RunRecord { header, events, notes })
    }
}

/// Reads a record line by line without keeping it; `each` sees the header first. Of a run's directory it is the part
/// that [`main_part`] names.
pub fn visit(
    path: &Path,
    each: impl FnMut(Stamped),
) -> Result<(RunHeader, ReadNotes), TelemetryError> {
    visit_file(&main_part(path)?, each)
}

/// The same for one file.
pub(crate) fn visit_file(
    path: &Path,
    each: impl FnMut(Stamped),
) -> Result<(RunHeader, ReadNotes), TelemetryError> {
    let failed = |source| TelemetryError::Open { path: path.to_path_buf(), source };
    let file = File::open(path).map_err(failed)?;
    visit_from(BufReader::with_capacity(1 << 16, file), path, each)
}

/// The same for anything that can be read; `path` is its name in errors.
pub fn visit_from(
    source: impl BufRead,
    path: &Path,
    mut each: impl FnMut(Stamped),
) -> Result<(RunHeader, ReadNotes), TelemetryError> {
    let mut lines = Lines::new(source);
    let failed = |source| TelemetryError::Read { path: path.to_path_buf(), source };
    let Some(first) = lines.next().map_err(failed)? else {
        return Err(TelemetryError::Empty { path: path.to_path_buf() });
    };
    let first = header(first, path)?;
    let Event::Run(header) = &first.event else {
        return Err(TelemetryError::Foreign { path: path.to_path_buf() });
    };
    let header = (**header).clone();
    each(first);
    let mut notes = ReadNotes { lines: 1, ..ReadNotes::default() };
    while let Some(line) = lines.next().map_err(failed)? {
        notes.lines += 1;
        match serde_json::from_slice(line.bytes) {
            Ok(stamped) => each(stamped),
            Err(_) => notes.ignore(&line),
        }
    }
    Ok((header, notes))
}

/// Longer than any valid line. A longer line is damage and must not fill the memory.
const LONGEST_LINE: u64 = 16 << 20;

struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
}

struct Line<'a> {
    bytes: &'a [u8],
    end: LineEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Complete,
    Missing,
}

impl<R: BufRead> Lines<R> {
    fn new(source: R) -> Lines<R> {
        Lines { source, buffer: Vec::new() }
    }

    fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let read = (&mut self.source).take(LONGEST_LINE).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        let mut end = LineEnd::Missing;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
            end = LineEnd::Complete;
        }
        Ok(Some(Line { bytes: &self.buffer, end }))
    }
}

impl ReadNotes {
    fn ignore(&mut self, line: &Line<'_>) {
        if line.end == LineEnd::Missing {
            self.torn = Some(line.bytes.len() as u64);
            return;
        }
        match serde_json::from_slice::<Tag>(line.bytes) {
            Ok(tag) if Kind::ALL.iter().all(|kind| kind.name() != tag.event) => {
                *self.unknown.entry(tag.event).or_default() += 1;
            }
            _ => {
                self.broken += 1;
                self.first_broken.get_or_insert(self.lines);
            }
        }
    }
}

#[derive(Deserialize)]
struct Tag {
    event: String,
}

/// Header fields that no version may change.
#[derive(Deserialize)]
struct Opening {
    format: String,
    schema: Schema,
}

fn header(line: Line<'_>, path: &Path) -> Result<Stamped, TelemetryError> {
    let path: PathBuf = path.to_path_buf();
    match serde_json::from_slice::<Opening>(line.bytes) {
        Ok(opening) if opening.format != RunHeader::FORMAT => Err(TelemetryError::Foreign { path }),
        Ok(opening) if opening.schema.major != Schema::CURRENT.major => {
            Err(TelemetryError::Version { path, found: opening.schema })
        }
        Ok(_) => serde_json::from_slice(line.bytes).map_err(|_| TelemetryError::Foreign { path }),
        Err(_) if line.end == LineEnd::Missing && line.bytes.starts_with(HEADER_START) => {
            Err(TelemetryError::Empty { path })
        }
        Err(_) => Err(TelemetryError::Foreign { path }),
    }
}

/// How our first line begins, even when it was cut off.
const HEADER_START: &[u8] = b"{\"at\":0,\"event\":\"run\"";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Nanos;
    use crate::event::Warning;
    use proptest::prelude::*;
    use tandem_units::Hint;

    fn good() -> Vec<u8> {
        let header = RunHeader::now("tandem", "0.0.0", serde_json::json!({}));
        let mut lines = vec![Stamped { at: Nanos(0), event: Event::Run(Box::new(header)) }];
        lines.extend((1..5).map(|at| Stamped {
            at: Nanos(at),
            event: Warning { code: "x".into(), text: "«سلام»\n".into() }.into(),
        }));
        let lines = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n");
        lines.collect::<String>().into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<(Vec<Stamped>, ReadNotes), TelemetryError> {
        let mut events = Vec::new();
        let (_, notes) = visit_from(bytes, Path::new("test"), |stamped| events.push(stamped))?;
        Ok((events, notes))
    }

    #[test]
    fn a_whole_record_comes_back_whole() {
        let (events, notes) = read(&good()).unwrap();
        assert_eq!((events.len(), notes), (5, ReadNotes { lines: 5, ..Default::default() }));
    }

    #[test]
    fn a_torn_last_line_is_reported_and_the_rest_is_used() {
        let mut bytes = good();
        bytes.extend_from_slice(b"{\"at\":9,\"event\":\"warn");
        let (events, notes) = read(&bytes).unwrap();
        assert_eq!((events.len(), notes.torn, notes.broken), (5, Some(21), 0));
    }

    #[test]
    fn events_of_a_newer_program_are_counted() {
        let mut bytes = good();
        bytes.extend_from_slice(b"{\"at\":9,\"event\":\"aurora\"}\nnonsense\n");
        bytes.extend_from_slice(b"{\"at\":9,\"event\":\"warning\"}\n");
        let (events, notes) = read(&bytes).unwrap();
        assert_eq!(events.len(), 5);
        assert_eq!(notes.unknown, BTreeMap::from([("aurora".to_string(), 1)]));
        assert_eq!((notes.broken, notes.first_broken), (2, Some(7)));
    }

    #[track_caller]
    fn check_refused(bytes: &[u8], fact: &str) {
        let error = read(bytes).unwrap_err();
        assert!(error.to_string().contains(fact), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }

    #[test]
    fn other_files_are_refused_with_a_hint() {
        check_refused(b"", "is empty");
        check_refused(b"{\"at\":0,\"event\":\"run\",\"form", "is empty");
        check_refused(b"id|text|normalised\n", "is not a run record");
        check_refused(b"\x7fELF\x02\x01\x01", "is not a run record");
        check_refused(b"{\"at\":0,\"event\":\"warning\",\"code\":\"\",\"text\":\"\"}\n", "is not");
        let newer = String::from_utf8(good()).unwrap().replace("\"major\":1", "\"major\":2");
        check_refused(newer.as_bytes(), "has format 2.3, this program reads 1.x");
    }

    #[test]
    fn a_newer_minor_version_is_read() {
        let newer = String::from_utf8(good()).unwrap().replace("\"minor\":2", "\"minor\":7");
        assert_eq!(read(newer.as_bytes()).unwrap().0.len(), 5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_cut_leaves_all_complete_lines(cut in 0usize..2000) {
            let whole = good();
            let bytes = &whole[..cut.min(whole.len())];
            let complete = bytes.iter().filter(|&&byte| byte == b'\n').count();
            match read(bytes) {
                Ok((events, notes)) => {
                    prop_assert!(events.len() >= complete && notes.broken == 0);
                }
                Err(_) => prop_assert_eq!(complete, 0),
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&bytes);
            let _ = read(&[good(), bytes].concat());
        }

        #[test]
        fn a_flipped_byte_never_panics(place in 0usize..2000, flip in 1u8..=255) {
            let mut bytes = good();
            let place = place % bytes.len();
            bytes[place] ^= flip;
            let _ = read(&bytes);
        }
    }
}
