//! A killed program leaves a readable record.

use serde_json::json;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tandem_telemetry::event::{Event, Loss, RunHeader, SlotChange, SlotState, Step};
use tandem_telemetry::{
    Nanos, Pending, ReadNotes, RecordOptions, Recording, Report, Rules, RunRecord,
};
use tandem_units::Ticket;

const PATH: &str = "TANDEM_TEST_RECORD";

/// Not a test of its own: what the test below starts and kills.
#[test]
#[ignore = "records until it is killed; started by the test in this file"]
fn a_run_to_be_killed() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let options = RecordOptions { flush_every: Duration::from_millis(2), ..Default::default() };
    let header = RunHeader::now("tandem", "0.0.0", json!({}));
    let recording = Recording::create(Path::new(&path), header, options).unwrap();
    let recorder = recording.recorder();
    // Ends after half a minute if it is not killed.
    for number in 1..=3_000_000u64 {
        let (promise, value) = Pending::later();
        recorder.send(Step {
            step: number,
            ticket: Ticket { seq: number - 1, ..Ticket::default() },
            took: Nanos(10_000),
            waited: Nanos(10),
            items: 16,
            frames: 9000,
            shape: None,
            losses: vec![Loss { name: "total".into(), value }],
            ..Step::default()
        });
        recorder.send(SlotChange { slot: 0, state: SlotState::Ready, ticket: None });
        promise.set(1.0);
        if number % 10 == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

fn start(record: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_run_to_be_killed"])
        .env(PATH, record)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_kill_at_any_moment_leaves_complete_lines() {
    let dir = tempfile::tempdir().unwrap();
    let mut torn = 0;
    for round in 0..8u64 {
        let path = dir.path().join(format!("{round}.jsonl"));
        let mut run = start(&path);
        let written = || std::fs::metadata(&path).map_or(0, |meta| meta.len());
        for _ in 0..2000 {
            if written() > 50_000 {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // A different moment between two flushes each time.
        std::thread::sleep(Duration::from_micros(round * 3700));
        run.kill().unwrap();
        run.wait().unwrap();
        torn += usize::from(check_readable(&path).torn.is_some());
    }
    // A kill in the middle of a write may tear a line; one that waits for a full buffer, or
    // writes parts of lines, would leave nearly every record torn.
    assert!(torn <= 2, "{torn} of 8 records are torn");
}

#[track_caller]
fn check_readable(path: &Path) -> ReadNotes {
    let record = RunRecord::read(path).unwrap();
    assert_eq!((record.notes.broken, record.notes.unknown.len()), (0, 0), "{:?}", record.notes);
    let steps: Vec<u64> = record
        .events
        .iter()
        .filter_map(|stamped| match &stamped.event {
            Event::Step(step) => Some(step.step),
            _ => None,
        })
        .collect();
    assert!(steps.len() > 100, "{} steps", steps.len());
    assert!(steps.is_sorted(), "steps keep their order");
    let report = Report::of(&record, &Rules::default());
    assert!(report.to_string().contains("no end recorded: killed"), "{report}");
    record.notes
}
