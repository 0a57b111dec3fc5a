//! Any bytes as the index of a cache: usable, damaged in parts or refused, never a panic. The first
//! sixteen are the settings that the index should be of.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tandem_data::cache::{Cache, Fingerprint, Found};

static PLACE: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a directory"));

fuzz_target!(|bytes: &[u8]| {
    let Some((settings, index)) = bytes.split_first_chunk::<16>() else { return };
    std::fs::write(PLACE.path().join("index"), index).expect("room");
    let settings = Fingerprint(*settings);
    if let Found::Ready(cache) = Cache::open(PLACE.path(), settings) {
        for number in 0..cache.len().min(1000) {
            if let Some(row) = cache.row(number) {
                let _ = cache.text(row.record);
                let _ = cache.mel(number, row.record);
            }
        }
    }
});
