//! `tandem report` as a user meets it.

use std::path::Path;
use std::process::{Command, Output};
use tandem_telemetry::event::{Final, RunHeader, RunOutcome, Step};
use tandem_telemetry::{Nanos, RecordOptions, Recording};
use tandem_units::Ticket;

fn tandem(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tandem")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn record(path: &Path) {
    let header = RunHeader::now("tandem", "0.1.0", serde_json::json!({}));
    let recording = Recording::create(path, header, RecordOptions::default()).unwrap();
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
            losses: vec![],
        });
    }
    recorder.send(Final { outcome: RunOutcome::Done, why: None, steps: 20, flags: vec![] });
    recording.finish();
}

#[test]
fn a_run_is_reported_by_file_and_by_directory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.jsonl");
    record(&file);
    let by_file = tandem(&["report", file.to_str().unwrap()]);
    let by_directory = tandem(&["report", dir.path().to_str().unwrap()]);
    assert_eq!(by_file.status.code(), Some(0));
    assert_eq!(by_file.stdout, by_directory.stdout);
    let said = text(&by_file.stdout);
    assert!(said.contains("verdict   the model waits 50.0 % of the time"), "{said}");
    assert!(said.contains("20 steps"), "{said}");
}

#[test]
fn a_run_that_was_taken_up_again_is_reported_by_its_last_part_and_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    record(&dir.path().join("run.jsonl"));
    let later = dir.path().join("run-from-00000020.jsonl");
    // Begun a moment later, by its first line.
    std::thread::sleep(std::time::Duration::from_millis(5));
    record(&later);
    let by_directory = tandem(&["report", dir.path().to_str().unwrap()]);
    assert_eq!(by_directory.stdout, tandem(&["report", later.to_str().unwrap()]).stdout);
    let said = text(&by_directory.stderr);
    assert!(said.contains("its last part, `run-from-00000020.jsonl`; name `run.jsonl`"), "{said}");
}

#[test]
fn the_json_form_is_json_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.jsonl");
    record(&file);
    let output = tandem(&["report", file.to_str().unwrap(), "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["steps"]["all"]["count"], 20);
    assert_eq!(report["verdict"]["cause"], "unknown");
}

#[test]
fn a_trace_is_drawn_on_request_and_says_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let (file, trace) = (dir.path().join("run.jsonl"), dir.path().join("run.pftrace"));
    record(&file);
    let output = tandem(&["report", file.to_str().unwrap(), "--trace", trace.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(trace.metadata().unwrap().len() > 500);
    assert!(text(&output.stderr).contains("kept no spans"));
}

#[test]
fn a_page_is_written_in_either_language() {
    let dir = tempfile::tempdir().unwrap();
    record(&dir.path().join("run.jsonl"));
    let page = dir.path().join("page.html");
    for (lang, words) in [("en", "dir=\"ltr\""), ("fa", "dir=\"rtl\"")] {
        let run = dir.path().to_str().unwrap();
        let output = tandem(&["report", run, "--html", page.to_str().unwrap(), "--lang", lang]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let written = std::fs::read_to_string(&page).unwrap();
        assert!(written.contains(words) && written.ends_with("</html>"), "{written}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    record(&dir.path().join("run.jsonl"));
    let run = dir.path().to_str().unwrap();
    for place in ["no/such/folder/page.html", run] {
        let output = tandem(&["report", run, "--html", place]);
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert!(said.contains("cannot write the page") && said.contains("hint: "), "{said}");
    }
    let output = tandem(&["report", run, "--html", "x.html", "--lang", "de"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("[possible values: en, fa]"));
}

#[test]
fn what_is_no_record_fails_with_a_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("metadata.csv");
    std::fs::write(&file, "LJ001-0001|Printing\n").unwrap();
    let output = tandem(&["report", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("is not a run record") && said.contains("hint: "), "{said}");
    let output = tandem(&["report", "no/such/run.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("hint: "), "{}", text(&output.stderr));
}
