//! Any bytes as a run record: a report, or an error with a fact, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tandem_telemetry::Rules;
use tandem_telemetry::reader::RunRecord;
use tandem_telemetry::report::Report;

static PLACE: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a directory"));

fuzz_target!(|bytes: &[u8]| {
    let path = PLACE.path().join("run.jsonl");
    std::fs::write(&path, bytes).expect("room");
    if let Ok(record) = RunRecord::read(&path) {
        let _ = Report::of(&record, &Rules::default());
    }
});
