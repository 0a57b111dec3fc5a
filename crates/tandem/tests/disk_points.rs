//! The real program with a fault at one of its disk operations: SIGKILL before it, or an error as from a
//! full or a broken disk. Random operations by default, whose seed is printed; all of them with `xtask/tests/disk_points.sh`.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};
use support::disk_points::{changes, happened, run_failing};
use support::random::SmallRng;
use support::runs::{CHECKPOINT_SKIPPED, SMALL_STEPS, lines, newest, parts, steps};
use support::{CommandOutput, TestDir};

const PREPARE: [&str; 5] = ["prepare", "corpus", "--cache-dataset", "--num-workers", "1"];
const BEFORE: &str = "a|one\nb|two\nc|three\nd|four\ne|five\nf|six\n";
/// Most rows are removed and others added, so that segments are merged and removed.
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
/// The kind of fault, and the error text of the system.
const FAILURES: [(&str, &str); 2] = [("full", "No space left"), ("broken", "Input/output error")];
const LAST: &str = "step-00000006";

/// A corpus whose cache belongs to an older manifest.
fn changed_corpus() -> TestDir {
    let dir = TestDir::with_clips(9, BEFORE);
    dir.prepare(&["--cache-dataset"]);
    dir.write("metadata.csv", AFTER.as_bytes());
    dir
}

/// The final summary and batches, without the fields that describe this run.
#[track_caller]
fn prepared(dir: &TestDir) -> Value {
    let mut summary = dir.prepare(&["--cache-dataset"]);
    let fields = summary.as_object_mut().unwrap();
    for of_this_run in [
        "rebuilt",
        "recovered",
        "touched",
        "damage",
        "took",
        "peak_memory",
        "words",
        "cache",
        "root",
    ] {
        fields.remove(of_this_run);
    }
    let batches = dir.run(&["batches", "corpus", "--cache-dataset", "--json"]).json();
    fields.insert("batches".into(), batches);
    // Each test directory has its own path.
    let text = summary.to_string().replace(&dir.path("").display().to_string(), "");
    serde_json::from_str(&text).unwrap()
}

/// One of every `part` changes, in order; which ones is random.
fn some(changes: Vec<String>, part: usize) -> impl Iterator<Item = String> {
    if part > 1 {
        #[allow(clippy::print_stderr, reason = "shown with a failure, to repeat it")]
        {
            eprintln!("TANDEM_DISK_POINTS_SEED={}", *SEED);
        }
    }
    let mut chance = SmallRng::new(*SEED);
    let parts: Vec<Vec<String>> = changes.chunks(part).map(<[String]>::to_vec).collect();
    parts.into_iter().map(move |part| part[chance.below(part.len())].clone())
}

/// A new one in every run, unless the variable is set.
static SEED: LazyLock<u64> = LazyLock::new(|| {
    let set = std::env::var("TANDEM_DISK_POINTS_SEED").ok().and_then(|seed| seed.parse().ok());
    set.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.as_nanos() as u64 % 1_000_000
    })
});

fn preparing_is_killed(every: usize) {
    let clean = changed_corpus();
    let all = changes(&clean, &PREPARE);
    assert!(all.len() > 25, "{all:?}");
    let wanted = prepared(&clean);
    for change in some(all, every) {
        let dir = changed_corpus();
        let output = run_failing(&dir, &PREPARE, "kill", &change);
        assert_eq!(output.code, None, "not killed at `{change}`: {output:?}");
        assert_eq!(prepared(&dir), wanted, "killed at `{change}`");
    }
}

fn preparing_gets_disk_errors(every: usize) {
    let clean = changed_corpus();
    let all = changes(&clean, &PREPARE);
    let wanted = prepared(&clean);
    for (what, words) in FAILURES {
        for change in some(all.clone(), every) {
            let dir = changed_corpus();
            let output = run_failing(&dir, &PREPARE, what, &change);
            assert_eq!(output.code, Some(2), "{what} at `{change}`: {output:?}");
            assert!(
                output.err.contains(words) && output.err.contains("corpus"),
                "{change}: {output:?}"
            );
            assert_no_panic(&output, &change);
            assert_eq!(prepared(&dir), wanted, "{what} at `{change}`");
        }
    }
}

#[track_caller]
fn assert_no_panic(output: &CommandOutput, change: &str) {
    assert!(!output.err.contains("panicked"), "`{change}`: {}", output.err);
    assert!(output.err.matches("error:").count() <= 1, "`{change}`: {}", output.err);
}

/// A run without faults, and the disk operations that it made.
struct Undisturbed {
    dir: TestDir,
    changes: Vec<String>,
    steps: BTreeMap<u64, Value>,
}

impl Undisturbed {
    fn new() -> Undisturbed {
        let dir = TestDir::new();
        dir.run(&["prepare", "demo", "--cache-dataset", "--json"]).json();
        let changes = changes(&dir, &train("alone"));
        let changes = changes.iter().map(|change| change.replace("alone", "run"));
        // The name of the event file contains time and host, so it differs in every run.
        let changes = changes.filter(|change| !change.contains("tfevents"));
        let changes: Vec<String> = changes.collect();
        assert!(changes.len() > 80, "{changes:?}");
        let steps = steps(&dir.path("alone"));
        assert_eq!(steps.len(), 6);
        Undisturbed { dir, changes, steps }
    }

    /// One of every `part` changes, among them at least one that every run makes.
    fn some(&self, part: usize) -> Vec<String> {
        let (certain, others): (Vec<_>, Vec<_>) =
            self.changes.iter().cloned().partition(|change| is_in_every_run(change));
        some(certain, part).chain(some(others, part)).collect()
    }

    fn start(&self, what: &str, change: &str) -> CommandOutput {
        let run = self.dir.path("run");
        if run.exists() {
            fs::remove_dir_all(&run).unwrap();
        }
        run_failing(&self.dir, &train("run"), what, change)
    }

    /// Continues the run to its end and compares it with the undisturbed one.
    #[track_caller]
    fn assert_continues(&self, change: &str) {
        let run = self.dir.path("run");
        let mut args = train("run");
        if newest(&run).is_some() {
            args.push("--resume");
        }
        let output = self.dir.run(&args);
        assert_eq!(output.code, Some(0), "after `{change}`: {output:?}");
        assert!(!output.err.contains(CHECKPOINT_SKIPPED), "after `{change}`: {output:?}");
        for (step, line) in parts(&run).iter().flat_map(|part| lines(part)) {
            assert_eq!(Some(&line), self.steps.get(&step), "after `{change}`: step {step}");
        }
        for file in ["weights", "ema", "moments", "aligner_snapshots"] {
            let of = |run: &str| {
                let path = self.dir.path(run).join(LAST).join(format!("{file}.safetensors"));
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
    let alone = Undisturbed::new();
    for change in alone.some(every) {
        let output = alone.start("kill", &change);
        assert_reached(&output, &change);
        let expected = if happened(&output) { None } else { Some(0) };
        assert_eq!(output.code, expected, "killed at `{change}`: {output:?}");
        alone.assert_continues(&change);
    }
}

fn training_gets_disk_errors(every: usize) {
    let alone = Undisturbed::new();
    for (what, words) in FAILURES {
        for change in alone.some(every) {
            let output = alone.start(what, &change);
            assert_reached(&output, &change);
            assert_no_panic(&output, &change);
            let is_reported = output.out.contains(words) || output.err.contains(words);
            let expected = happened(&output) && !is_harmless(&change);
            assert_eq!(is_reported, expected, "{what} at `{change}`: {output:?}");
            let fits = output.code == Some(0) || output.code == Some(2) && is_reported;
            assert!(fits, "{what} at `{change}`: {output:?}");
            alone.assert_continues(&change);
        }
    }
}

/// The record is written at intervals of time, and a checkpoint or validation is left out while an earlier one is
/// written or running. The run's start and its last checkpoint do not depend on time.
fn is_in_every_run(change: &str) -> bool {
    ["config.toml", LAST, "page.html"].iter().any(|part| change.contains(part))
}

/// A directory that is there already need not be made again.
fn is_harmless(change: &str) -> bool {
    change.starts_with("make ") && !change.ends_with("#1")
}

#[track_caller]
fn assert_reached(output: &CommandOutput, change: &str) {
    assert!(happened(output) || !is_in_every_run(change), "not reached: `{change}`: {output:?}");
}

#[test]
fn preparing_survives_kills_at_some_disk_operations() {
    preparing_is_killed(6);
}

#[test]
#[ignore = "takes minutes: every disk operation"]
fn preparing_survives_a_kill_at_every_disk_operation() {
    preparing_is_killed(1);
}

#[test]
fn preparing_reports_disk_errors() {
    preparing_gets_disk_errors(9);
}

#[test]
#[ignore = "takes minutes: every disk operation"]
fn preparing_reports_every_disk_error() {
    preparing_gets_disk_errors(1);
}

#[test]
fn training_survives_kills_at_some_disk_operations() {
    training_is_killed(61);
}

#[test]
#[ignore = "takes minutes: every disk operation"]
fn training_survives_a_kill_at_every_disk_operation() {
    training_is_killed(1);
}

#[test]
fn training_reports_disk_errors() {
    training_gets_disk_errors(97);
}

#[test]
#[ignore = "takes minutes: every disk operation"]
fn training_reports_every_disk_error() {
    training_gets_disk_errors(1);
}
