//! The commands of the data side on the built-in corpus: what a script reads from them, and which
//! of flag, environment and file decides.

mod kit;

use kit::{Place, Said};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};

fn batches(place: &Place, more: &[&str]) -> Value {
    place.run(&[&["batches", "demo", "--json", "--batch-size", "8"], more].concat()).json()
}

#[test]
fn the_summary_of_the_demo_says_what_each_start_rebuilt() {
    let place = Place::new();
    let rebuilt = |more: &[&str]| {
        let summary = place.run(&[&["prepare", "demo", "--json"], more].concat()).json();
        (summary["rebuilt"].as_u64().unwrap(), summary["corpus"].as_str().unwrap().to_owned())
    };
    let (cold, _) = rebuilt(&[]);
    let (warm, _) = rebuilt(&[]);
    let (other, _) = rebuilt(&["--max-text-length", "190"]);
    let (back, _) = rebuilt(&[]);
    assert_eq!([cold, warm, other, back], [150, 0, 150, 0]);
    let said = place.run(&["prepare", "demo"]);
    assert!(said.out.contains("rebuilt    0 of 150 rows"), "{}", said.out);
    assert_eq!(said.err, "");
}

#[test]
fn a_changed_line_or_recording_of_the_demo_rebuilds_one_row() {
    // A copy: the built-in corpus repairs itself.
    let place = Place::new();
    let demo = place.run(&["prepare", "demo", "--json"]).json();
    copy(demo["corpus"].as_str().unwrap().as_ref(), &place.corpus());
    assert_eq!(place.prepare(&[])["rebuilt"], 150);
    let manifest = place.corpus().join("metadata_train.csv");
    let text = fs::read_to_string(&manifest).unwrap();
    let line = text.lines().find(|line| line.contains("|en")).unwrap();
    let mut cells: Vec<_> = line.split('|').collect();
    (cells[1], cells[2]) = ("Something else.", "Something else.");
    fs::write(&manifest, text.replace(line, &cells.join("|"))).unwrap();
    assert_eq!(place.prepare(&[])["rebuilt"], 1);
    let clip = |name: &str| place.corpus().join("wavs/fa").join(name);
    let mut names: Vec<_> = fs::read_dir(place.corpus().join("wavs/fa"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    fs::copy(clip(&names[0]), clip(&names[1])).unwrap();
    assert_eq!(place.prepare(&[])["rebuilt"], 1);
    assert_eq!(place.prepare(&[])["rebuilt"], 0);
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
    let place = Place::new();
    let one = batches(&place, &["--num-workers", "1"]);
    assert_eq!(one, batches(&place, &["--num-workers", "4"]));
    let another = Place::new();
    assert_eq!(one, batches(&another, &["--num-workers", "3"]), "nor on who prepared it");
    assert_ne!(one["batches"], batches(&place, &["--epoch", "1"])["batches"]);
    assert_ne!(one["batches"], batches(&place, &["--seed", "1"])["batches"]);
}

#[test]
fn batches_from_any_place_are_the_tail_of_all() {
    let place = Place::new();
    let all = batches(&place, &[]);
    let all = all["batches"].as_array().unwrap();
    for from in [1, all.len() / 2, all.len() - 1, all.len(), all.len() + 7] {
        let tail = batches(&place, &["--from", &from.to_string()]);
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
fn an_analysis_has_a_number_for_each_question() {
    let place = Place::new();
    let args =
        ["analyze", "demo", "--json", "--sample", "20", "--batches", "5", "--step-time", "1"];
    let said = place.run(&args);
    // 1: something should be changed, which depends on the machine.
    assert!(matches!(said.code, Some(0 | 1)), "{said:?}");
    let analysis: Value = serde_json::from_str(&said.out).unwrap();
    let findings = analysis["findings"].as_array().unwrap();
    assert_eq!(findings.is_empty(), said.code == Some(0));
    for field in [
        "/text/per_row",
        "/text/all_rows",
        "/audio/read/mean",
        "/audio/decode/mean",
        "/audio/mel/mean",
        "/audio/variation",
        "/audio/times_real_time",
        "/cache/cold",
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
    let place = Place::new();
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
        let said = place.run(args);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{args:?}: {said:?}");
        assert!(said.err.starts_with("error: "), "{args:?}: {said:?}");
    }
    for args in [&["--help"][..], &["--version"], &["prepare", "--help"]] {
        let said = place.run(args);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_fault() {
    let place = Place::new();
    for args in [&["prepare", "demo"][..], &["batches", "demo", "--batch-size", "1"]] {
        let mut child = place.tandem(args).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said = Said::of(child.wait_with_output().unwrap());
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(!said.err.contains("error"), "{said:?}");
    }
}

#[test]
fn a_flag_beats_the_environment_and_that_beats_the_file() {
    let place = Place::new();
    fs::write(place.inside("run.toml"), "[batch]\nbatch_size = 5\n").unwrap();
    let largest = |args: &[&str], variable: Option<&str>| {
        let mut command = place.tandem(&[&["batches", "demo", "--json"], args].concat());
        command.envs(variable.map(|value| ("TANDEM_BATCH_SIZE", value)));
        let plan = Said::of(command.output().unwrap()).json();
        let batches = plan["batches"].as_array().unwrap();
        batches.iter().map(|batch| batch["ids"].as_array().unwrap().len()).max().unwrap()
    };
    assert_eq!(largest(&[], None), 16);
    assert_eq!(largest(&["--config", "run.toml"], None), 5);
    assert_eq!(largest(&["--config", "run.toml"], Some("6")), 6);
    assert_eq!(largest(&["--config", "run.toml", "--batch-size", "7"], Some("6")), 7);
}

#[test]
fn a_configuration_that_makes_no_sense_is_named_with_its_line() {
    let place = Place::new();
    let config = place.inside("run.toml");
    let run = |text: &str| {
        fs::write(&config, text).unwrap();
        place.run(&["batches", "demo", "--config", "run.toml"])
    };
    run("num_workers = 2\n\nbatch_sise = 4\n").failed(&["run.toml", "line 3", "batch_sise"]);
    run("[batch]\nbatch_sise = 4\n").failed(&["line 2", "batch_sise", "batch_size"]);
    run("num_workers = \"two\"\n").failed(&["line 1", "num_workers"]);
    run("num_workers = \n").failed(&["line 1"]);
    run("num_workers = 0\n").failed(&["num_workers"]);
    run("max_rejected = 3.0\n").failed(&["max_rejected"]);
    run("[batch]\nmax_buckets = 0\n").failed(&["max_buckets"]);
    run("[text]\nmax_symbols = 50\n").failed(&["text.max_symbols", "batch.max_text_length"]);
    let missing = place.run(&["prepare", "demo", "--config", "nowhere.toml"]);
    missing.failed(&["nowhere.toml", "check the path"]);
}
