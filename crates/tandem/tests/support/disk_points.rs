//! The disk operations of a command, by name; see `--inject-failure`.

use super::{CommandOutput, TestDir};
use std::collections::BTreeMap;
use std::fs;

/// The disk operations of a command, in order, numbered by name: `write run/run.jsonl#2`. The command
/// must succeed.
#[track_caller]
pub fn changes(dir: &TestDir, args: &[&str]) -> Vec<String> {
    let log = dir.path("changes.log");
    let failure = format!("log:{}", log.display());
    let output = dir.run(&[args, &["--inject-failure", &failure]].concat());
    assert_eq!(output.code, Some(0), "{output:?}");
    let text = fs::read_to_string(&log).expect("changes were made");
    fs::remove_file(&log).expect("the log exists");
    let mut turns = BTreeMap::new();
    let name = |line: &str| {
        let turn = turns.entry(line.to_string()).or_insert(0);
        *turn += 1;
        format!("{line}#{turn}")
    };
    text.lines().map(name).collect()
}

/// Whether the command reached the operation at which its fault was to happen.
pub fn happened(output: &CommandOutput) -> bool {
    output.err.contains("injected failure: ")
}

/// Runs the command with a fault at one disk operation.
pub fn run_failing(dir: &TestDir, args: &[&str], what: &str, change: &str) -> CommandOutput {
    dir.run(&[args, &["--inject-failure", &format!("{what}:{change}")]].concat())
}
