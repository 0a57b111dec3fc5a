//! One function for each parser of untrusted bytes.
//!
//! In: arbitrary bytes. Out: nothing; a panic is a finding. Does not depend on Burn: the parsers of
//! configurations and checkpoint manifests are included by file, without the rest of their crates.

#[path = "checkpoint.rs"]
mod checkpoint;
#[path = "config.rs"]
mod config;

use std::fs;
use std::sync::LazyLock;
use tandem_audio::{AudioConfig, Decoder};
use tandem_data::cache::{Cache, EntryBuffer, Found};
use tandem_data::corpus::{Corpus, CorpusConfig};
use tandem_disk::Fingerprint;
use tandem_telemetry::Rules;
use tandem_telemetry::reader::RunRecord;
use tandem_telemetry::report::Report;
use tandem_units::SampleRate;
use tempfile::TempDir;

pub use checkpoint::checkpoint_manifest;
pub use config::config_file;

/// A corpus manifest: gives rows, rejected rows or an error, and no recording outside of the corpus.
pub fn manifest(bytes: &[u8]) {
    static DIR: LazyLock<TempDir> = LazyLock::new(|| {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("wavs")).expect("a directory");
        dir
    });
    fs::write(DIR.path().join("metadata.csv"), bytes).expect("written");
    if let Ok(corpus) = Corpus::read(DIR.path(), &CorpusConfig::default()) {
        for row in &corpus.utterances {
            assert!(corpus.audio_path(row).starts_with(DIR.path()), "{row:?}");
        }
    }
}

/// A recording: gives audio within the limits or an error.
pub fn audio(bytes: &[u8]) {
    let limits = AudioConfig::default();
    let longest = limits.max_length;
    let mut decoder = Decoder::new(SampleRate(22050), limits);
    if let Ok(sound) = decoder.decode(bytes, None) {
        let samples = sound.to_f32();
        assert!(samples.len() as f64 / 22050.0 <= longest.0 + 1.0);
        assert!(samples.iter().all(|sample| sample.is_finite()));
    }
}

/// The index of a cache: usable, partly damaged or refused. The first sixteen bytes are the expected
/// fingerprint of the settings.
pub fn cache_index(bytes: &[u8]) {
    static DIR: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));
    let Some((settings, index)) = bytes.split_first_chunk::<16>() else { return };
    fs::write(DIR.path().join("index"), index).expect("written");
    if let Found::Ready(cache) = Cache::open(DIR.path(), Fingerprint(*settings)) {
        for number in 0..cache.len().min(1000) {
            if let Some(row) = cache.row(number) {
                let _ = cache.text(row.record, &mut EntryBuffer::default());
                let _ = cache.mel(row.record);
            }
        }
    }
}

/// A run record: gives a report, or an error with a message.
pub fn run_record(bytes: &[u8]) {
    static DIR: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));
    let path = DIR.path().join("run.jsonl");
    fs::write(&path, bytes).expect("written");
    if let Ok(record) = RunRecord::read(&path) {
        let _ = Report::of(&record, &Rules::default());
    }
}
