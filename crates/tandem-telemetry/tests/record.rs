//! The record from outside: events sent from threads, written by the writer thread, read back as JSON.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tandem_telemetry::event::{
    Decision, DecisionOutcome, Final, Loss, RunHeader, RunOutcome, Step, Warning,
};
use tandem_telemetry::record::{Listener, Update};
use tandem_telemetry::{
    Closed, Ending, MemoryFile, Nanos, Pending, RecordOptions, Recorder, Recording, Report, Rules,
    RunRecord,
};
use tandem_units::Ticket;

fn header() -> RunHeader {
    RunHeader::now("tandem", "0.0.0", json!({ "batch_size": 16 }))
}

fn step(number: u64, losses: Vec<Loss>) -> Step {
    Step {
        step: number,
        ticket: Ticket { seq: number - 1, ..Ticket::default() },
        took: Nanos::millis(150),
        waited: Nanos(0),
        items: 16,
        frames: 9000,
        shape: Some([16, 120, 640]),
        losses,
        ..Step::default()
    }
}

fn total(value: Pending<f32>) -> Vec<Loss> {
    vec![Loss { name: "total".into(), value }]
}

fn lines(file: &MemoryFile) -> Vec<Value> {
    let text = String::from_utf8(file.contents()).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind(lines: &[Value], kind: &str) -> Vec<Value> {
    lines.iter().filter(|line| line["event"] == kind).cloned().collect()
}

#[test]
fn a_record_begins_with_its_header_and_ends_with_its_health() {
    let (recording, file) = Recording::in_memory(header()).unwrap();
    let recorder = recording.recorder();
    recorder.send(step(1, total(Pending::known(0.5))));
    recorder.send(Final { outcome: RunOutcome::Done, why: None, steps: 1, flags: vec![] });
    let Closed { health, ending, .. } = recording.finish();
    assert_eq!((health.total_lost(), ending), (0, Ending::Whole));
    let lines = lines(&file);
    let kinds: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run", "step", "final", "health"]);
    assert_eq!(lines[0]["format"], "tandem-run");
    assert_eq!(lines[0]["settings"]["batch_size"], 16);
    assert_eq!(lines[1]["losses"], json!({ "total": 0.5 }));
}

#[test]
fn a_late_loss_holds_back_later_steps_but_no_other_event() {
    let (recording, file) = Recording::in_memory(header()).unwrap();
    let recorder = recording.recorder();
    let (promise, pending) = Pending::later();
    recorder.send(step(1, total(pending)));
    recorder.send(step(2, total(Pending::known(2.0))));
    recorder.send(Warning { code: "x".into(), text: "first".into() });
    wait_until("the warning is written", || !of_kind(&lines_so_far(&file), "warning").is_empty());
    assert!(of_kind(&lines(&file), "step").is_empty());
    promise.set(1.0);
    recording.finish();
    let steps = of_kind(&lines(&file), "step");
    assert_eq!(steps[0]["losses"]["total"], 1.0);
    assert_eq!(steps[1]["losses"]["total"], 2.0);
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..24_000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("never happened: {what}");
}

fn lines_so_far(file: &MemoryFile) -> Vec<Value> {
    if file.contents().is_empty() { Vec::new() } else { lines(file) }
}

#[test]
fn a_loss_that_never_comes_is_null_and_counted() {
    let file = MemoryFile::default();
    let options = RecordOptions { close_within: Duration::from_millis(200), ..Default::default() };
    let recording = Recording::start(Box::new(file.clone()), header(), options).unwrap();
    let (_promise, pending) = Pending::later();
    recording.recorder().send(step(1, total(pending)));
    let closed = recording.finish();
    assert_eq!(closed.health.late_losses, 1);
    let lines = lines(&file);
    assert_eq!(of_kind(&lines, "step")[0]["losses"], json!({ "total": null }));
    assert_eq!(of_kind(&lines, "health").last().unwrap()["late_losses"], 1);
}

#[test]
fn the_window_of_waiting_steps_is_bounded() {
    let file = MemoryFile::default();
    let options = RecordOptions {
        loss_window: 3,
        close_within: Duration::from_millis(100),
        ..Default::default()
    };
    let recording = Recording::start(Box::new(file.clone()), header(), options).unwrap();
    let (promises, pending): (Vec<_>, Vec<_>) = (0..10).map(|_| Pending::later()).unzip();
    for (index, value) in pending.into_iter().enumerate() {
        recording.recorder().send(step(index as u64 + 1, total(value)));
    }
    wait_until("seven are written", || of_kind(&lines_so_far(&file), "step").len() >= 7);
    assert_eq!(of_kind(&lines(&file), "step").len(), 7);
    promises.into_iter().for_each(|promise| promise.set(4.0));
    recording.finish();
    let steps = of_kind(&lines(&file), "step");
    let numbers: Vec<_> = steps.iter().map(|line| line["step"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
    assert_eq!(steps[9]["losses"]["total"], 4.0);
}

#[test]
fn a_record_is_never_written_over_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.jsonl");
    Recording::create(&path, header(), RecordOptions::default()).unwrap().finish();
    let before = std::fs::read(&path).unwrap();
    assert!(Recording::create(&path, header(), RecordOptions::default()).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_nan_is_read_back_as_nan() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.jsonl");
    let recording = Recording::create(&path, header(), RecordOptions::default()).unwrap();
    recording.recorder().send(step(1, total(Pending::known(f32::NAN))));
    recording.recorder().send(Decision {
        what: "depth".into(),
        stage: None,
        from: 3,
        to: 4,
        before: f64::NAN,
        after: None,
        outcome: DecisionOutcome::Kept,
        why: String::new(),
    });
    recording.finish();
    let record = RunRecord::read(&path).unwrap();
    assert_eq!(record.notes.broken, 0);
    let report = Report::of(&record, &Rules::default());
    assert!(report.to_string().contains("total NaN"), "{report}");
    assert!(report.adaptation.decisions[0].before.is_nan());
}

/// Hundred steps of 50 and 150 ms in turn, then a clean end.
fn send_varying_run(recorder: &Recorder) {
    for number in 1..=100 {
        let took = Nanos::millis(if number % 2 == 0 { 50 } else { 150 });
        recorder.send(Step { took, ..step(number, total(Pending::known(1.0))) });
    }
    recorder.send(Final { outcome: RunOutcome::Done, why: None, steps: 100, flags: vec![] });
}

#[test]
fn the_report_from_memory_is_the_report_from_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.jsonl");
    let recording = Recording::create(&path, header(), RecordOptions::default()).unwrap();
    send_varying_run(&recording.recorder());
    let closed = recording.finish();
    let record = RunRecord::read(&path).unwrap();
    let mut from_memory = Report::from_summary(&closed.summary, None, &Rules::default());
    let mut from_file = Report::of(&record, &Rules::default());
    // Only these two may differ: how the file was read, and writes after the last line.
    from_file.record.notes = None;
    from_memory.record.health.slowest_write = Nanos(0);
    from_file.record.health.slowest_write = Nanos(0);
    assert_eq!(from_memory, from_file);
}

#[test]
fn listeners_receive_every_event_and_the_line_every_hundred_steps() {
    let heard = Arc::new(Mutex::new((0, Vec::new())));
    let ears = Arc::clone(&heard);
    let listener = Listener::new(move |news| {
        let mut heard = ears.lock().unwrap();
        match news {
            Update::Event(_) => heard.0 += 1,
            Update::Periodic(line) => heard.1.push(line.to_string()),
        }
    });
    let file = MemoryFile::default();
    let options = RecordOptions { listener: Some(listener), ..Default::default() };
    let recording = Recording::start(Box::new(file.clone()), header(), options).unwrap();
    send_varying_run(&recording.recorder());
    recording.finish();
    let (events, periodic) = heard.lock().unwrap().clone();
    assert_eq!(events, lines(&file).len());
    assert_eq!(periodic.len(), 1);
    assert!(periodic[0].starts_with("step 100: mean 100.00 ms, std 50.00 ms"), "{periodic:?}");
    let warnings = of_kind(&lines(&file), "warning");
    assert_eq!(warnings[0]["code"], "variation", "the record warns too");
}

#[test]
fn a_listener_that_panics_is_reported_and_blocks_nobody() {
    let listener = Listener::new(|news| {
        if matches!(news, Update::Periodic(_)) {
            panic!("on purpose");
        }
    });
    let options = RecordOptions { listener: Some(listener), ..Default::default() };
    let recording = Recording::start(Box::<MemoryFile>::default(), header(), options).unwrap();
    send_varying_run(&recording.recorder());
    let closed = recording.finish();
    assert_eq!(closed.ending, Ending::Cut);
    assert!(closed.health.first_error.unwrap().contains("panicked"));
}
