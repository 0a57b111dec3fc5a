//! `tandem compare`: records with known step times, records of other programs, truncated records.

mod support;

use std::fs;
use support::{CommandOutput, TestDir};
use tandem_telemetry::event::{
    DeviceRole, DeviceSample, Event, Final, RunHeader, RunOutcome, Step,
};
use tandem_telemetry::{Nanos, Stamped};
use tandem_units::{Bytes, Ticket};

/// A record with four batch shapes whose steps take about `base` milliseconds.
fn record(steps: u64, base: u64, seed: u64) -> String {
    let header = RunHeader::now("tandem", "0.1.0", serde_json::json!({"batch_size": 16}));
    let mut at = Nanos(0);
    let mut lines = vec![Stamped { at, event: Event::Run(Box::new(header)) }];
    for number in 1..=steps {
        // Fixed pseudo-random numbers (Knuth's multiplier), so that the snapshot does not change.
        let walk = (number + 1000 * seed).wrapping_mul(6_364_136_223_846_793_005) >> 40;
        let shape = [16, 64, 200 * (1 + walk as u32 % 4)];
        let took = base * 1_000_000 * u64::from(shape[2]) / 400 * (970 + walk / 7 % 61) / 1000;
        at += Nanos(took);
        let step = Step {
            step: number,
            ticket: Ticket { seq: number - 1, ..Ticket::default() },
            took: Nanos(took),
            waited: Nanos(0),
            items: 16,
            frames: 4000,
            shape: Some(shape),
            ..Step::default()
        };
        lines.push(Stamped { at, event: step.into() });
        let mut sample = DeviceSample::new("cuda:0".into(), DeviceRole::Model);
        sample.utilisation = Some(0.9);
        sample.memory_used = Some(Bytes::mib(4096));
        lines.push(Stamped { at, event: sample.into() });
    }
    let ending = Final { outcome: RunOutcome::Done, why: None, steps, flags: vec![] };
    lines.push(Stamped { at, event: ending.into() });
    let lines = lines.iter().map(|line| serde_json::to_string(line).expect("JSON") + "\n");
    lines.collect()
}

fn test_dir() -> TestDir {
    let dir = TestDir::new();
    for (name, base, seed) in [("a", 100, 1), ("again", 100, 2), ("slow", 110, 3)] {
        fs::create_dir(dir.path(name)).expect("a directory");
        fs::write(dir.path(name).join("run.jsonl"), record(80, base, seed)).expect("written");
    }
    dir
}

fn compared(dir: &TestDir, more: &[&str]) -> CommandOutput {
    dir.run(&[&["compare"], more].concat())
}

#[test]
fn a_slower_run_is_a_regression_and_another_seed_is_not() {
    let dir = test_dir();
    let same = compared(&dir, &["a", "again/run.jsonl"]);
    assert_eq!((same.code, same.err.as_str()), (Some(0), ""), "{same:?}");
    assert!(same.out.contains("verdict  no difference beyond noise"), "{}", same.out);
    let slower = compared(&dir, &["a", "slow"]);
    assert_eq!(slower.code, Some(1), "{slower:?}");
    insta::assert_snapshot!(slower.out);
    assert_eq!(compared(&dir, &["slow", "a"]).code, Some(0), "faster is no regression");
}

#[test]
fn fail_over_sets_the_limit_of_a_regression() {
    let dir = test_dir();
    for (limit, code) in [("5%", 1), ("5", 1), ("20%", 0), ("9.5 %", 1)] {
        let output = compared(&dir, &["a", "slow", "--fail-over", limit]);
        assert_eq!(output.code, Some(code), "{limit}: {output:?}");
    }
    let wrong = compared(&dir, &["a", "slow", "--fail-over", "much"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("such as 5%"), "{wrong:?}");
}

#[test]
fn json_output_is_valid_and_deterministic() {
    let dir = test_dir();
    let output = compared(&dir, &["a", "slow", "--json"]);
    assert_eq!(output.code, Some(1));
    let found: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!((&found["verdict"], &found["a"]["steps"]), (&"worse".into(), &79.into()));
    let row = &found["rows"][2];
    assert_eq!(row["measure"], "same_shapes");
    let ratio = row["ratio"].as_f64().expect("a number");
    assert!((ratio - 1.1).abs() < 0.02, "{ratio}");
    assert_eq!(output.out, compared(&dir, &["a", "slow", "--json"]).out);
}

#[test]
fn unusable_records_are_errors_with_a_hint() {
    let dir = test_dir();
    let write = |name: &str, text: &str| fs::write(dir.path(name), text).expect("written");
    write("foreign.jsonl", "{\"step\": 1}\n");
    write("empty.jsonl", "");
    let newer = record(20, 100, 1).replace("\"schema\":{\"major\":1", "\"schema\":{\"major\":9");
    write("newer.jsonl", &newer);
    write("short.jsonl", &record(5, 100, 1));
    for (name, words) in [
        ("foreign.jsonl", "is not a run record"),
        ("empty.jsonl", "is empty"),
        ("newer.jsonl", "has format 9."),
        ("short.jsonl", "has 4 steps after the warm-up"),
        ("nowhere", "cannot open run record"),
    ] {
        compared(&dir, &["a", name]).assert_failed(&[words]);
    }
}

#[test]
fn a_truncated_record_is_used_with_a_warning() {
    let dir = test_dir();
    let whole = record(80, 100, 4);
    fs::write(dir.path("cut.jsonl"), &whole[..whole.len() * 2 / 3]).expect("written");
    let output = compared(&dir, &["a", "cut.jsonl"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.err.contains("its last line was cut off; the rest is used"), "{}", output.err);
    assert!(output.err.contains("has no final event"), "{}", output.err);
    assert!(output.out.contains("total times are not comparable"), "{}", output.out);
}

/// Steps of the real pipeline, and a copy of them that is twenty times slower: larger than any noise.
#[test]
fn a_real_record_equals_itself_and_its_slower_copy_is_a_regression() {
    let dir = TestDir::new();
    let args =
        ["analyze", "demo", "--step-time", "4", "--batch-size", "4", "--record", "real.jsonl"];
    let output = dir.run(&[&args[..], &["--sample", "5", "--batches", "120"]].concat());
    assert!(matches!(output.code, Some(0 | 1)), "{output:?}");
    let real = fs::read_to_string(dir.path("real.jsonl")).expect("a record");
    let slower = real.lines().map(|line| {
        let mut stamped: Stamped = serde_json::from_str(line).expect("our line");
        if let Event::Step(step) = &mut stamped.event {
            step.took = Nanos(step.took.0 * 20);
        }
        serde_json::to_string(&stamped).expect("JSON") + "\n"
    });
    fs::write(dir.path("slower.jsonl"), slower.collect::<String>()).expect("written");
    assert_eq!(compared(&dir, &["real.jsonl", "real.jsonl"]).code, Some(0));
    let found = compared(&dir, &["real.jsonl", "slower.jsonl"]);
    assert_eq!(found.code, Some(1), "{found:?}");
}
