//! `tandem report`: text, JSON, trace and page of a run record, and errors.

mod support;

use std::fs;
use support::TestDir;
use tandem_telemetry::event::{Final, RunHeader, RunOutcome, Step};
use tandem_telemetry::{Nanos, RecordOptions, Recording};
use tandem_units::Ticket;

/// Writes a record of 20 steps that wait half of the time.
fn record(dir: &TestDir, file: &str) {
    let header = RunHeader::now("tandem", "0.1.0", serde_json::json!({}));
    let path = dir.path(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let recording = Recording::create(&path, header, RecordOptions::default()).unwrap();
    let recorder = recording.recorder();
    for number in 1..=20 {
        recorder.send(Step {
            step: number,
            ticket: Ticket { seq: number - 1, ..Ticket::default() },
            took: Nanos::millis(100),
            waited: Nanos::millis(50),
            items: 16,
            frames: 9000,
            shape: None,
            ..Step::default()
        });
    }
    recorder.send(Final { outcome: RunOutcome::Done, why: None, steps: 20, flags: vec![] });
    recording.finish();
}

fn dir_with_record() -> TestDir {
    let dir = TestDir::new();
    record(&dir, "run/run.jsonl");
    dir
}

#[test]
fn a_run_is_reported_by_file_and_by_directory() {
    let dir = dir_with_record();
    let by_file = dir.run(&["report", "run/run.jsonl"]);
    let by_directory = dir.run(&["report", "run"]);
    assert_eq!(by_file.code, Some(0));
    assert_eq!(by_file.out, by_directory.out);
    let out = by_file.out;
    assert!(out.contains("verdict   the model waits 50.0 % of the time"), "{out}");
    assert!(out.contains("20 steps"), "{out}");
}

#[test]
fn a_resumed_run_is_reported_by_its_last_part_with_a_note() {
    let dir = dir_with_record();
    // The first line of a part has its start time.
    std::thread::sleep(std::time::Duration::from_millis(5));
    record(&dir, "run/run-from-00000020.jsonl");
    let by_directory = dir.run(&["report", "run"]);
    assert_eq!(by_directory.out, dir.run(&["report", "run/run-from-00000020.jsonl"]).out);
    let err = by_directory.err;
    assert!(err.contains("its last part, `run-from-00000020.jsonl`; name `run.jsonl`"), "{err}");
}

#[test]
fn json_output_is_valid() {
    let report = dir_with_record().run(&["report", "run/run.jsonl", "--json"]).json();
    assert_eq!(report["steps"]["all"]["count"], 20);
    assert_eq!(report["verdict"]["cause"], "unknown");
}

#[test]
fn a_trace_without_spans_is_written_with_a_note() {
    let dir = dir_with_record();
    let output = dir.run(&["report", "run/run.jsonl", "--trace", "run.pftrace"]);
    assert_eq!(output.code, Some(0));
    assert!(dir.path("run.pftrace").metadata().unwrap().len() > 500);
    assert!(output.err.contains("has no spans"), "{output:?}");
}

#[test]
fn a_page_is_written_in_either_language() {
    let dir = dir_with_record();
    for (lang, words) in [("en", "dir=\"ltr\""), ("fa", "dir=\"rtl\"")] {
        let output = dir.run(&["report", "run", "--html", "page.html", "--lang", lang]);
        assert_eq!(output.code, Some(0), "{output:?}");
        let written = fs::read_to_string(dir.path("page.html")).unwrap();
        assert!(written.contains(words) && written.ends_with("</html>"), "{written}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let dir = dir_with_record();
    for path in ["no/such/folder/page.html", "run"] {
        dir.run(&["report", "run", "--html", path]).assert_failed(&["cannot write the page"]);
    }
    let output = dir.run(&["report", "run", "--html", "x.html", "--lang", "de"]);
    assert_eq!(output.code, Some(2));
    assert!(output.err.contains("[possible values: en, fa]"), "{output:?}");
}

#[test]
fn other_files_are_errors_with_a_hint() {
    let dir = TestDir::new();
    fs::write(dir.path("metadata.csv"), "LJ001-0001|Printing\n").unwrap();
    dir.run(&["report", "metadata.csv"]).assert_failed(&["is not a run record"]);
    dir.run(&["report", "no/such/run.jsonl"]).assert_failed(&[]);
}
