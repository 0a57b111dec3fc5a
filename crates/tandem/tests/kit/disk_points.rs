//! Every change that a command makes to the disk, by name; see `--disk-trouble`.

use super::{Place, Said};
use std::collections::BTreeMap;
use std::fs;

/// The changes that a command makes, in order, each with its turn: `write run/run.jsonl#2`. The
/// command must end well.
#[track_caller]
pub fn changes(place: &Place, args: &[&str]) -> Vec<String> {
    let log = place.inside("changes.log");
    let trouble = format!("log:{}", log.display());
    let said = place.run(&[args, &["--disk-trouble", &trouble]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let text = fs::read_to_string(&log).expect("changes were made");
    fs::remove_file(&log).expect("our own");
    let mut turns = BTreeMap::new();
    let name = |line: &str| {
        let turn = turns.entry(line.to_string()).or_insert(0);
        *turn += 1;
        format!("{line}#{turn}")
    };
    text.lines().map(name).collect()
}

/// The command with trouble before one change.
pub fn trouble(place: &Place, args: &[&str], what: &str, change: &str) -> Said {
    place.run(&[args, &["--disk-trouble", &format!("{what}:{change}")]].concat())
}
