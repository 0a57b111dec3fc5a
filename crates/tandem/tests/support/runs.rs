//! Reads records and checkpoints of a run, and draws random delays.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The note that `--resume` prints for a damaged checkpoint. `a_damaged_newest_checkpoint_is_skipped_and_named`
/// checks that it is printed, so tests and scripts may rely on its absence.
pub const CHECKPOINT_SKIPPED: &str = "is damaged and is not used";

/// Training with small batches, without flat start.
pub const SMALL_STEPS: [&str; 14] = [
    "train",
    "--train-data",
    "demo",
    "--cache-dataset",
    "--batch-size",
    "2",
    "--frame-budget",
    "800",
    "--align-flat-start",
    "0",
    "--align-every",
    "2",
    "--align-lag",
    "2",
];

/// Every step of a run: batch, rows, frames, shape and exact losses, without times.
pub fn steps(run: &Path) -> BTreeMap<u64, serde_json::Value> {
    parts(run).iter().flat_map(|part| lines(part)).collect()
}

pub fn lines(part: &Path) -> Vec<(u64, serde_json::Value)> {
    let text = fs::read_to_string(part).unwrap();
    // A kill may cut the last line off.
    let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    let steps = lines.filter(|line: &serde_json::Value| line["event"] == "step");
    let without_times = |mut line: serde_json::Value| {
        let fields = line.as_object_mut().unwrap();
        ["at", "took", "waited", "cpu", "preempted", "work"].iter().for_each(|name| {
            fields.remove(*name);
        });
        (line["step"].as_u64().unwrap(), line)
    };
    steps.map(without_times).collect()
}

pub fn parts(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect()
}

/// The step of the newest complete checkpoint.
pub fn newest(run: &Path) -> Option<u64> {
    let entries = fs::read_dir(run).ok()?.map(|entry| entry.unwrap().file_name());
    let step = |name: std::ffi::OsString| name.to_str()?.strip_prefix("step-")?.parse().ok();
    entries.filter_map(step).max()
}

/// Random delays from a new seed in every run; failure messages show the seed.
#[derive(Debug)]
pub struct RandomDelay {
    #[allow(dead_code, reason = "for messages")]
    seed: u64,
    state: u64,
}

impl RandomDelay {
    pub fn new() -> RandomDelay {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seed = now.as_nanos() as u64 | 1;
        RandomDelay { seed, state: seed }
    }

    pub fn up_to(&mut self, milliseconds: u64) -> Duration {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        Duration::from_millis(self.state % milliseconds)
    }
}
