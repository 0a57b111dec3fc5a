//! `tandem prepare` killed, interrupted, out of disk space, or started several times at once. No
//! finished work is lost, and the result is always the same.

mod support;

use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;
use support::{CommandOutput, TestDir, settings_dir, signal};

const SLOWLY: [&str; 5] = ["prepare", "demo", "--cache-dataset", "--num-workers", "1"];
const ROWS: u64 = 150;

/// The cache directory of the demo corpus. Unpacks the corpus, so that later runs only prepare it.
fn demo(dir: &TestDir) -> PathBuf {
    let summary = prepare(dir);
    let cache = Path::new(summary["cache"].as_str().unwrap()).parent().unwrap().to_path_buf();
    fs::remove_dir_all(&cache).unwrap();
    cache
}

#[track_caller]
fn prepare(dir: &TestDir) -> Value {
    dir.run(&["prepare", "demo", "--cache-dataset", "--json"]).json()
}

/// The summary without the fields that describe this run.
fn result(summary: &Value) -> Value {
    let mut summary = summary.clone();
    let fields = summary.as_object_mut().unwrap();
    for of_this_run in ["rebuilt", "recovered", "damage", "took", "peak_memory", "words"] {
        fields.remove(of_this_run).expect("the summary has it");
    }
    summary
}

fn rebuilt_and_recovered(summary: &Value) -> (u64, u64) {
    (summary["rebuilt"].as_u64().unwrap(), summary["recovered"].as_u64().unwrap())
}

fn batches(dir: &TestDir) -> Value {
    dir.run(&["batches", "demo", "--cache-dataset", "--json"]).json()
}

#[test]
fn a_killed_run_is_continued_after_a_kill_at_any_time() {
    let dir = TestDir::new();
    let cache = demo(&dir);
    let clean = prepare(&dir);
    assert_eq!(rebuilt_and_recovered(&clean), (ROWS, 0));
    let order = batches(&dir);
    for moment in [0, 3, 10, 30, 60, 90, 120, 160] {
        fs::remove_dir_all(&cache).unwrap();
        let mut child = dir.tandem(&SLOWLY).spawn().unwrap();
        wait_for(&mut child, &cache.join("lock"));
        std::thread::sleep(Duration::from_millis(moment));
        child.kill().unwrap();
        child.wait().unwrap();
        let again = prepare(&dir);
        let (rebuilt, recovered) = rebuilt_and_recovered(&again);
        // Every row is rebuilt or recovered, or none if the run was done before the kill.
        assert!(rebuilt + recovered == ROWS || rebuilt + recovered == 0, "{again}");
        assert_eq!(result(&again), result(&clean));
        assert_eq!(batches(&dir), order);
        assert_eq!(rebuilt_and_recovered(&prepare(&dir)), (0, 0));
        // Readers write `checked` without the lock, so nobody may remove its draft after a kill.
        let left = fs::read_dir(settings_dir(&cache)).unwrap();
        let names = left.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let drafts = names.filter(|name| name.contains("draft") && !name.starts_with(".checked."));
        assert_eq!(drafts.collect::<Vec<_>>(), [""; 0], "killed after {moment} ms");
    }
}

/// Waits until the child has started to build, or has exited.
fn wait_for(child: &mut Child, path: &Path) {
    for _ in 0..10_000 {
        if path.exists() || child.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{} did not appear", path.display());
}

#[test]
fn concurrent_runs_end_with_the_same_result() {
    let dir = TestDir::new();
    let cache = demo(&dir);
    let clean = prepare(&dir);
    for _ in 0..3 {
        fs::remove_dir_all(&cache).unwrap();
        let args = ["prepare", "demo", "--cache-dataset", "--json"];
        let children = [(); 3].map(|()| dir.tandem(&args).spawn().unwrap());
        let output = children.map(|child| CommandOutput::of(child.wait_with_output().unwrap()));
        let summaries = output.map(|output| output.json());
        assert!(summaries.iter().all(|summary| result(summary) == result(&clean)));
        let rebuilt: u64 = summaries.iter().map(|summary| rebuilt_and_recovered(summary).0).sum();
        assert_eq!(rebuilt, ROWS, "one of them did the work: {summaries:?}");
    }
}

#[test]
fn concurrent_runs_that_unpack_the_demo_succeed() {
    let dir = TestDir::new();
    let children = [(); 2].map(|()| dir.tandem(&["prepare", "demo", "--json"]).spawn().unwrap());
    for child in children {
        assert_eq!(CommandOutput::of(child.wait_with_output().unwrap()).json()["usable"], ROWS);
    }
}

#[test]
fn a_run_that_waits_for_a_lock_says_so_and_can_be_interrupted() {
    let dir = TestDir::with_clips(2, "a|one\nb|two\n");
    let cache = dir.corpus().join(".tandem-cache");
    fs::create_dir(&cache).unwrap();
    let lock = File::create(cache.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut child = dir.tandem(&["prepare", "corpus"]).spawn().unwrap();
    let mut words = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut words).unwrap();
    assert!(words.contains("waiting for it"), "{words}");
    signal(&child, Signal::INT);
    words.clear();
    stderr.read_line(&mut words).unwrap();
    assert!(words.contains("run the same command again to continue"), "{words}");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    lock.unlock().unwrap();
    assert_eq!(dir.prepare(&[])["rebuilt"], 2);
}

#[test]
fn an_interrupted_run_exits_with_3_and_continues_later() {
    let dir = TestDir::new();
    let cache = demo(&dir);
    for _ in 0..20 {
        let mut child = dir.tandem(&SLOWLY).spawn().unwrap();
        wait_for(&mut child, &cache.join("lock"));
        signal(&child, Signal::INT);
        let output = CommandOutput::of(child.wait_with_output().unwrap());
        if output.code == Some(3) {
            assert!(output.err.contains("run the same command again to continue"), "{output:?}");
            assert_eq!(output.out, "");
            let (rebuilt, recovered) = rebuilt_and_recovered(&prepare(&dir));
            assert_eq!(rebuilt + recovered, ROWS);
            return;
        }
        // It was done before the signal arrived: try again.
        assert_eq!(output.code, Some(0), "{output:?}");
        fs::remove_dir_all(&cache).unwrap();
    }
    panic!("twenty runs were done before the signal arrived");
}

#[test]
fn a_file_size_limit_is_an_error_that_loses_nothing() {
    let dir = TestDir::new();
    let cache = demo(&dir);
    // Writes beyond 4 MiB fail as on a full disk; the features of the demo corpus are larger.
    let script = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_tandem")]);
    let output = CommandOutput::of(dir.with_test_env(command, &SLOWLY).output().unwrap());
    output.assert_failed(&["cannot write", "mel-", "File too large", "ulimit -f"]);
    let drafts = fs::read_dir(settings_dir(&cache))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("draft"));
    assert_eq!(drafts.count(), 0);
    let (rebuilt, recovered) = rebuilt_and_recovered(&prepare(&dir));
    assert_eq!(rebuilt + recovered, ROWS);
    assert!(recovered > 20, "only {recovered} rows were recovered");
}
