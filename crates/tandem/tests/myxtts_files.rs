//! A configuration file of MyXTTS wherever a configuration is accepted: converted in memory, with one
//! line for each key that means something else, and errors that name keys of MyXTTS.

mod support;

use std::fs;
use support::TestDir;

/// Keys with the same meaning, with another meaning, and without one.
const FILE: &str = "\
data:
  dataset_path: corpus
  batch_size: 2
  num_workers: 1
  prefetch_buffer_size: 5
  pipeline_buffer_size: 8
  use_tf_native_loading: false
  max_mel_frames: 400
  preprocessing_mode: precompute
training:
  learning_rate: 1e-4
  min_learning_rate: 1e-6
  optimizer: adamw
model:
  languages: [en, zh]
paths:
  checkpoint_dir: from-file
logging:
  level: INFO
";

/// What each command prints: one line for each key that means something else.
const CHANGED: [&str; 7] = [
    "x.yaml: a MyXTTS configuration; 6 of 14 keys have another meaning here:",
    "  line 7: `data.use_tf_native_loading` has no effect, always: loading is native",
    "  line 9: `data.preprocessing_mode` is cache_dataset = true",
    "  line 12: `training.min_learning_rate` is train.optimizer.final_lr = 0.01, as a share",
    "  line 13: `training.optimizer` has no effect: always AdamW",
    "  line 15: `model.languages` is text.languages = [\"en\"]; without zh",
    "  line 19: `logging` has no effect: every step is in the record",
];

fn test_dir() -> TestDir {
    let rows = ('a'..='h').map(|name| format!("{name}|hello there|hello there\n"));
    let dir = TestDir::with_clips(8, &rows.collect::<String>());
    fs::write(dir.path("x.yaml"), FILE).expect("written");
    dir
}

#[test]
fn every_command_with_a_configuration_converts_it() {
    let dir = test_dir();
    let commands: [&[&str]; 7] = [
        &["prepare", "corpus"],
        &["batches", "corpus"],
        &["analyze", "corpus", "--batches", "2", "--sample", "2"],
        &["devices"],
        &["doctor"],
        &["train", "--model-size", "micro", "--max-steps", "1", "--no-adapt"],
        &["profile", "--model-size", "micro", "--num-steps", "3", "--skip-steps", "1"],
    ];
    for command in commands {
        let output = dir.run(&[command, &["--config", "x.yaml"]].concat());
        // `analyze` may find something to change.
        assert!(matches!(output.code, Some(0 | 1)), "{command:?}: {output:?}");
        for line in CHANGED {
            assert!(output.err.contains(line), "{command:?}: no `{line}` in {}", output.err);
        }
        let about = output.err.lines().filter(|line| line.starts_with("  line ")).count();
        assert_eq!(about, CHANGED.len() - 1, "{command:?}: {}", output.err);
    }
    let written = fs::read_to_string(dir.path("from-file/config.toml")).expect("a run");
    for setting in ["lr = 0.0001", "batch_size = 2", "prefetch_buffer_size = 5", "buffer_size = 8"]
    {
        assert!(written.contains(setting), "no `{setting}` in {written}");
    }
}

#[test]
fn a_flag_overrides_the_file_and_unknown_keys_are_errors() {
    let dir = test_dir();
    let train = ["train", "--config", "x.yaml", "--model-size", "micro", "--max-steps", "1"];
    let more = ["--prefetch-buffer-size", "4", "--checkpoint-dir", "typed"];
    let output = dir.run(&[&train[..], &more].concat());
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.err.contains("prefetch: 4 batches for the model (as typed)"), "{}", output.err);
    assert!(dir.path("typed/config.toml").exists() && !dir.path("from-file").exists());
    fs::write(dir.path("x.yaml"), FILE.replace("batch_size: 2", "batch_sise: 2")).expect("written");
    for command in [&["train"][..], &["profile"], &["prepare", "corpus"], &["devices"]] {
        let output = dir.run(&[command, &["--config", "x.yaml"]].concat());
        let right = ["line 3", "unknown key `data.batch_sise`", "did you mean `data.batch_size`?"];
        output.assert_failed(&right);
    }
}
