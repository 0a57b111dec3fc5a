//! `tandem scaling`: from records, from a real sweep, and from a sweep that runs out of memory.

mod support;

use std::fs;
use support::TestDir;
use tandem_telemetry::event::{
    DeviceRole, DeviceSample, Event, Final, RunHeader, RunOutcome, Step,
};
use tandem_telemetry::{Nanos, Stamped};
use tandem_units::{Bytes, Ticket};

/// A run whose steps take 10 ms, and 10 ms more for each utterance.
fn record(dir: &TestDir, batch: u32) {
    let settings = serde_json::json!({"config": {"batch": {"batch_size": batch}}});
    let header = RunHeader::now("tandem", "0.1.0", settings);
    let mut lines = vec![Stamped { at: Nanos(0), event: Event::Run(Box::new(header)) }];
    for number in 1..=12u64 {
        let step = Step {
            step: number,
            ticket: Ticket { seq: number - 1, ..Ticket::default() },
            took: Nanos::millis(10 + 10 * u64::from(batch)),
            waited: Nanos(0),
            items: batch,
            frames: 300 * u64::from(batch),
            shape: Some([batch, 64, 400]),
            ..Step::default()
        };
        lines.push(Stamped { at: Nanos(number), event: step.into() });
    }
    let mut sample = DeviceSample::new("process".into(), DeviceRole::Host);
    sample.memory_used = Some(Bytes::mib(100 + 10 * u64::from(batch)));
    lines.push(Stamped { at: Nanos(99), event: sample.into() });
    let ending = Final { outcome: RunOutcome::Done, why: None, steps: 12, flags: vec![] };
    lines.push(Stamped { at: Nanos(99), event: ending.into() });
    let lines = lines.iter().map(|line| serde_json::to_string(line).expect("JSON") + "\n");
    let directory = dir.path(&format!("batch-{batch}"));
    fs::create_dir(&directory).expect("a directory");
    fs::write(directory.join("run.jsonl"), lines.collect::<String>()).expect("written");
}

const RUNS: [&str; 5] = ["scaling", "batch-32", "batch-4", "batch-8", "batch-16/run.jsonl"];

fn test_dir() -> TestDir {
    let dir = TestDir::new();
    [4, 8, 16, 32].iter().for_each(|&batch| record(&dir, batch));
    dir
}

#[test]
fn records_give_a_table_a_knee_and_charts() {
    let dir = test_dir();
    let output = dir.run(&[&RUNS[..], &["--plot", "a.png", "--plot", "a.svg"]].concat());
    assert_eq!(output.code, Some(0), "{output:?}");
    insta::assert_snapshot!(output.out);
    assert!(
        output.err.contains("chart: a.png") && output.err.contains("chart: a.svg"),
        "{}",
        output.err
    );
    assert!(fs::read(dir.path("a.png")).expect("a chart").starts_with(b"\x89PNG"));
    let drawn = fs::read_to_string(dir.path("a.svg")).expect("a chart");
    assert!(drawn.starts_with("<svg") && drawn.contains("knee: 16"), "{drawn}");
}

#[test]
fn json_output_is_valid() {
    let found = test_dir().run(&[&RUNS[..], &["--json"]].concat()).json();
    assert_eq!((&found["knee"], &found["points"][0]["batch_size"]), (&16.into(), &4.into()));
    let rate = found["points"][3]["samples_per_second"].as_f64().expect("a number");
    assert!((rate - 32.0 / 0.33).abs() < 1e-6, "{rate}");
}

#[test]
fn runs_of_a_single_batch_size_are_refused() {
    let dir = test_dir();
    dir.run(&["scaling", "--sweep", "8"]).assert_failed(&["a sweep over 8 alone compares nothing"]);
    dir.run(&["scaling", "--sweep", "8,8"])
        .assert_failed(&["a sweep over 8 alone compares nothing"]);
    dir.run(&["scaling", "batch-8"]).assert_failed(&["all runs have batch size 8", "--sweep"]);
    dir.run(&["scaling", "batch-8", "nowhere"]).assert_failed(&["cannot open run record"]);
    let wrong = dir.run(&["scaling", "--sweep", "8,x"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("such as 8,16,32"), "{wrong:?}");
    let wrong = dir.run(&["scaling", "batch-8", "--plot", "a.bmp"]);
    assert!(wrong.code == Some(2) && wrong.err.contains(".png or .svg"), "{wrong:?}");
    let wrong = dir.run(&["scaling"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

/// The largest batch of the demo corpus takes about 172 MiB with 12 utterances, and 124 MiB with two.
const SWEEP: [&str; 8] =
    ["scaling", "--sweep", "12,1,2", "--steps", "4", "--keep", "saved", "--json"];

#[test]
fn a_sweep_stops_at_the_first_batch_size_that_does_not_fit() {
    let dir = TestDir::new();
    let budget =
        ["--enable-memory-isolation", "--data-gpu-memory", "16", "--model-gpu-memory", "120"];
    let train = [&["--", "--cache-dataset", "--warmup-steps", "1"][..], &budget].concat();
    let output = dir.run(&[&SWEEP[..], &train].concat());
    let found = output.json();
    let sizes =
        found["points"].as_array().expect("points").iter().map(|point| &point["batch_size"]);
    assert_eq!(
        sizes.collect::<Vec<_>>(),
        [&serde_json::json!(1), &serde_json::json!(2)],
        "{output:?}"
    );
    assert_eq!(found["does_not_fit"]["batch_size"], 12, "{output:?}");
    let why = found["does_not_fit"]["why"].as_str().expect("a reason");
    assert!(why.contains("120.0 MiB are the budget of the model device"), "{why}");
    assert!(output.err.contains("batch 1: 4 steps (1 of 3)"), "{}", output.err);
    assert!(dir.path("saved/batch-2/run.jsonl").is_file());
    dir.run(&[&SWEEP[..], &train].concat()).assert_failed(&["saved", "does not exist yet"]);
}

#[test]
fn a_failed_sweep_shows_the_error_of_the_run() {
    let dir = TestDir::new();
    let output = dir.run(&["scaling", "--sweep", "1,2", "--train-data", "nowhere"]);
    output.assert_failed(&["the run with batch 1 failed", "nowhere"]);
}
