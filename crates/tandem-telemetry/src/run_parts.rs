//! The records of a resumed run: their names, their order, and which one reports describe.
//!
//! A run directory holds `run.jsonl`, and one `run-from-*.jsonl` for each resume from a checkpoint. A part that
//! was killed before its first checkpoint keeps its record; the next one from the same step has a number behind its
//! name (`run-2.jsonl`). A path of the directory means the last part that has a training step.

use crate::reader::{RunRecord, visit_file};
use crate::{Event, TelemetryError};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// A longer first line is not a header.
const HEADER_LIMIT: u64 = 1 << 20;

/// One record of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPart {
    pub path: PathBuf,
    /// Start time in milliseconds since 1970 UTC; 0 where the first line is not a header.
    pub started: u64,
}

/// The path for the record of a part that resumes from `step`: a name that does not exist yet.
pub fn new_part(directory: &Path, step: u64) -> PathBuf {
    let name = match step {
        0 => "run".to_string(),
        step => format!("run-from-{step:08}"),
    };
    let turns = (2..).map(|turn| format!("{name}-{turn}"));
    let names = std::iter::once(name.clone()).chain(turns);
    let mut paths = names.map(|name| directory.join(format!("{name}.jsonl")));
    paths.find(|path| !path.exists()).expect("an endless list of names")
}

/// All parts in a directory, in the order they were started. Parts without a complete first line are left
/// out. Empty where the directory does not exist.
pub fn parts(directory: &Path) -> io::Result<Vec<RunPart>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut parts = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_part(&name) && path.is_file() {
            parts.extend(alone(&path));
        }
    }
    parts.sort_by(|a, b| (a.started, &a.path).cmp(&(b.started, &b.path)));
    Ok(parts)
}

/// A record with any name; `None` until its first line is complete.
pub fn alone(path: &Path) -> Option<RunPart> {
    started(path).map(|started| RunPart { path: path.to_path_buf(), started })
}

/// The record that a path means: the file itself, or the last part of a directory that has a step (the last part
/// where none has one).
pub fn main_part(path: &Path) -> Result<PathBuf, TelemetryError> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let failed = |source| TelemetryError::Read { path: path.to_path_buf(), source };
    let parts = parts(path).map_err(failed)?;
    let trained = parts.iter().rev().find(|part| has_step(&part.path));
    // Without parts, errors name the default file.
    let part = trained.or(parts.last()).map(|part| part.path.clone());
    Ok(part.unwrap_or_else(|| path.join(RunRecord::FILE_NAME)))
}

/// Whether a directory holds records, complete or not.
pub fn has_parts(directory: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        if is_part(&entry?.file_name().to_string_lossy()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `run.jsonl`, `run-2.jsonl`, `run-from-00000300.jsonl`, `run-from-00000300-2.jsonl`.
fn is_part(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("run").and_then(|rest| rest.strip_suffix(".jsonl")) else {
        return false;
    };
    let numbers = rest.strip_prefix("-from").unwrap_or(rest);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_empty() && !rest.ends_with("-from")
        || numbers.strip_prefix('-').is_some_and(|numbers| numbers.split('-').all(is_number))
}

fn started(path: &Path) -> Option<u64> {
    let mut line = Vec::new();
    let file = File::open(path).ok()?;
    BufReader::new(file).take(HEADER_LIMIT).read_until(b'\n', &mut line).ok()?;
    line.ends_with(b"\n").then(|| {
        let header = serde_json::from_slice::<serde_json::Value>(&line).ok();
        header.and_then(|header| header.get("started_unix_ms")?.as_u64()).unwrap_or(0)
    })
}

fn has_step(path: &Path) -> bool {
    let mut found = false;
    // A record that cannot be read is reported when its events are read.
    let _ = visit_file(path, |stamped| found |= matches!(stamped.event, Event::Step(_)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, name: &str, started: u64, steps: usize) {
        let header = include_str!("../../../docs/example-run.jsonl").lines().next().unwrap();
        let mut header: serde_json::Value = serde_json::from_str(header).unwrap();
        header["started_unix_ms"] = started.into();
        let step = include_str!("../../../docs/example-run.jsonl")
            .lines()
            .find(|line| line.contains("\"event\":\"step\""))
            .unwrap();
        let text = format!("{header}\n{}", format!("{step}\n").repeat(steps));
        fs::write(directory.join(name), text).unwrap();
    }

    #[test]
    fn names_of_parts_are_recognised() {
        for name in
            ["run.jsonl", "run-2.jsonl", "run-from-00000300.jsonl", "run-from-00000300-2.jsonl"]
        {
            assert!(is_part(name), "{name}");
        }
        for name in
            ["run-from.jsonl", "run-.jsonl", "runs.jsonl", "run-a.jsonl", "run", "xrun.jsonl"]
        {
            assert!(!is_part(name), "{name}");
        }
    }

    #[test]
    fn new_names_are_parts_and_never_taken() {
        let dir = tempfile::tempdir().unwrap();
        for step in [0, 0, 0, 300, 300] {
            let path = new_part(dir.path(), step);
            assert!(is_part(&path.file_name().unwrap().to_string_lossy()), "{path:?}");
            File::create_new(path).unwrap();
        }
    }

    #[test]
    fn a_directory_means_its_last_part_with_a_step() {
        let dir = tempfile::tempdir().unwrap();
        let main = || {
            let path = main_part(dir.path()).unwrap();
            path.file_name().unwrap().to_string_lossy().into_owned()
        };
        assert_eq!(main(), "run.jsonl", "the usual name where there is none");
        // Begun later, and earlier by name.
        write(dir.path(), "run.jsonl", 100, 0);
        assert_eq!(main(), "run.jsonl");
        write(dir.path(), "run-from-00000300.jsonl", 300, 2);
        write(dir.path(), "run-2.jsonl", 200, 5);
        assert_eq!(main(), "run-from-00000300.jsonl");
        // Resumed after the last step: nothing was trained.
        write(dir.path(), "run-from-00000600.jsonl", 600, 0);
        fs::write(dir.path().join("run-from-00000900.jsonl"), "{\"event\":").unwrap();
        assert_eq!(main(), "run-from-00000300.jsonl");
        let order: Vec<u64> = parts(dir.path()).unwrap().iter().map(|part| part.started).collect();
        assert_eq!(order, [100, 200, 300, 600]);
    }
}
