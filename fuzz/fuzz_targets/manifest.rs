//! Any bytes as a corpus manifest: rows, rejected rows or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tandem_data::corpus::{Corpus, CorpusConfig};

static PLACE: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(place.path().join("wavs")).expect("a directory");
    place
});

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(PLACE.path().join("metadata.csv"), bytes).expect("room");
    if let Ok(corpus) = Corpus::read(PLACE.path(), &CorpusConfig::default()) {
        for row in &corpus.utterances {
            assert!(corpus.audio_path(row).starts_with(PLACE.path()), "{row:?}");
        }
    }
});
