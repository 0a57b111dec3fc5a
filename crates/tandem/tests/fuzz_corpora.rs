//! The fuzz targets without a fuzzer: the checked-in inputs, and thousands of mutations of them from fixed
//! seeds. `xtask/tests/fuzz.sh` runs the same targets with coverage feedback.

#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/src/targets.rs"]
mod targets;

use mutate::Mutations;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The longest input; `xtask/tests/fuzz.sh` has the same limit.
const LONGEST: usize = 65_536;

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let listed = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let read = |path: PathBuf| (path.clone(), fs::read(path).expect("an input"));
    paths.into_iter().map(read).collect()
}

/// Runs every input of a corpus, and `mutants` mutations of each.
fn check(name: &str, target: fn(&[u8]), mutants: usize) {
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "there are no inputs for {name}");
    for (number, (path, input)) in corpus.iter().enumerate() {
        attempt(target, input, &format!("{}", path.display()));
        let mut mutations = Mutations::new(number as u64);
        for turn in 0..mutants {
            let (_, other) = &corpus[turn % corpus.len()];
            let mut mutant = mutations.of(input, other);
            mutant.truncate(LONGEST);
            attempt(target, &mutant, &format!("{}, mutation {turn}", path.display()));
        }
    }
}

fn attempt(target: fn(&[u8]), input: &[u8], which: &str) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        let saved = std::env::temp_dir().join("tandem-fuzz-finding");
        fs::write(&saved, input).expect("the temporary directory is writable");
        panic!("{which}: the input was written to {}", saved.display());
    }
}

#[test]
fn corpus_manifests() {
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
fn checkpoint_manifests() {
    check("checkpoint_manifest", targets::checkpoint_manifest, 1000);
}

#[test]
fn run_records() {
    check("run_record", targets::run_record, 500);
}
