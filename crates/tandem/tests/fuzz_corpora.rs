//! The fuzz targets without a fuzzer: the inputs that are checked in, and thousands like them, drawn
//! from fixed seeds. `scripts/fuzz.sh` looks further, by what the code does with them.

#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/src/targets.rs"]
mod targets;

use mutate::Mutations;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// No input is longer; the fuzzer keeps to the same.
const LONGEST: usize = 65_536;

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let listed = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let read = |path: PathBuf| (path.clone(), fs::read(path).expect("an input"));
    paths.into_iter().map(read).collect()
}

/// Every input of a corpus, and so many like each.
fn check(name: &str, target: fn(&[u8]), likes: usize) {
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "there are no inputs for {name}");
    for (number, (path, input)) in corpus.iter().enumerate() {
        attempt(target, input, &format!("{}", path.display()));
        let mut mutations = Mutations::new(number as u64);
        for turn in 0..likes {
            let (_, other) = &corpus[turn % corpus.len()];
            let mut like = mutations.of(input, other);
            like.truncate(LONGEST);
            attempt(target, &like, &format!("{}, like number {turn}", path.display()));
        }
    }
}

fn attempt(target: fn(&[u8]), input: &[u8], which: &str) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        let kept = std::env::temp_dir().join("tandem-fuzz-finding");
        fs::write(&kept, input).expect("room for the finding");
        panic!("{which} is kept in {}", kept.display());
    }
}

#[test]
fn manifests() {
    check("manifest", targets::manifest, 800);
}

#[test]
fn configuration_files() {
    check("config_file", targets::config_file, 400);
}

#[test]
fn recordings() {
    check("audio", targets::audio, 150);
}

#[test]
fn cache_indices() {
    check("cache_index", targets::cache_index, 1000);
}

#[test]
fn manifests_of_checkpoints() {
    check("checkpoint_manifest", targets::checkpoint_manifest, 1000);
}

#[test]
fn run_records() {
    check("run_record", targets::run_record, 500);
}
