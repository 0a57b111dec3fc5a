//! The real program, ended by SIGKILL before each change that it makes to the disk, and each change
//! refused as a full and as a broken disk does. Some of them on every change of the code, every one with
//! `--run-ignored all`.

mod kit;

use kit::disk_points::{changes, trouble};
use kit::runs::{SMALL_STEPS, lines, newest, parts, steps};
use kit::{Place, Said};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const PREPARE: [&str; 5] = ["prepare", "corpus", "--cache-dataset", "--num-workers", "1"];
const BEFORE: &str = "a|one\nb|two\nc|three\nd|four\ne|five\nf|six\n";
/// Most rows go, others come: segments are copied together and removed.
const AFTER: &str = "e|five\nf|six\ng|seven\nh|eight\ni|\n";

const TRAIN: [&str; 13] = [
    "--model-size",
    "micro",
    "--model-start-delay",
    "0",
    "--checkpoint-every",
    "2",
    "--sample-every",
    "3",
    "--max-steps",
    "6",
    "--html",
    "page.html",
    "--checkpoint-dir",
];
/// What happens, and what the system calls it.
const TROUBLES: [(&str, &str); 2] = [("full", "No space left"), ("broken", "Input/output error")];
const LAST: &str = "step-00000006";

/// A corpus whose cache is of an older manifest.
fn changed_corpus() -> Place {
    let place = Place::with_clips(9, BEFORE);
    place.prepare(&["--cache-dataset"]);
    place.write("metadata.csv", AFTER.as_bytes());
    place
}

/// What is known of the corpus in the end, without what this run did for it.
#[track_caller]
fn prepared(place: &Place) -> Value {
    let mut summary = place.prepare(&["--cache-dataset"]);
    let fields = summary.as_object_mut().unwrap();
    for of_this_run in
        ["rebuilt", "recovered", "touched", "damage", "took", "peak_memory", "cache", "root"]
    {
        fields.remove(of_this_run);
    }
    let batches = place.run(&["batches", "corpus", "--cache-dataset", "--json"]).json();
    fields.insert("batches".into(), batches);
    // Each place has a path of its own.
    let text = summary.to_string().replace(&place.inside("").display().to_string(), "");
    serde_json::from_str(&text).unwrap()
}

/// Every `step`-th of all changes, from the first on.
fn some(changes: Vec<String>, step: usize) -> impl Iterator<Item = String> {
    changes.into_iter().step_by(step)
}

fn preparing_is_killed(every: usize) {
    let clean = changed_corpus();
    let all = changes(&clean, &PREPARE);
    assert!(all.len() > 25, "{all:?}");
    let wanted = prepared(&clean);
    for change in some(all, every) {
        let place = changed_corpus();
        let said = trouble(&place, &PREPARE, "kill", &change);
        assert_eq!(said.code, None, "not killed at `{change}`: {said:?}");
        assert_eq!(prepared(&place), wanted, "killed at `{change}`");
    }
}

fn preparing_is_refused(every: usize) {
    let clean = changed_corpus();
    let all = changes(&clean, &PREPARE);
    let wanted = prepared(&clean);
    for (what, words) in TROUBLES {
        for change in some(all.clone(), every) {
            let place = changed_corpus();
            let said = trouble(&place, &PREPARE, what, &change);
            assert_eq!(said.code, Some(2), "{what} at `{change}`: {said:?}");
            assert!(said.err.contains(words) && said.err.contains("corpus"), "{change}: {said:?}");
            no_panic(&said, &change);
            assert_eq!(prepared(&place), wanted, "{what} at `{change}`");
        }
    }
}

#[track_caller]
fn no_panic(said: &Said, change: &str) {
    assert!(!said.err.contains("panicked"), "`{change}`: {}", said.err);
    assert!(said.err.matches("error:").count() <= 1, "`{change}`: {}", said.err);
}

/// A run that was left alone, and the changes it made from its first on.
struct Alone {
    place: Place,
    changes: Vec<String>,
    steps: BTreeMap<u64, Value>,
}

impl Alone {
    fn new() -> Alone {
        let place = Place::new();
        place.run(&["prepare", "demo", "--cache-dataset", "--json"]).json();
        let changes = changes(&place, &train("alone"));
        let changes = changes.iter().map(|change| change.replace("alone", "run"));
        // The event file is named after time and machine: it has a name only in its own run.
        let changes = changes.filter(|change| !change.contains("tfevents"));
        let changes: Vec<String> = changes.collect();
        assert!(changes.len() > 80, "{changes:?}");
        let steps = steps(&place.inside("alone"));
        assert_eq!(steps.len(), 6);
        Alone { place, changes, steps }
    }

    fn start(&self, what: &str, change: &str) -> Said {
        let run = self.place.inside("run");
        if run.exists() {
            fs::remove_dir_all(&run).unwrap();
        }
        trouble(&self.place, &train("run"), what, change)
    }

    /// The run goes on to its end, and is then what the other one is.
    #[track_caller]
    fn goes_on(&self, change: &str) {
        let run = self.place.inside("run");
        let mut args = train("run");
        if newest(&run).is_some() {
            args.push("--resume");
        }
        let said = self.place.run(&args);
        assert_eq!(said.code, Some(0), "after `{change}`: {said:?}");
        assert!(!said.err.contains("passed over"), "after `{change}`: {said:?}");
        for (step, line) in parts(&run).iter().flat_map(|part| lines(part)) {
            assert_eq!(Some(&line), self.steps.get(&step), "after `{change}`: step {step}");
        }
        for file in ["weights", "ema", "moments", "aligner_snapshots"] {
            let of = |run: &str| {
                let path = self.place.inside(run).join(LAST).join(format!("{file}.safetensors"));
                fs::read(path).unwrap_or_else(|error| panic!("after `{change}`: {file}: {error}"))
            };
            assert!(of("alone") == of("run"), "after `{change}`: `{file}` differs");
        }
        let drafts = fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().file_name());
        let mut drafts = drafts.filter(|name| name.to_string_lossy().starts_with(".step-"));
        assert_eq!(drafts.next(), None, "after `{change}`");
    }
}

fn train(run: &str) -> Vec<&str> {
    [&SMALL_STEPS[..], &TRAIN, &[run]].concat()
}

fn training_is_killed(every: usize) {
    let alone = Alone::new();
    let (mut tried, mut killed) = (0, 0);
    for change in some(alone.changes.clone(), every) {
        let said = alone.start("kill", &change);
        assert!([None, Some(0)].contains(&said.code), "killed at `{change}`: {said:?}");
        (tried, killed) = (tried + 1, killed + usize::from(said.code.is_none()));
        alone.goes_on(&change);
    }
    most(killed, tried);
}

fn training_is_refused(every: usize) {
    let alone = Alone::new();
    for (what, words) in TROUBLES {
        let (mut tried, mut told) = (0, 0);
        for change in some(alone.changes.clone(), every) {
            let said = alone.start(what, &change);
            no_panic(&said, &change);
            let is_told = said.out.contains(words) || said.err.contains(words);
            let fits = said.code == Some(0) || said.code == Some(2) && is_told;
            assert!(fits, "{what} at `{change}`: {said:?}");
            (tried, told) = (tried + 1, told + usize::from(is_told));
            alone.goes_on(&change);
        }
        most(told, tried);
    }
}

/// The record is written as time goes by, and a validation is left out where the one before is under
/// way: a few changes are not made in every run.
#[track_caller]
fn most(happened: usize, tried: usize) {
    assert!(happened * 4 >= tried * 3, "{happened} of {tried} changes were met");
}

#[test]
fn preparing_can_be_killed_at_changes_of_the_disk() {
    preparing_is_killed(6);
}

#[test]
#[ignore = "minutes: every change"]
fn preparing_can_be_killed_at_every_change_of_the_disk() {
    preparing_is_killed(1);
}

#[test]
fn preparing_says_what_the_disk_refused() {
    preparing_is_refused(9);
}

#[test]
#[ignore = "minutes: every change"]
fn preparing_says_whatever_the_disk_refused() {
    preparing_is_refused(1);
}

#[test]
fn training_can_be_killed_at_changes_of_the_disk() {
    training_is_killed(61);
}

#[test]
#[ignore = "minutes: every change"]
fn training_can_be_killed_at_every_change_of_the_disk() {
    training_is_killed(1);
}

#[test]
fn training_says_what_the_disk_refused() {
    training_is_refused(97);
}

#[test]
#[ignore = "minutes: every change"]
fn training_says_whatever_the_disk_refused() {
    training_is_refused(1);
}
