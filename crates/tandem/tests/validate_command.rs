//! `tandem validate`: configuration files of Tandem, of MyXTTS, and invalid files.

mod support;

use std::fs;
use support::{CommandOutput, TestDir};

const MYXTTS: &str = "\
model:
  sample_rate: 22050
  n_mels: 80
  decoder_dim: 1024
  languages: [en, fa, zh]
training:
  epochs: 3
  learning_rate: 1e-4
  optimizer: adamw
  gradient_clip_norm: \"0.5\"
data:
  dataset_path: demo
  language: en
  batch_size: 8
  num_workers: 9
  prefetch_buffer_size: 4
  max_mel_frames: 800
  use_tf_native_loading: false
  prefetch_to_gpu: true
  enhanced_gpu_prefetch: true
  optimize_cpu_gpu_overlap: true
  pipeline_buffer_size: 50
  enable_xla: true
  pin_memory: true
  static_shapes: true
  trim_silence: true
";

fn test_dir(name: &str, text: &str) -> TestDir {
    let dir = TestDir::new();
    fs::write(dir.path(name), text).expect("written");
    dir
}

fn checked(name: &str, text: &str, more: &[&str]) -> CommandOutput {
    test_dir(name, text).run(&[&["validate", "--config", name], more].concat())
}

/// The output without CPU name and column widths, which depend on the machine.
fn plain(out: &str) -> String {
    let row = |line: &str| {
        let line = line
            .split_once("CPU buffered on ")
            .map_or(line.to_string(), |(before, _)| format!("{before}CPU buffered on [PROCESSOR]"));
        line.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect::<Vec<_>>()
            .join(" | ")
    };
    let advice = |line: &&str| !line.starts_with(" advice");
    out.lines().filter(advice).map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn settings_of_myxtts_are_checked_and_explained() {
    let output = checked("x.yaml", MYXTTS, &["--corpus", "demo"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    insta::assert_snapshot!(plain(&output.out));
}

#[test]
fn converted_settings_start_a_run() {
    let dir = test_dir("x.yaml", MYXTTS);
    let output = dir.run(&["validate", "--config", "x.yaml", "--convert"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    insta::assert_snapshot!(output.out);
    fs::write(dir.path("ours.toml"), &output.out).expect("written");
    let again = dir.run(&["validate", "--config", "ours.toml", "--json"]).json();
    assert_eq!((&again["ready"], &again["written_for"]), (&true.into(), &"tandem".into()));
    let train = ["train", "--config", "ours.toml", "--max-steps", "1", "--frame-budget", "900"];
    let more = ["--cache-dataset", "--batch-size", "2", "--checkpoint-dir", "run"];
    let trained = dir.run(&[&train[..], &more].concat());
    assert_eq!(trained.code, Some(0), "{trained:?}");
    let saved = fs::read_to_string(dir.path("run/config.toml")).expect("the run's settings");
    assert!(saved.contains("lr = 0.0001") && saved.contains("clip = 0.5"), "{saved}");
}

#[test]
fn settings_that_a_run_would_refuse_must_be_fixed() {
    for (text, words) in [
        ("[devices]\ndata_gpu = 0\nmodel_gpu = 1\n", ["device pair", "insufficient GPUs"]),
        ("[devices]\nmodel_gpu_memory = 4\n", ["settings", "memory isolation is off"]),
        ("[train.optimizer]\nlr = 0.0\n", ["settings", "a number above 0"]),
        ("train_data = \"nowhere\"\n", ["corpus rows", "nowhere"]),
    ] {
        let output = checked("a.toml", text, &[]);
        assert_eq!(output.code, Some(1), "{text}: {output:?}");
        assert!(output.out.contains("not ready: 1 must be fixed"), "{text}: {}", output.out);
        let line = output.out.lines().find(|line| line.contains("must fix")).expect("a fault");
        assert!(words.iter().all(|word| line.contains(word)), "{text}: {line}");
    }
}

#[test]
fn thresholds_are_exact_and_configurable() {
    let levels = |text: &str, more: &[&str]| {
        let found = checked("a.toml", text, &[&["--json"], more].concat()).json();
        let checks = found["checks"].as_array().expect("checks").clone();
        let level = |name: &str| {
            let check = checks.iter().find(|check| check["name"] == name).expect("a check");
            check["level"].as_str().expect("a word").to_string()
        };
        ["workers", "prefetch", "batch"].map(level)
    };
    let text = |workers, prefetch, batch| {
        format!(
            "num_workers = {workers}\nprefetch_buffer_size = {prefetch}\n[batch]\nbatch_size = {batch}\n"
        )
    };
    assert_eq!(levels(&text(8, 8, 16), &[]), ["ok", "ok", "ok"]);
    // More workers than cores only take turns.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = if cores > 7 { "warn" } else { "ok" };
    assert_eq!(levels(&text(7, 7, 15), &[]), [workers, "warn", "warn"]);
    // The row of the configuration matrix for 24 GB has 16 utterances and 2 to 4 batches.
    assert_eq!(levels(&text(8, 2, 16), &[]), ["ok", "ok", "ok"]);
    assert_eq!(levels(&text(8, 2, 16), &["--min-prefetch", "3"]), ["ok", "warn", "ok"]);
    let lower = ["--min-workers", "7", "--min-prefetch", "7", "--min-batch", "15"];
    assert_eq!(levels(&text(7, 7, 15), &lower), ["ok", "ok", "ok"]);
}

#[test]
fn invalid_files_are_errors_with_position_and_hint() {
    for (name, text, words) in [
        (
            "a.yaml",
            "data:\n  num_workerz: 3\n",
            ["line 2, column 16", "did you mean `data.num_workers`?"],
        ),
        (
            "a.yaml",
            "data:\n  learning_rate: 3\n",
            ["unknown key", "did you mean `training.learning_rate`?"],
        ),
        ("a.yaml", "data: {}\nnum_workers: 4\n", ["line 2", "did you mean `data.num_workers`?"]),
        ("a.yaml", "data: {}\nbatch: {}\n", ["unknown key `batch`", "cannot be mixed"]),
        (
            "a.yaml",
            "data:\n  zzzz: 4\n",
            ["unknown key `data.zzzz`", "the nearest keys are `data."],
        ),
        ("a.yaml", "data:\n  batch_size: many\n", ["line 2, column 15", "expected a whole number"]),
        ("a.yaml", "data:\n  enable_xla: 3\n", ["line 2, column 15", "expected true or false"]),
        ("a.yaml", "model:\n  model_size: huge\n", ["line 2, column 15", "`tiny`"]),
        ("a.yaml", "data: [1\n", ["line 2, column 1", "hint:"]),
        ("a.yaml", "train:\n  keap: 3\n", ["line 2, column 3", "did you mean `train.keep`?"]),
        ("a.toml", "num_workers = \"x\"\n", ["line 1, column 15", "a whole number"]),
        ("a.txt", "x", ["the format of the file is unknown", "hint:"]),
    ] {
        checked(name, text, &[]).assert_failed(&words);
    }
    TestDir::new()
        .run(&["validate", "--config", "no.yaml"])
        .assert_failed(&["no.yaml", "check the path"]);
    let binary = TestDir::new();
    fs::write(binary.path("b.yaml"), [0xff, 0xfe, 0x00]).expect("written");
    binary.run(&["validate", "--config", "b.yaml"]).assert_failed(&["b.yaml", "UTF-8"]);
}
