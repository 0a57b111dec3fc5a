//! The records in the directory of a run, each with an identity beyond its name.

use crate::error::PageError;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tandem_telemetry::run_parts::{self, RunPart};

/// Identity of a file: device, inode and start time of the run, since a file may be replaced by
/// another one of the same name.
pub(super) type Identity = (u64, u64, u64);

/// A part of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    pub(super) length: u64,
}

/// All parts in a directory in the order they were started, or a single record; parts without a complete
/// first line are left for later.
pub(super) fn of(place: &Path) -> Result<Vec<Part>, PageError> {
    let failed = |source| PageError::Read { path: place.to_path_buf(), source };
    let found = match place.is_dir() {
        true => run_parts::parts(place).map_err(failed)?,
        false => run_parts::alone(place).into_iter().collect(),
    };
    Ok(found.into_iter().filter_map(part).collect())
}

fn part(found: RunPart) -> Option<Part> {
    let facts = fs::metadata(&found.path).ok().filter(fs::Metadata::is_file)?;
    let identity = (facts.dev(), facts.ino(), found.started);
    Some(Part { path: found.path, identity, length: facts.len() })
}
