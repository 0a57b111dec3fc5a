//! `tandem validate` as a user meets it: our settings, those of MyXTTS, and files that are neither.

mod kit;

use kit::{Place, Said};
use std::fs;

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
  num_workers: 4
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

fn place(name: &str, text: &str) -> Place {
    let place = Place::new();
    fs::write(place.inside(name), text).expect("written");
    place
}

fn checked(name: &str, text: &str, more: &[&str]) -> Said {
    place(name, text).run(&[&["validate", "--config", name], more].concat())
}

/// Without what differs from machine to machine: its name, its cores, and columns as wide as they.
fn plain(out: &str) -> String {
    let here = std::thread::available_parallelism().map_or(1, usize::from);
    let out = out.replace(&format!("; this machine has {here} cores"), "");
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
    let said = checked("x.yaml", MYXTTS, &["--corpus", "demo"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    insta::assert_snapshot!(plain(&said.out));
}

#[test]
fn converted_settings_start_a_run() {
    let place = place("x.yaml", MYXTTS);
    let said = place.run(&["validate", "--config", "x.yaml", "--convert"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    insta::assert_snapshot!(said.out);
    fs::write(place.inside("ours.toml"), &said.out).expect("written");
    let again = place.run(&["validate", "--config", "ours.toml", "--json"]).json();
    assert_eq!((&again["ready"], &again["written_for"]), (&true.into(), &"tandem".into()));
    let train = ["train", "--config", "ours.toml", "--max-steps", "1", "--frame-budget", "900"];
    let trained = place.run(&[&train[..], &["--cache-dataset", "--batch-size", "2"]].concat());
    assert_eq!(trained.code, Some(0), "{trained:?}");
    let kept = fs::read_to_string(place.inside("run/config.toml")).expect("the run's settings");
    assert!(kept.contains("lr = 0.0001") && kept.contains("clip = 0.5"), "{kept}");
}

#[test]
fn what_a_run_would_refuse_must_be_fixed() {
    for (text, words) in [
        ("[devices]\ndata_gpu = 0\nmodel_gpu = 1\n", ["device pair", "insufficient GPUs"]),
        ("[devices]\nmodel_gpu_memory = 4\n", ["settings", "memory isolation is off"]),
        ("[train.optimizer]\nlr = 0.0\n", ["settings", "a number above 0"]),
        ("train_data = \"nowhere\"\n", ["corpus rows", "nowhere"]),
    ] {
        let said = checked("a.toml", text, &[]);
        assert_eq!(said.code, Some(1), "{text}: {said:?}");
        assert!(said.out.contains("not ready: 1 must be fixed"), "{text}: {}", said.out);
        let line = said.out.lines().find(|line| line.contains("must fix")).expect("a fault");
        assert!(words.iter().all(|word| line.contains(word)), "{text}: {line}");
    }
}

#[test]
fn thresholds_are_exact_and_can_be_moved() {
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
    assert_eq!(levels(&text(7, 7, 15), &[]), ["warn", "warn", "warn"]);
    let lower = ["--min-workers", "7", "--min-prefetch", "7", "--min-batch", "15"];
    assert_eq!(levels(&text(7, 7, 15), &lower), ["ok", "ok", "ok"]);
}

#[test]
fn files_that_cannot_be_checked_say_where_and_why() {
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
        ("a.yaml", "data:\n  batch_size: many\n", ["line 2, column 15", "expected a whole number"]),
        ("a.yaml", "data:\n  enable_xla: 3\n", ["line 2, column 15", "expected true or false"]),
        ("a.yaml", "model:\n  model_size: huge\n", ["line 2, column 15", "`tiny`"]),
        ("a.yaml", "data: [1\n", ["line 2, column 1", "hint:"]),
        ("a.yaml", "train:\n  keap: 3\n", ["line 2, column 3", "did you mean `train.keep`?"]),
        ("a.toml", "num_workers = \"x\"\n", ["line 1, column 15", "a whole number"]),
        ("a.txt", "x", ["does not say how it is written", "hint:"]),
    ] {
        checked(name, text, &[]).failed(&words);
    }
    Place::new().run(&["validate", "--config", "no.yaml"]).failed(&["no.yaml", "check the path"]);
    let binary = Place::new();
    fs::write(binary.inside("b.yaml"), [0xff, 0xfe, 0x00]).expect("written");
    binary.run(&["validate", "--config", "b.yaml"]).failed(&["b.yaml", "UTF-8"]);
}
