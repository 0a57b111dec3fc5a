//! Which records the directory of a run holds, in the order they were begun.

use crate::error::PageError;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tandem_telemetry::RunRecord;

/// What tells two files of the same name apart: device, inode, and when the run was begun, since
/// a file may be written anew in its place.
pub(super) type Identity = (u64, u64, u64);

/// A part of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    pub(super) length: u64,
}

/// All parts in a directory; those whose first line is not there yet are left for later.
pub(super) fn of(directory: &Path) -> Result<Vec<Part>, PageError> {
    let mut parts: Vec<Part> = names(directory)?.iter().filter_map(|path| part(path)).collect();
    parts.sort_by_key(|part| (part.identity.2, part.path.clone()));
    Ok(parts)
}

/// Files that are named as a record is; none where there is no directory.
pub(super) fn names(directory: &Path) -> Result<Vec<PathBuf>, PageError> {
    let failed = |source| PageError::Read { path: directory.to_path_buf(), source };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == RunRecord::FILE_NAME
            || (name.starts_with("run-from-") && name.ends_with(".jsonl"))
        {
            names.push(path);
        }
    }
    Ok(names)
}

/// One record by itself; none while it is not there.
pub(super) fn alone(path: &Path) -> Result<Vec<Part>, PageError> {
    Ok(part(path).into_iter().collect())
}

fn part(path: &Path) -> Option<Part> {
    let facts = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let begun = begun(path)?;
    let identity = (facts.dev(), facts.ino(), begun);
    Some(Part { path: path.to_path_buf(), identity, length: facts.len() })
}

/// When the record was begun, by its first line; none while that is not complete. What is not a
/// header of ours sorts first and is refused by whoever reads it.
fn begun(path: &Path) -> Option<u64> {
    let mut line = Vec::new();
    let file = File::open(path).ok()?;
    BufReader::new(file).take(1 << 20).read_until(b'\n', &mut line).ok()?;
    line.ends_with(b"\n").then(|| {
        let header = serde_json::from_slice::<serde_json::Value>(&line).ok();
        header.and_then(|header| header.get("started_unix_ms")?.as_u64()).unwrap_or(0)
    })
}
