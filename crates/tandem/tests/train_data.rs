//! `tandem train` reports its data: usable and rejected rows, the cache, the workers.
//!
//! The corpus is a copy of the built-in one without 25 of its 150 recordings.

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use support::{CommandOutput, TestDir};

const REMOVED: usize = 25;

/// The corpus, and the ids of the first removed recordings in manifest order.
fn damaged_corpus() -> (TestDir, Vec<String>) {
    let place = TestDir::new();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo-corpus");
    copy(&demo, &place.corpus());
    let manifest = fs::read_to_string(demo.join("metadata_train.csv")).expect("a manifest");
    let ids = manifest.lines().skip(1).map(|line| line.split('|').next().expect("an id"));
    let removed: Vec<String> = ids.take(REMOVED).map(String::from).collect();
    for id in &removed {
        let found = ["flac", "wav", "ogg", "mp3"]
            .map(|ending| place.corpus().join("wavs").join(format!("{id}.{ending}")))
            .into_iter()
            .find(|path| path.exists());
        fs::remove_file(found.expect("the recording")).expect("removed");
    }
    (place, removed)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("created");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn train(place: &TestDir, run: &str, more: &[&str]) -> CommandOutput {
    let args = [
        "train",
        "--train-data",
        "corpus",
        "--batch-size",
        "2",
        "--frame-budget",
        "800",
        "--max-steps",
        "1",
        "--num-workers",
        "2",
        "--checkpoint-dir",
        run,
    ];
    place.run(&[&args[..], more].concat())
}

fn data_event(place: &TestDir, run: &str) -> Value {
    let record = fs::read_to_string(place.path(run).join("run.jsonl")).expect("a record");
    let events = record.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let found: Vec<Value> = events.filter(|event| event["event"] == "data").collect();
    assert_eq!(found.len(), 1, "one report for each run");
    found.into_iter().next().expect("one")
}

#[test]
fn screen_record_and_report_name_what_is_rejected() {
    let (place, removed) = damaged_corpus();
    let first = train(&place, "first", &[]);
    assert_eq!(first.code, Some(0), "{first:?}");

    let rows = "data: 150 rows, 125 usable (109 to train on, 16 held out), 25 rejected";
    assert!(first.err.contains(rows), "{}", first.err);
    let list = list_path(&first.err);
    assert!(first.err.contains("20 more; all rejected rows are listed in "), "{}", first.err);
    for (number, id) in removed[..5].iter().enumerate() {
        // The header is line 1 of the manifest.
        let place = format!("metadata_train.csv:{}", number + 2);
        let row = first.err.lines().find(|line| line.contains(id)).expect("a line of the row");
        assert!(row.contains(&place) && row.contains("no recording"), "{row}");
        assert!(row.contains("add the recording"), "the fix is in: {row}");
    }
    assert!(!first.err.contains(&removed[5]), "{}", first.err);
    assert!(first.err.contains("cache: built, 150 rows, in "), "{}", first.err);
    assert!(first.err.contains(" with 2 workers\n"), "{}", first.err);

    let listed = fs::read_to_string(place.path(&list)).expect("the list");
    assert!(removed.iter().all(|id| listed.contains(id)), "{listed}");

    let event = data_event(&place, "first");
    let counts = ["usable", "rejected", "eval", "rebuilt", "workers"];
    assert_eq!(counts.map(|name| event[name].as_u64().unwrap()), [109, 25, 16, 125, 2]);
    assert_eq!((event["cache"].as_str(), event["list"].as_str()), (Some("built"), Some(&*list)));
    assert!(event["seconds"].as_f64().unwrap() > 0.0);

    let report = first.out.lines().find(|line| line.starts_with("data ")).expect("a data line");
    assert!(report.contains("109") && report.contains("25 rejected"), "{report}");
    assert!(report.contains(&list), "{report}");

    let second = train(&place, "second", &[]);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(second.err.contains("cache: read, in "), "{}", second.err);
    assert!(second.err.contains(rows), "{}", second.err);
    assert_eq!(data_event(&place, "second")["cache"], "read");
}

fn list_path(err: &str) -> String {
    let line = err.lines().find(|line| line.contains("all rejected rows are listed in "));
    line.expect("the list is named").rsplit(' ').next().expect("a path").to_string()
}

#[test]
fn more_rejected_rows_than_allowed_are_an_error_that_shows_them() {
    let (place, removed) = damaged_corpus();
    let said = train(&place, "run", &["--max-rejected", "0.1"]);
    said.assert_failed(&["25 of 150 rows", "16.7 %", "--max-rejected", &removed[0], &removed[19]]);
    assert!(!place.path("run").join("run.jsonl").exists(), "no run is recorded");
}
