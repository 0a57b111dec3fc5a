//! `tandem train --val-data`: held-out rows from a second corpus.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use support::{CommandOutput, TestDir};

const TRAIN: [&str; 12] = [
    "train",
    "--batch-size",
    "2",
    "--frame-budget",
    "800",
    "--warmup-steps",
    "1000",
    "--align-flat-start",
    "0",
    "--checkpoint-dir",
    "run",
    "--train-data",
];

fn train(dir: &TestDir, more: &[&str]) -> CommandOutput {
    dir.run(&[&TRAIN[..], more].concat())
}

fn demo(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo-corpus").join(file)
}

/// A corpus in `name` of these rows of the demo corpus.
fn corpus(dir: &TestDir, name: &str, ids: &[&str]) {
    let root = dir.path(name);
    let all = fs::read_to_string(demo("metadata.csv")).expect("the demo corpus");
    let mut rows = all.lines();
    let mut manifest = format!("{}\n", rows.next().expect("a header"));
    for row in rows.filter(|row| ids.contains(&row.split('|').next().unwrap())) {
        let file = format!("wavs/{}.flac", row.split('|').next().unwrap());
        fs::create_dir_all(root.join(&file).parent().unwrap()).expect("created");
        fs::copy(demo(&file), root.join(&file)).expect("copied");
        manifest.push_str(&format!("{row}\n"));
    }
    fs::write(root.join("metadata.csv"), manifest).expect("written");
}

const ENGLISH: [&str; 6] = [
    "en/en_emma_001",
    "en/en_jack_002",
    "en/en_henry_003",
    "en/en_emma_004",
    "en/en_jack_008",
    "en/en_henry_009",
];

#[test]
fn a_voice_is_validated_on_all_rows_of_another_corpus() {
    let dir = TestDir::new();
    // The corpora list their languages in different orders, so the language ids differ.
    let rows = ["fa/fa_mina_023", "fa/fa_arash_005", "en/en_jack_005"];
    corpus(&dir, "val", &rows);
    corpus(&dir, "train", &[&ENGLISH[..], &["fa/fa_darius_003", "fa/fa_darius_006"]].concat());
    let output = train(&dir, &["train", "--val-data", "val", "--max-steps", "2"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.err.contains("validating on all 3 rows of val"), "{}", output.err);
    assert!(output.err.contains("arash, mina are not in the training corpus"), "{}", output.err);
    let record = fs::read_to_string(dir.path("run/run.jsonl")).expect("a record");
    let validation = record.lines().find(|line| line.contains("\"event\":\"validation\""));
    let validation: serde_json::Value = serde_json::from_str(validation.expect("one")).unwrap();
    for name in ["total", "alignment_coverage", "alignment_diagonality", "alignment_entropy"] {
        assert!(validation["values"][name].as_f64().is_some_and(f64::is_finite), "{validation}");
    }
    // No row of the training corpus is held out: all eight rows are trained on.
    let state = fs::read_to_string(dir.path("run/step-00000002/state.json")).expect("a state");
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    assert_eq!(state["corpus"]["rows"], 8, "{state}");
    let best = fs::read_to_string(dir.path("run/best.json")).expect("a validated checkpoint");
    let best: serde_json::Value = serde_json::from_str(&best).unwrap();
    assert!(best["contents"]["rows"].is_string(), "which rows it was validated on: {best}");
    // Without `--val-data` training rows are held out again, so this is a different run.
    let without = train(&dir, &["train", "--max-steps", "3", "--resume"]);
    without.assert_failed(&["8 rows", "--allow-changes"]);
    let same = ["train", "--val-data", "val", "--max-steps", "3", "--resume"];
    assert_eq!(train(&dir, &same).code, Some(0));
}

#[test]
fn a_validation_corpus_with_training_rows_or_unknown_languages_is_refused() {
    let dir = TestDir::new();
    corpus(&dir, "train", &ENGLISH);
    corpus(&dir, "persian", &["fa/fa_mina_023", "fa/fa_arash_005"]);
    corpus(&dir, "leaky", &["en/en_jack_005", "en/en_jack_002"]);
    train(&dir, &["train", "--val-data", "persian", "--max-steps", "1"]).assert_failed(&[
        "`persian`",
        "rows in fa",
        "the voice was trained on en",
        "`language` column",
    ]);
    train(&dir, &["train", "--val-data", "leaky", "--max-steps", "1"]).assert_failed(&[
        "1 of 2 recordings",
        "en/en_jack_002",
        "remove those rows",
    ]);
    train(&dir, &["train", "--val-data", "train", "--max-steps", "1"])
        .assert_failed(&["6 of 6 recordings", "leave out `--val-data`"]);
    train(&dir, &["train", "--val-data", "nowhere", "--max-steps", "1"])
        .assert_failed(&["cannot validate on `nowhere`"]);
    assert!(!dir.path("run/step-00000001").exists());
}
