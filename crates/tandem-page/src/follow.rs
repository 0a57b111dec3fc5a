//! Follows a run record on the disk while it is being written.
//!
//! In: a record, or the directory of a run, which may hold several parts: `run.jsonl`, and one
//! `run-from-*.jsonl` for each resume. Out: an up-to-date [`RunView`]. A new part continues the view; a
//! record that was replaced or truncated restarts it; a record that is missing for a moment is
//! waited for. The records of other ranks, in `ranks/N`, are followed in the same way and become part of the view.
//! Reads only: the run is not affected.

mod parts; // which records a directory holds

use crate::error::PageError;
use crate::view::RunView;
use parts::Identity;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tandem_telemetry::event::{Event, Kind, Stamped};
use tandem_telemetry::ranks::{rank_directories, same_job};
use tandem_telemetry::reader::visit_from;
use tandem_telemetry::run_parts::has_parts;
use tandem_telemetry::{ReadNotes, TelemetryError};

/// Keeps a view up to date with the record of a run.
#[derive(Debug)]
pub struct Follower {
    place: PathBuf,
    open: Option<Open>,
    view: Arc<RunView>,
    /// Those of the other ranks.
    ranks: BTreeMap<usize, Follower>,
}

/// Result of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// New events.
    More,
}

/// A record that is being read.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    identity: Identity,
    offset: u64,
    // The beginning of a line whose end is not written yet.
    partial: Vec<u8>,
    header_seen: bool,
}

/// Longer than any valid line. A longer line is damage and must not fill the memory.
const LONGEST_LINE: usize = 16 << 20;

impl Follower {
    /// Starts to follow and reads the existing events. `place` is a record or a run's directory.
    pub fn start(place: &Path) -> Result<Follower, PageError> {
        let mut follower = Follower {
            place: place.to_path_buf(),
            open: None,
            view: Arc::default(),
            ranks: BTreeMap::new(),
        };
        let unreadable = |source| PageError::Read { path: place.to_path_buf(), source };
        if place.is_dir() && !has_parts(place).map_err(unreadable)? {
            return Err(PageError::NoRecord { path: place.to_path_buf() });
        }
        if !place.is_dir() {
            refuse_what_is_no_record(place)?;
        }
        follower.poll()?;
        Ok(follower)
    }

    /// The present view. Cheap: a shared pointer.
    pub fn view(&self) -> Arc<RunView> {
        Arc::clone(&self.view)
    }

    /// Directory of the run's other files.
    pub fn directory(&self) -> PathBuf {
        if self.place.is_dir() {
            return self.place.clone();
        }
        self.place.parent().map(Path::to_path_buf).unwrap_or_default()
    }

    /// Reads what was written since the last poll, by all ranks.
    pub fn poll(&mut self) -> Result<Found, PageError> {
        let own = self.poll_own()?;
        let ranks = self.poll_ranks();
        Ok(if ranks == Found::More { Found::More } else { own })
    }

    /// The record of another rank may be missing: only the merged view is poorer without it.
    fn poll_ranks(&mut self) -> Found {
        let header = self.view.summary.header.as_ref();
        let places = match self.place.is_dir() {
            true => rank_directories(&self.place, header),
            false => Vec::new(),
        };
        for (rank, place) in places {
            match self.ranks.get_mut(&rank) {
                Some(follower) => drop(follower.poll()),
                None => self.ranks.extend(Follower::start(&place).ok().map(|new| (rank, new))),
            }
        }
        let followed = self.ranks.iter().map(|(rank, follower)| (rank, &follower.view.summary));
        let of_this_job = followed.filter(|(_, found)| same_job(header, found.header.as_ref()));
        let others: BTreeMap<_, _> =
            of_this_job.map(|(rank, found)| (*rank, found.clone())).collect();
        if others == self.view.summary.other_ranks {
            return Found::Nothing;
        }
        Arc::make_mut(&mut self.view).summary.other_ranks = others;
        Found::More
    }

    fn poll_own(&mut self) -> Result<Found, PageError> {
        let parts = self.parts()?;
        let mut found = Found::Nothing;
        let current = self.open.as_ref().and_then(|open| {
            let same = |part: &parts::Part| part.identity == open.identity;
            let place = parts.iter().position(same)?;
            // A record that became shorter is a new one with the same name.
            (parts[place].length >= open.offset).then_some(place)
        });
        let next = match (current, &self.open) {
            (Some(place), _) => {
                found = self.read()?;
                place + 1
            }
            (None, None) => 0,
            // Missing for a moment: the view stays until there is a new record.
            (None, Some(_)) if parts.is_empty() => return Ok(Found::Nothing),
            (None, Some(_)) => {
                self.view = Arc::default();
                self.open = None;
                found = Found::More;
                0
            }
        };
        for part in &parts[next.min(parts.len())..] {
            if self.open.is_some() {
                Arc::make_mut(&mut self.view).next_part();
            }
            self.open = Some(Open::new(part)?);
            self.read()?;
            found = Found::More;
        }
        Ok(found)
    }

    fn parts(&self) -> Result<Vec<parts::Part>, PageError> {
        parts::of(&self.place)
    }

    fn read(&mut self) -> Result<Found, PageError> {
        let Some(open) = &mut self.open else { return Ok(Found::Nothing) };
        let mut chunk = vec![0; 1 << 16];
        let mut found = Found::Nothing;
        loop {
            let count = match open.file.read(&mut chunk) {
                Ok(0) => return Ok(found),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    return Err(PageError::Read { path: open.path.clone(), source });
                }
            };
            found = Found::More;
            open.offset += count as u64;
            open.partial.extend_from_slice(&chunk[..count]);
            open.take_lines(Arc::make_mut(&mut self.view))?;
        }
    }
}

/// A file that begins like a record may still get its first line; any other file is refused.
fn refuse_what_is_no_record(path: &Path) -> Result<(), PageError> {
    let file = File::open(path)
        .map_err(|source| TelemetryError::Open { path: path.to_path_buf(), source })?;
    let mut line = Vec::new();
    let read = BufReader::new(file).take(LONGEST_LINE as u64).read_until(b'\n', &mut line);
    read.map_err(|source| PageError::Read { path: path.to_path_buf(), source })?;
    match visit_from(line.as_slice(), path, |_| {}) {
        Ok(_) | Err(TelemetryError::Empty { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Open {
    fn new(part: &parts::Part) -> Result<Open, PageError> {
        let path = part.path.clone();
        let file = File::open(&path)
            .map_err(|source| TelemetryError::Open { path: path.clone(), source })?;
        let (identity, partial) = (part.identity, Vec::new());
        Ok(Open { path, file, identity, offset: 0, partial, header_seen: false })
    }

    fn take_lines(&mut self, view: &mut RunView) -> Result<(), PageError> {
        let Some(end) = self.partial.iter().rposition(|byte| *byte == b'\n') else {
            if self.partial.len() > LONGEST_LINE {
                self.partial.clear();
                note(view).broken += 1;
            }
            return Ok(());
        };
        let rest = self.partial.split_off(end + 1);
        let lines = std::mem::replace(&mut self.partial, rest);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if !self.header_seen {
                // Gives the error of a foreign file or another format version.
                visit_from(line, &self.path, |stamped| view.add(&stamped))?;
                self.header_seen = true;
                note(view).lines += 1;
                continue;
            }
            add(line, view);
        }
        Ok(())
    }
}

fn add(line: &[u8], view: &mut RunView) {
    note(view).lines += 1;
    match serde_json::from_slice::<Stamped>(line) {
        // A second header is damage: it would restart the summary.
        Ok(stamped) if !matches!(stamped.event, Event::Run(_)) => view.add(&stamped),
        _ => pass_over(line, note(view)),
    }
}

/// Distinguishes events of a newer version from damage, as [`tandem_telemetry::reader`] does.
fn pass_over(line: &[u8], notes: &mut ReadNotes) {
    let tag = serde_json::from_slice::<serde_json::Value>(line)
        .ok()
        .and_then(|value| Some(value.get("event")?.as_str()?.to_string()));
    match tag.filter(|tag| Kind::ALL.iter().all(|kind| kind.name() != tag)) {
        Some(tag) => *notes.unknown.entry(tag).or_default() += 1,
        None => {
            notes.broken += 1;
            notes.first_broken.get_or_insert(notes.lines);
        }
    }
}

fn note(view: &mut RunView) -> &mut ReadNotes {
    view.notes.get_or_insert_default()
}

#[cfg(test)]
mod tests;
