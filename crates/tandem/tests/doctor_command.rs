//! `tandem doctor`: what a bug report contains, and what it leaves out.

mod support;

use std::fs;
use std::process::Command;
use support::{CommandOutput, TestDir};

/// Runs the program with a user name, a home directory and a secret in the environment.
fn doctor(dir: &TestDir, args: &[&str]) -> CommandOutput {
    let mut command: Command = dir.tandem(&[&["doctor"], args].concat());
    command.env("USER", "zarathustra").env("TANDEM_DATA_DIR", dir.path("home/zarathustra-data"));
    command.env("WANDB_API_KEY", "abc123").env("CUDA_VISIBLE_DEVICES", "1");
    CommandOutput::of(command.output().expect("the program runs"))
}

fn test_dir() -> TestDir {
    let dir = TestDir::new();
    let home = dir.path("home");
    fs::create_dir(&home).expect("a home");
    let config = format!(
        "train_data = \"{}/voices\"\ncache_dir = \"/media/zarathustra/cache\"\n# password: hunter2\n",
        home.display()
    );
    fs::write(dir.path("run.toml"), config).expect("written");
    fs::create_dir(dir.path("run")).expect("a run");
    let record = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example-run.jsonl");
    fs::copy(record, dir.path("run/run.jsonl")).expect("a record");
    dir
}

#[test]
fn a_report_has_every_section() {
    let dir = test_dir();
    let output = doctor(&dir, &["--config", "run.toml"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    for words in [
        "== program ==",
        "backends in this build: cpu",
        "CUDA_VISIBLE_DEVICES=1",
        "== machine ==",
        "CPU: ",
        "== devices ==",
        "cpu",
        "== placement ==",
        "mode: ",
        "== config ==",
        "train_data",
        "== report ==",
        "verdict",
        "settings of the run",
    ] {
        assert!(output.out.contains(words), "`{words}` is not in:\n{}", output.out);
    }
}

#[test]
fn personal_data_is_left_out_without_full() {
    let dir = test_dir();
    let home = dir.path("home").display().to_string();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name of the machine");
    let output = doctor(&dir, &["--config", "run.toml"]);
    for secret in ["zarathustra", home.as_str(), "abc123", "hunter2"] {
        assert!(!output.out.contains(secret), "`{secret}` is in:\n{}", output.out);
    }
    assert!(output.out.contains("host: [host]"), "{}", output.out);
    assert!(
        output.out.contains("~/voices") && output.out.contains("/media/[user]/cache"),
        "{}",
        output.out
    );
    let full = doctor(&dir, &["--config", "run.toml", "--full"]);
    for word in [home.as_str(), "/media/zarathustra", "hunter2", host.trim()] {
        assert!(full.out.contains(word), "`{word}` is not in:\n{}", full.out);
    }
    assert!(!full.out.contains("abc123"), "variables of other programs are never included");
}

#[test]
fn the_file_name_decides_between_text_and_zip() {
    let dir = test_dir();
    let output = doctor(&dir, &["-o", "report.txt"]);
    assert!(output.code == Some(0) && output.out.is_empty(), "{output:?}");
    assert!(output.err.contains("written: report.txt"), "{}", output.err);
    assert!(fs::read_to_string(dir.path("report.txt")).expect("a text").contains("== report =="));
    assert_eq!(doctor(&dir, &["run", "-o", "report.zip"]).code, Some(0));
    let file = fs::File::open(dir.path("report.zip")).expect("an archive");
    let mut archive = zip::ZipArchive::new(file).expect("a zip");
    let names: Vec<String> = archive.file_names().map(String::from).collect();
    assert!(
        names.contains(&"report.txt".into()) && names.contains(&"machine.txt".into()),
        "{names:?}"
    );
    let report = std::io::read_to_string(archive.by_name("report.txt").expect("a part"));
    assert!(report.expect("text").contains("verdict"));
}

#[test]
fn errors_become_part_of_the_report() {
    let dir = test_dir();
    fs::write(dir.path("bad.toml"), "num_workerz = 3\n").expect("written");
    fs::write(dir.path("foreign.jsonl"), "x\n").expect("written");
    let found = doctor(&dir, &["foreign.jsonl", "--config", "bad.toml", "--json"]).json();
    let text = |name: &str| {
        let section = found.as_array().expect("sections").iter().find(|s| s["name"] == name);
        section.expect("a section")["text"].as_str().expect("text").to_string()
    };
    assert!(text("placement").contains("did you mean `num_workers`?"), "{}", text("placement"));
    assert!(text("report").contains("is not a run record"), "{}", text("report"));
    doctor(&dir, &["-o", "no/such/place.txt"])
        .assert_failed(&["cannot write", "a directory that exists"]);
}

/// Titles and labels of the rows of a results template.
fn labels(markdown: &str) -> Vec<String> {
    let rows = markdown.lines().filter_map(|line| {
        let title = line.strip_prefix("## ").map(str::to_string);
        let label =
            line.strip_prefix("| ").and_then(|rest| Some(rest.split_once(" |")?.0.to_string()));
        title.or(label)
    });
    rows.collect()
}

/// The document and the program have the same rows in the same order, in both languages.
#[test]
fn results_fill_every_row_of_the_template() {
    let rows = ('a'..='h').map(|name| format!("{name}|hello there|hello there\n"));
    let dir = TestDir::with_clips(8, &rows.collect::<String>());
    let train = ["train", "--train-data", "corpus", "--model-size", "micro", "--batch-size", "4"];
    let trained = dir.run(&[&train[..], &["--max-steps", "4", "--num-workers", "1"]].concat());
    assert_eq!(trained.code, Some(0), "{}", trained.err);
    for (lang, document) in [
        ("en", include_str!("../../../docs/results-template.md")),
        ("fa", include_str!("../../../docs/fa/results-template.md")),
    ] {
        let template = document.split_once("<!-- template -->").expect("the template").1;
        let filled = dir.run(&["doctor", "--results", "--lang", lang]);
        assert_eq!(filled.code, Some(0), "{}", filled.err);
        assert_eq!(labels(template), labels(&filled.out), "{}", filled.out);
    }
    let filled = dir.run(&["doctor", "--results", "runs/corpus-micro-b4-1"]).out;
    let value = |label: &str| {
        let line = filled.lines().find(|line| line.starts_with(&format!("| {label} |")));
        line.unwrap_or_else(|| panic!("no `{label}` in {filled}")).to_string()
    };
    for (label, words) in [
        ("Batch size, gradient accumulation", "4, 1"),
        ("Steps", "4"),
        ("Length of all recordings", " s"),
        ("Model size", "micro"),
        ("Features cached", "no"),
    ] {
        assert!(value(label).contains(words), "{}", value(label));
    }
    for label in [
        "Cold start (no cache)",
        "Warm start (cache read)",
        "Samples per second",
        "Storage of the corpus",
    ] {
        assert!(!value(label).contains("not measured"), "{}", value(label));
    }
    let quick = dir.run(&["doctor", "--results", "--quick"]).out;
    assert!(quick.contains("| Cold start (no cache) | not measured |"), "{quick}");
    let saved = dir.run(&["doctor", "--results", "--quick", "-o", "results.md"]);
    assert!(saved.err.contains("written: results.md"), "{}", saved.err);
    fs::create_dir(dir.path("empty")).expect("a directory");
    dir.run(&["doctor", "--results", "empty"]).assert_failed(&["cannot read the run"]);
}
