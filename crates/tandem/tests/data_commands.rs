//! `prepare`, `batches` and `analyze` on the built-in corpus: their JSON output, and the order of flag,
//! environment variable and configuration file.

mod support;

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use support::{CommandOutput, TestDir};

fn batches(dir: &TestDir, more: &[&str]) -> Value {
    dir.run(&[&["batches", "demo", "--json", "--batch-size", "8"], more].concat()).json()
}

#[test]
fn the_summary_counts_the_rows_that_each_start_rebuilt() {
    let dir = TestDir::new();
    let rebuilt = |more: &[&str]| {
        let summary = dir.run(&[&["prepare", "demo", "--json"], more].concat()).json();
        (summary["rebuilt"].as_u64().unwrap(), summary["corpus"].as_str().unwrap().to_owned())
    };
    let (cold, _) = rebuilt(&[]);
    let (warm, _) = rebuilt(&[]);
    let (other, _) = rebuilt(&["--max-text-length", "190"]);
    let (back, _) = rebuilt(&[]);
    assert_eq!([cold, warm, other, back], [150, 0, 150, 0]);
    let output = dir.run(&["prepare", "demo"]);
    assert!(output.out.contains("rebuilt    0 of 150 rows"), "{}", output.out);
    assert_eq!(output.err, "");
}

#[test]
fn a_changed_line_or_recording_of_the_demo_rebuilds_one_row() {
    // A copy, because the built-in corpus is restored at every start.
    let dir = TestDir::new();
    let demo = dir.run(&["prepare", "demo", "--json"]).json();
    copy(demo["corpus"].as_str().unwrap().as_ref(), &dir.corpus());
    assert_eq!(dir.prepare(&[])["rebuilt"], 150);
    let manifest = dir.corpus().join("metadata_train.csv");
    let text = fs::read_to_string(&manifest).unwrap();
    let line = text.lines().find(|line| line.contains("|en")).unwrap();
    let mut cells: Vec<_> = line.split('|').collect();
    (cells[1], cells[2]) = ("Something else.", "Something else.");
    fs::write(&manifest, text.replace(line, &cells.join("|"))).unwrap();
    assert_eq!(dir.prepare(&[])["rebuilt"], 1);
    let clip = |name: &str| dir.corpus().join("wavs/fa").join(name);
    let mut names: Vec<_> = fs::read_dir(dir.corpus().join("wavs/fa"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    fs::copy(clip(&names[0]), clip(&names[1])).unwrap();
    assert_eq!(dir.prepare(&[])["rebuilt"], 1);
    assert_eq!(dir.prepare(&[])["rebuilt"], 0);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let name = entry.file_name();
        match entry.file_type().unwrap().is_dir() {
            _ if name.to_string_lossy().starts_with('.') => {}
            true => copy(&entry.path(), &to.join(name)),
            false => _ = fs::copy(entry.path(), to.join(name)).unwrap(),
        }
    }
}

#[test]
fn batches_do_not_depend_on_the_number_of_workers() {
    let dir = TestDir::new();
    let one = batches(&dir, &["--num-workers", "1"]);
    assert_eq!(one, batches(&dir, &["--num-workers", "4"]));
    let another = TestDir::new();
    assert_eq!(one, batches(&another, &["--num-workers", "3"]), "nor on the run that prepared it");
    assert_ne!(one["batches"], batches(&dir, &["--epoch", "1"])["batches"]);
    assert_ne!(one["batches"], batches(&dir, &["--seed", "1"])["batches"]);
}

#[test]
fn from_skips_the_first_batches() {
    let dir = TestDir::new();
    let all = batches(&dir, &[]);
    let all = all["batches"].as_array().unwrap();
    for from in [1, all.len() / 2, all.len() - 1, all.len(), all.len() + 7] {
        let tail = batches(&dir, &["--from", &from.to_string()]);
        let tail = tail["batches"].as_array().unwrap();
        assert_eq!(tail, &all[from.min(all.len())..], "from batch {from}");
    }
    let mut ids: Vec<_> = all.iter().flat_map(|batch| batch["ids"].as_array().unwrap()).collect();
    assert_eq!(ids.len(), 134);
    ids.sort_by_key(|id| id.as_str());
    ids.dedup();
    assert_eq!(ids.len(), 134, "no utterance twice");
}

#[test]
fn an_analysis_has_every_measurement() {
    let dir = TestDir::new();
    let args =
        ["analyze", "demo", "--json", "--sample", "20", "--batches", "5", "--step-time", "1"];
    let output = dir.run(&args);
    // Exit code 1 means that a setting should change, which depends on the machine.
    assert!(matches!(output.code, Some(0 | 1)), "{output:?}");
    let analysis: Value = serde_json::from_str(&output.out).unwrap();
    let findings = analysis["findings"].as_array().unwrap();
    assert_eq!(findings.is_empty(), output.code == Some(0));
    for field in [
        "/text/per_row",
        "/text/all_rows",
        "/audio/read/mean",
        "/audio/decode/mean",
        "/audio/mel/mean",
        "/audio/variation",
        "/audio/times_real_time",
        "/cache/cold",
        "/cache/rows",
        "/cache/warm",
        "/cache/gain",
        "/batches/count",
        "/batches/wait/mean",
        "/batches/wait/p95",
        "/batches/late",
        "/batches/idle",
        "/batches/deliverable",
    ] {
        let value = analysis.pointer(field).and_then(Value::as_f64);
        assert!(value.is_some_and(|value| value >= 0.0), "{field}: {value:?}");
    }
    assert!(analysis["verdict"].as_str().unwrap().contains("The data side"));
    assert_eq!((&analysis["rows"], &analysis["sampled"]), (&150.into(), &19.into()));
}

#[test]
fn wrong_usage_ends_with_code_2() {
    let dir = TestDir::new();
    for args in [
        &["prepare"][..],
        &["prepare", "demo", "--bogus"],
        &["prepare", "demo", "--max-rejected", "1.5"],
        &["prepare", "demo", "--num-workers", "many"],
        &["prepare", "demo", "--num-workers", "0"],
        &["prepare", "demo", "--languages", "klingon"],
        &["batches", "demo", "--batch-size", "0"],
        &["batches", "demo", "--frame-budget", "10"],
        &["nonsense"],
    ] {
        let output = dir.run(args);
        assert_eq!((output.code, output.out.as_str()), (Some(2), ""), "{args:?}: {output:?}");
        assert!(output.err.starts_with("error: "), "{args:?}: {output:?}");
    }
    for args in [&["--help"][..], &["--version"], &["prepare", "--help"]] {
        let output = dir.run(args);
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let dir = TestDir::new();
    for args in [&["prepare", "demo"][..], &["batches", "demo", "--batch-size", "1"]] {
        let mut child = dir.tandem(args).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let output = CommandOutput::of(child.wait_with_output().unwrap());
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(!output.err.contains("error"), "{output:?}");
    }
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let dir = TestDir::new();
    fs::write(dir.path("run.toml"), "[batch]\nbatch_size = 5\n").unwrap();
    let largest = |args: &[&str], variable: Option<&str>| {
        let mut command = dir.tandem(&[&["batches", "demo", "--json"], args].concat());
        command.envs(variable.map(|value| ("TANDEM_BATCH_SIZE", value)));
        let plan = CommandOutput::of(command.output().unwrap()).json();
        let batches = plan["batches"].as_array().unwrap();
        batches.iter().map(|batch| batch["ids"].as_array().unwrap().len()).max().unwrap()
    };
    assert_eq!(largest(&[], None), 16);
    assert_eq!(largest(&["--config", "run.toml"], None), 5);
    assert_eq!(largest(&["--config", "run.toml"], Some("6")), 6);
    assert_eq!(largest(&["--config", "run.toml", "--batch-size", "7"], Some("6")), 7);
}

#[test]
fn invalid_configuration_is_reported_with_its_line() {
    let dir = TestDir::new();
    let config = dir.path("run.toml");
    let run = |text: &str| {
        fs::write(&config, text).unwrap();
        dir.run(&["batches", "demo", "--config", "run.toml"])
    };
    run("num_workers = 2\n\nbatch_sise = 4\n").assert_failed(&["run.toml", "line 3", "batch_sise"]);
    run("[batch]\nbatch_sise = 4\n").assert_failed(&["line 2", "batch_sise", "batch_size"]);
    run("num_workers = \"two\"\n").assert_failed(&["line 1", "num_workers"]);
    run("num_workers = \n").assert_failed(&["line 1"]);
    run("num_workers = 0\n").assert_failed(&["num_workers"]);
    run("max_rejected = 3.0\n").assert_failed(&["max_rejected"]);
    run("[batch]\nmax_buckets = 0\n").assert_failed(&["max_buckets"]);
    run("[text]\nmax_symbols = 50\n").assert_failed(&["text.max_symbols", "batch.max_text_length"]);
    let missing = dir.run(&["prepare", "demo", "--config", "nowhere.toml"]);
    missing.assert_failed(&["nowhere.toml", "check the path"]);
}
