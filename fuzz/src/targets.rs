//! Everything that reads foreign bytes, one function each.
//!
//! In: any bytes. Out: nothing; a panic is a finding. Burn is not part of it: what reads
//! configurations and manifests of checkpoints is taken from its files, apart from the rest of
//! their crates.

#[path = "checkpoint.rs"]
mod checkpoint;
#[path = "config.rs"]
mod config;

use std::fs;
use std::sync::LazyLock;
use tandem_data::audio::{AudioLimits, Decoder};
use tandem_data::cache::{Cache, Fingerprint, Found};
use tandem_data::corpus::{Corpus, CorpusConfig};
use tandem_telemetry::Rules;
use tandem_telemetry::reader::RunRecord;
use tandem_telemetry::report::Report;
use tandem_units::SampleRate;
use tempfile::TempDir;

pub use checkpoint::checkpoint_manifest;
pub use config::config_file;

/// As a corpus manifest: rows, rejected rows or an error; no recording outside of the corpus.
pub fn manifest(bytes: &[u8]) {
    static PLACE: LazyLock<TempDir> = LazyLock::new(|| {
        let place = tempfile::tempdir().expect("a directory");
        fs::create_dir(place.path().join("wavs")).expect("a directory");
        place
    });
    fs::write(PLACE.path().join("metadata.csv"), bytes).expect("room");
    if let Ok(corpus) = Corpus::read(PLACE.path(), &CorpusConfig::default()) {
        for row in &corpus.utterances {
            assert!(corpus.audio_path(row).starts_with(PLACE.path()), "{row:?}");
        }
    }
}

/// As a recording: sound within the limits or an error.
pub fn audio(bytes: &[u8]) {
    let limits = AudioLimits::default();
    let longest = limits.max_length;
    let mut decoder = Decoder::new(SampleRate(22050), limits);
    if let Ok(sound) = decoder.decode(bytes, None) {
        let samples = sound.to_f32();
        assert!(samples.len() as f64 / 22050.0 <= longest.0 + 1.0);
        assert!(samples.iter().all(|sample| sample.is_finite()));
    }
}

/// As the index of a cache: usable, damaged in parts or refused. The first sixteen bytes are the
/// settings that the index should be of.
pub fn cache_index(bytes: &[u8]) {
    static PLACE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));
    let Some((settings, index)) = bytes.split_first_chunk::<16>() else { return };
    fs::write(PLACE.path().join("index"), index).expect("room");
    if let Found::Ready(cache) = Cache::open(PLACE.path(), Fingerprint(*settings)) {
        for number in 0..cache.len().min(1000) {
            if let Some(row) = cache.row(number) {
                let _ = cache.text(row.record);
                let _ = cache.mel(number, row.record);
            }
        }
    }
}

/// As a run record: a report, or an error with a fact.
pub fn run_record(bytes: &[u8]) {
    static PLACE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));
    let path = PLACE.path().join("run.jsonl");
    fs::write(&path, bytes).expect("room");
    if let Ok(record) = RunRecord::read(&path) {
        let _ = Report::of(&record, &Rules::default());
    }
}
