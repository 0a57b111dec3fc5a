//! `tandem scaling` as a user meets it: records, a real sweep, one that does not fit.

mod kit;

use kit::Place;
use std::fs;
use tandem_telemetry::event::{
    DeviceRole, DeviceSample, Event, Final, RunHeader, RunOutcome, Step,
};
use tandem_telemetry::{Nanos, Stamped};
use tandem_units::{Bytes, Ticket};

/// A run whose steps take 10 ms, and 10 ms more for each utterance.
fn record(place: &Place, batch: u32) {
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
            losses: vec![],
        };
        lines.push(Stamped { at: Nanos(number), event: step.into() });
    }
    let mut sample = DeviceSample::new("process".into(), DeviceRole::Host);
    sample.memory_used = Some(Bytes::mib(100 + 10 * u64::from(batch)));
    lines.push(Stamped { at: Nanos(99), event: sample.into() });
    let ending = Final { outcome: RunOutcome::Done, why: None, steps: 12, flags: vec![] };
    lines.push(Stamped { at: Nanos(99), event: ending.into() });
    let lines = lines.iter().map(|line| serde_json::to_string(line).expect("JSON") + "\n");
    let directory = place.inside(&format!("batch-{batch}"));
    fs::create_dir(&directory).expect("a directory");
    fs::write(directory.join("run.jsonl"), lines.collect::<String>()).expect("written");
}

const RUNS: [&str; 5] = ["scaling", "batch-32", "batch-4", "batch-8", "batch-16/run.jsonl"];

fn place() -> Place {
    let place = Place::new();
    [4, 8, 16, 32].iter().for_each(|&batch| record(&place, batch));
    place
}

#[test]
fn records_make_a_table_a_knee_and_charts() {
    let place = place();
    let said = place.run(&[&RUNS[..], &["--plot", "a.png", "--plot", "a.svg"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    insta::assert_snapshot!(said.out);
    assert!(said.err.contains("chart: a.png") && said.err.contains("chart: a.svg"), "{}", said.err);
    assert!(fs::read(place.inside("a.png")).expect("a chart").starts_with(b"\x89PNG"));
    let drawn = fs::read_to_string(place.inside("a.svg")).expect("a chart");
    assert!(drawn.starts_with("<svg") && drawn.contains("knee: 16"), "{drawn}");
}

#[test]
fn the_json_form_is_json_alone() {
    let found = place().run(&[&RUNS[..], &["--json"]].concat()).json();
    assert_eq!((&found["knee"], &found["points"][0]["batch_size"]), (&16.into(), &4.into()));
    let rate = found["points"][3]["samples_per_second"].as_f64().expect("a number");
    assert!((rate - 32.0 / 0.33).abs() < 1e-6, "{rate}");
}

#[test]
fn what_says_nothing_about_sizes_is_refused() {
    let place = place();
    place.run(&["scaling", "--sweep", "8"]).failed(&["a sweep over 8 alone compares nothing"]);
    place.run(&["scaling", "--sweep", "8,8"]).failed(&["a sweep over 8 alone compares nothing"]);
    place.run(&["scaling", "batch-8"]).failed(&["all runs have batch size 8", "--sweep"]);
    place.run(&["scaling", "batch-8", "nowhere"]).failed(&["cannot open run record"]);
    let wrong = place.run(&["scaling", "--sweep", "8,x"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("such as 8,16,32"), "{wrong:?}");
    let wrong = place.run(&["scaling", "batch-8", "--plot", "a.bmp"]);
    assert!(wrong.code == Some(2) && wrong.err.contains(".png or .svg"), "{wrong:?}");
    let wrong = place.run(&["scaling"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

/// The largest batch of the demo corpus takes over 121 MB with 12 utterances, and less with two.
const SWEEP: [&str; 8] =
    ["scaling", "--sweep", "12,1,2", "--steps", "4", "--keep", "kept", "--json"];

#[test]
fn a_sweep_makes_runs_and_stops_at_the_first_that_does_not_fit() {
    let place = Place::new();
    let budget =
        ["--enable-memory-isolation", "--data-gpu-memory", "16", "--model-gpu-memory", "105"];
    let train = [&["--", "--cache-dataset", "--warmup-steps", "1"][..], &budget].concat();
    let said = place.run(&[&SWEEP[..], &train].concat());
    let found = said.json();
    let sizes =
        found["points"].as_array().expect("points").iter().map(|point| &point["batch_size"]);
    assert_eq!(
        sizes.collect::<Vec<_>>(),
        [&serde_json::json!(1), &serde_json::json!(2)],
        "{said:?}"
    );
    assert_eq!(found["does_not_fit"]["batch_size"], 12, "{said:?}");
    let why = found["does_not_fit"]["why"].as_str().expect("a reason");
    assert!(why.contains("whose budget is"), "{why}");
    assert!(said.err.contains("batch 1: 4 steps (1 of 3)"), "{}", said.err);
    assert!(place.inside("kept/batch-2/run.jsonl").is_file());
    place.run(&[&SWEEP[..], &train].concat()).failed(&["kept", "does not exist yet"]);
}

#[test]
fn a_sweep_that_fails_otherwise_says_what_the_run_said() {
    let place = Place::new();
    let said = place.run(&["scaling", "--sweep", "1,2", "--train-data", "nowhere"]);
    said.failed(&["the run with batch 1 failed", "nowhere"]);
}
