//! The checkpoints of a directory: their names, which is the best, and what has to go.
//!
//! A step that is written again gets a directory of its own (`step-00001200-2`): replacing one
//! directory by another is not a single act on every disk. Removing begins with a rename too, so that
//! a kill leaves no half checkpoint under a good name.

use super::error::{CheckpointError, Fault};
use super::{Keep, Tidied, read, sealed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tandem_disk::replace_file::{self, draft_path, replace_file};

/// The mark of the best checkpoint.
pub const BEST: &str = "best.json";
const NAME: &str = "step-";
const ASIDE: &str = "aside-";

/// The name of a checkpoint, in the order of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Steps done.
    pub step: u64,
    /// How often this step was written: 1, 2, ...
    pub turn: u32,
}

/// The best checkpoint so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// Its directory.
    pub path: PathBuf,
    /// Steps it was trained for.
    pub step: u64,
    /// How good; lower is better.
    pub score: f64,
}

#[derive(Serialize, Deserialize)]
struct BestMark {
    step: u64,
    turn: u32,
    score: f64,
}

impl Place {
    fn name(self) -> String {
        match self.turn {
            1 => format!("{NAME}{:08}", self.step),
            turn => format!("{NAME}{:08}-{turn}", self.step),
        }
    }

    /// The place that a directory's name stands for; none for other names.
    pub fn parse(name: &str) -> Option<Place> {
        let numbers = name.strip_prefix(NAME)?;
        let (step, turn) = numbers.split_once('-').unwrap_or((numbers, "1"));
        let place = Place { step: step.parse().ok()?, turn: turn.parse().ok()? };
        // One name for one place: no signs, no further zeros.
        (place.name() == name).then_some(place)
    }

    /// The checkpoint's directory.
    pub fn path(self, directory: &Path) -> PathBuf {
        directory.join(self.name())
    }
}

/// All checkpoints by name, oldest first.
pub fn list(directory: &Path) -> Result<Vec<Place>, CheckpointError> {
    let names = names(directory)?;
    let mut places: Vec<Place> = names.iter().filter_map(|name| Place::parse(name)).collect();
    places.sort_unstable();
    Ok(places)
}

/// Where the next checkpoint of this step goes.
pub fn next_place(directory: &Path, step: u64) -> Result<Place, CheckpointError> {
    let taken = list(directory)?.into_iter().rfind(|place| place.step == step);
    Ok(Place { step, turn: taken.map_or(1, |place| place.turn + 1) })
}

/// The best checkpoint; none where none was marked.
pub fn best(directory: &Path) -> Result<Option<Best>, CheckpointError> {
    let path = directory.join(BEST);
    let mark = match read::small_file(&path, BEST) {
        Err(Fault::Missing { .. }) => return Ok(None),
        text => text.and_then(|text| sealed::open::<BestMark>(BEST, &text)),
    };
    let BestMark { step, turn, score } =
        mark.map_err(|fault| CheckpointError::BestUnreadable { path, fault })?;
    Ok(Some(Best { path: Place { step, turn }.path(directory), step, score }))
}

/// Makes a checkpoint the best one, at once or not at all.
pub fn mark_best(directory: &Path, place: Place, score: f64) -> Result<(), CheckpointError> {
    if !score.is_finite() {
        return Err(CheckpointError::Score { score });
    }
    let mark = BestMark { step: place.step, turn: place.turn, score };
    let text = sealed::seal(&mark)
        .map_err(|source| CheckpointError::Document { name: "best".into(), source })?;
    let path = directory.join(BEST);
    replace_file(&path, &text).map_err(|source| CheckpointError::Write { path, source })
}

/// After a checkpoint was written: removes older ones, and sets aside those that claim to be newer.
/// The `keep` newest, the pinned steps and the best one stay.
pub fn tidy(directory: &Path, newest: Place, keep: Keep, pinned: &BTreeSet<u64>) -> Tidied {
    let mut tidied = Tidied::default();
    let (places, best) = match (list(directory), best(directory)) {
        (Ok(places), Ok(best)) => (places, best),
        // Without knowing which is the best, nothing is removed.
        (places, best) => {
            tidied.failed.extend(places.err().into_iter().chain(best.err()));
            return tidied;
        }
    };
    let mut kept_steps = Vec::new();
    let mut previous_step = None;
    for place in places.into_iter().rev() {
        let path = place.path(directory);
        let is_best = best.as_ref().is_some_and(|best| best.path == path);
        // Newest first: the first one of a step is the one that a pin protects.
        let first_of_step = previous_step.replace(place.step) != Some(place.step);
        let is_pinned = first_of_step && pinned.contains(&place.step);
        if place > newest {
            if !is_pinned {
                let moved = set_aside(directory, place, is_best);
                tidied.note(moved, |tidied| &mut tidied.set_aside);
            }
        } else if first_of_step && kept_steps.len() < keep.last.max(1) {
            kept_steps.push(place.step);
        } else if !is_best && !is_pinned {
            tidied.note(remove(&path), |tidied| &mut tidied.removed);
        }
    }
    tidied
}

/// Removes what killed runs were writing or removing. The caller holds the directory's lock.
pub fn remove_drafts(directory: &Path) -> Result<(), CheckpointError> {
    for name in names(directory)?.iter().filter(|name| is_draft(name)) {
        let path = directory.join(name);
        let removed = match fs::symlink_metadata(&path) {
            Ok(entry) if entry.is_dir() => tandem_disk::remove_dir_all(&path),
            _ => tandem_disk::remove_file(&path),
        };
        removed.map_err(|source| CheckpointError::Write { path, source })?;
    }
    Ok(())
}

/// `.step-00001200.draft-812`, `.best.json.draft-812`: nothing else is ours to remove.
fn is_draft(name: &str) -> bool {
    let parts = name.strip_prefix('.').and_then(|name| name.split_once(".draft-"));
    parts.is_some_and(|(of, process)| {
        (of == BEST || Place::parse(of).is_some())
            && !process.is_empty()
            && process.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn remove(path: &Path) -> Result<PathBuf, CheckpointError> {
    let gone = draft_path(path);
    let removed =
        tandem_disk::rename(path, &gone).and_then(|()| tandem_disk::remove_dir_all(&gone));
    match removed {
        Ok(()) => Ok(path.to_path_buf()),
        Err(source) => Err(CheckpointError::Write { path: path.to_path_buf(), source }),
    }
}

/// Renames a checkpoint so that it is not listed any more. The mark of the best goes first, so that
/// it never names a checkpoint that is not there.
fn set_aside(directory: &Path, place: Place, is_best: bool) -> Result<PathBuf, CheckpointError> {
    let from = place.path(directory);
    if is_best {
        let mark = directory.join(BEST);
        tandem_disk::remove_file(&mark)
            .and_then(|()| replace_file::sync_directory(&mark))
            .map_err(|source| CheckpointError::Write { path: mark, source })?;
    }
    let free = |number: u32| {
        let more = if number == 1 { String::new() } else { format!(".{number}") };
        let to = directory.join(format!("{ASIDE}{}{more}", place.name()));
        (!to.exists()).then_some(to)
    };
    let moved = match (1..1000).find_map(free) {
        Some(to) => tandem_disk::rename(&from, &to)
            .and_then(|()| replace_file::sync_directory(&to))
            .map(|()| to),
        None => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
    };
    moved.map_err(|source| CheckpointError::Write { path: from, source })
}

fn names(directory: &Path) -> Result<Vec<String>, CheckpointError> {
    let failed = |source| CheckpointError::Read { path: directory.to_path_buf(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        // A name that is no text is none of ours.
        names.extend(entry.map_err(failed)?.file_name().into_string().ok());
    }
    Ok(names)
}

impl Tidied {
    fn note(
        &mut self,
        done: Result<PathBuf, CheckpointError>,
        list: impl Fn(&mut Tidied) -> &mut Vec<PathBuf>,
    ) {
        match done {
            Ok(path) => list(self).push(path),
            Err(error) => self.failed.push(error),
        }
    }
}
