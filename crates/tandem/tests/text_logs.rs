//! `tandem compare` and `tandem scaling` on the redirected output of `tandem train`: the log leads to the record, and
//! where that is gone the printed figures are used. Logs, records and run directories in any mix.

mod support;

use std::fs;
use std::path::PathBuf;
use support::{CommandOutput, TestDir};

fn test_dir() -> TestDir {
    let rows = ('a'..='l').map(|name| format!("{name}|hello there|hello there\n"));
    TestDir::with_clips(12, &rows.collect::<String>())
}

/// Trains without `--checkpoint-dir`, with both streams in one file as a shell redirects them.
fn train(dir: &TestDir, batch: &str, steps: &str, log: &str) -> CommandOutput {
    let mut args = vec!["train", "--train-data", "corpus", "--model-size", "micro", "--no-adapt"];
    args.extend(["--num-workers", "1", "--batch-size", batch, "--max-steps", steps]);
    let file = fs::File::create(dir.path(log)).expect("created");
    let mut command = dir.tandem(&args);
    command.stdout(file.try_clone().expect("a second handle")).stderr(file);
    let output = CommandOutput::of(command.output().expect("the program runs"));
    assert_eq!(output.code, Some(0), "{}", fs::read_to_string(dir.path(log)).expect("a log"));
    output
}

fn remove_run(dir: &TestDir, name: &str) {
    fs::remove_dir_all(dir.path("runs").join(name)).expect("the run's directory");
}

#[test]
fn logs_lead_to_their_records_and_replace_them_where_they_are_gone() {
    let dir = test_dir();
    for (batch, log) in [("2", "batch_2.log"), ("4", "batch_4.log"), ("8", "batch_8.log")] {
        train(&dir, batch, "120", log);
    }
    let text = fs::read_to_string(dir.path("batch_4.log")).expect("a log");
    assert!(text.contains("record: runs/corpus-micro-b4-1/run.jsonl"), "{text}");
    assert!(text.contains("\nnext: `tandem "), "{text}");

    // Followed to the records: every step is known, so shapes are compared.
    let followed = dir.run(&["compare", "batch_4.log", "batch_4.log"]);
    assert_eq!(followed.code, Some(0), "{followed:?}");
    assert!(followed.out.contains("step time, same shapes"), "{}", followed.out);
    let scaled =
        dir.run(&["scaling", "batch_2.log", "batch_4.log", "runs/corpus-micro-b8-1", "--json"]);
    let sizes = |found: &serde_json::Value| -> Vec<u64> {
        let points = found["points"].as_array().expect("points");
        points.iter().filter_map(|point| point["batch_size"].as_u64()).collect()
    };
    let by_record = scaled.json();
    assert_eq!(sizes(&by_record), [2, 4, 8]);

    // The record of one run is gone: its printed figures are those of the record, rounded.
    remove_run(&dir, "corpus-micro-b4-1");
    let mixed = dir.run(&[
        "scaling",
        "batch_2.log",
        "batch_4.log",
        "runs/corpus-micro-b8-1/run.jsonl",
        "--json",
    ]);
    let by_log = mixed.json();
    assert_eq!(sizes(&by_log), [2, 4, 8]);
    let rate = |found: &serde_json::Value| {
        found["points"][1]["samples_per_second"].as_f64().expect("a rate")
    };
    // With and without the first step.
    let ratio = rate(&by_log) / rate(&by_record);
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    assert!(
        mixed.err.contains("`batch_4.log`: the record `runs/corpus-micro-b4-1/run.jsonl` is gone"),
        "{}",
        mixed.err
    );
    let compared = dir.run(&["compare", "batch_4.log", "batch_2.log"]);
    assert!(matches!(compared.code, Some(0 | 1)), "{compared:?}");
    for words in
        ["samples/s *", "a log has no single steps", "batch sizes differ (4 and 2)", "verdict"]
    {
        assert!(compared.out.contains(words), "no `{words}` in {}", compared.out);
    }

    // A run that was killed: its first hundred steps are a line of the log.
    let killed = text.split("run       tandem").next().expect("the lines before the report");
    fs::write(dir.path("killed.log"), killed).expect("written");
    let found = dir.run(&["compare", "killed.log", "batch_8.log", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&found.out).expect("JSON");
    assert_eq!((&found["a"]["steps"], &found["a"]["batch_size"]), (&100.into(), &4.into()));
}

#[test]
fn other_files_are_refused() {
    let dir = test_dir();
    train(&dir, "4", "12", "short.log");
    assert_eq!(dir.run(&["compare", "short.log", "short.log"]).code, Some(0));
    let logs: PathBuf = dir.path("other.log");
    fs::write(logs, "Epoch 1/10\nloss: 2.7\n").expect("written");
    dir.run(&["compare", "short.log", "other.log"])
        .assert_failed(&["neither a run record nor the output of `tandem train`", "2>&1"]);
    remove_run(&dir, "corpus-micro-b4-1");
    // The report at the end is enough for a run of fewer than a hundred steps.
    assert_eq!(dir.run(&["compare", "short.log", "short.log"]).code, Some(0));
    let text = fs::read_to_string(dir.path("short.log")).expect("a log");
    let killed = text.split("run       tandem").next().expect("the lines before the report");
    fs::write(dir.path("killed.log"), killed).expect("written");
    dir.run(&["scaling", "killed.log"]).assert_failed(&["has no step times", "100 steps"]);
}
