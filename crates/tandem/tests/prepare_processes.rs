//! `tandem prepare` among others: killed, stopped, short of disk, or twice at once. Nothing that
//! was finished is lost, and what comes out is always the same.

mod kit;

use kit::{Place, Said, only_settings, signal};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

const SLOWLY: [&str; 5] = ["prepare", "demo", "--cache-dataset", "--num-workers", "1"];
const ROWS: u64 = 150;

/// Where the demo corpus keeps its cache. Unpacks it, so that later runs only prepare.
fn demo(place: &Place) -> PathBuf {
    let summary = prepare(place);
    let cache = Path::new(summary["cache"].as_str().unwrap()).parent().unwrap().to_path_buf();
    fs::remove_dir_all(&cache).unwrap();
    cache
}

#[track_caller]
fn prepare(place: &Place) -> Value {
    place.run(&["prepare", "demo", "--cache-dataset", "--json"]).json()
}

/// What the summary says of the corpus, without what this run did to the cache.
fn result(summary: &Value) -> Value {
    let mut summary = summary.clone();
    let fields = summary.as_object_mut().unwrap();
    for of_this_run in ["rebuilt", "recovered", "damage", "took", "peak_memory"] {
        fields.remove(of_this_run).expect("the summary has it");
    }
    summary
}

fn made(summary: &Value) -> (u64, u64) {
    (summary["rebuilt"].as_u64().unwrap(), summary["recovered"].as_u64().unwrap())
}

fn batches(place: &Place) -> Value {
    place.run(&["batches", "demo", "--cache-dataset", "--json"]).json()
}

#[test]
fn a_killed_run_is_continued_whenever_it_was_killed() {
    let place = Place::new();
    let cache = demo(&place);
    let clean = prepare(&place);
    assert_eq!(made(&clean), (ROWS, 0));
    let order = batches(&place);
    for moment in [0, 3, 10, 30, 60, 90, 120, 160] {
        fs::remove_dir_all(&cache).unwrap();
        let mut child = place.tandem(&SLOWLY).spawn().unwrap();
        wait_for(&mut child, &cache.join("lock"));
        std::thread::sleep(Duration::from_millis(moment));
        child.kill().unwrap();
        child.wait().unwrap();
        let again = prepare(&place);
        let (rebuilt, recovered) = made(&again);
        // All of it is new or taken over, unless it was done before the kill came.
        assert!(rebuilt + recovered == ROWS || rebuilt + recovered == 0, "{again}");
        assert_eq!(result(&again), result(&clean));
        assert_eq!(batches(&place), order);
        assert_eq!(made(&prepare(&place)), (0, 0));
        let left = fs::read_dir(only_settings(&cache)).unwrap();
        let drafts = left.filter(|entry| {
            entry.as_ref().unwrap().file_name().to_string_lossy().contains("draft")
        });
        assert_eq!(drafts.count(), 0);
    }
}

/// Until the child has begun to build, or is over.
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
fn two_runs_at_once_both_end_with_the_same_result() {
    let place = Place::new();
    let cache = demo(&place);
    let clean = prepare(&place);
    for _ in 0..3 {
        fs::remove_dir_all(&cache).unwrap();
        let args = ["prepare", "demo", "--cache-dataset", "--json"];
        let children = [(); 3].map(|()| place.tandem(&args).spawn().unwrap());
        let said = children.map(|child| Said::of(child.wait_with_output().unwrap()));
        let summaries = said.map(|said| said.json());
        assert!(summaries.iter().all(|summary| result(summary) == result(&clean)));
        let rebuilt: u64 = summaries.iter().map(|summary| made(summary).0).sum();
        assert_eq!(rebuilt, ROWS, "one of them did the work: {summaries:?}");
    }
}

#[test]
fn two_runs_that_unpack_the_demo_at_once_both_succeed() {
    let place = Place::new();
    let children = [(); 2].map(|()| place.tandem(&["prepare", "demo", "--json"]).spawn().unwrap());
    for child in children {
        assert_eq!(Said::of(child.wait_with_output().unwrap()).json()["usable"], ROWS);
    }
}

#[test]
fn a_run_that_waits_for_another_says_so_and_can_be_stopped() {
    let place = Place::with_clips(2, "a|one\nb|two\n");
    let cache = place.corpus().join(".tandem-cache");
    fs::create_dir(&cache).unwrap();
    let lock = File::create(cache.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut child = place.tandem(&["prepare", "corpus"]).spawn().unwrap();
    let mut words = String::new();
    let mut heard = BufReader::new(child.stderr.take().unwrap());
    heard.read_line(&mut words).unwrap();
    assert!(words.contains("waiting for it"), "{words}");
    signal(&child, Signal::INT);
    words.clear();
    heard.read_line(&mut words).unwrap();
    assert!(words.contains("run the same command to go on"), "{words}");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    lock.unlock().unwrap();
    assert_eq!(place.prepare(&[])["rebuilt"], 2);
}

#[test]
fn a_run_stopped_by_ctrl_c_ends_with_code_3_and_goes_on_later() {
    let place = Place::new();
    let cache = demo(&place);
    for _ in 0..20 {
        let mut child = place.tandem(&SLOWLY).spawn().unwrap();
        wait_for(&mut child, &cache.join("lock"));
        signal(&child, Signal::INT);
        let said = Said::of(child.wait_with_output().unwrap());
        if said.code == Some(3) {
            assert!(said.err.contains("run the same command to go on"), "{said:?}");
            assert_eq!(said.out, "");
            let (rebuilt, recovered) = made(&prepare(&place));
            assert_eq!(rebuilt + recovered, ROWS);
            return;
        }
        // It was done before the signal came: once more.
        assert_eq!(said.code, Some(0), "{said:?}");
        fs::remove_dir_all(&cache).unwrap();
    }
    panic!("twenty runs were all over before they could be stopped");
}

#[test]
fn a_file_that_may_not_grow_is_an_error_that_loses_nothing() {
    let place = Place::new();
    let cache = demo(&place);
    // Beyond 4 MiB a write fails as on a full disk; the features of the demo need more than that.
    let script = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_tandem")]);
    let said = Said::of(place.surround(command, &SLOWLY).output().unwrap());
    said.failed(&["cannot write", "mel-", "File too large", "ulimit -f"]);
    let drafts = fs::read_dir(only_settings(&cache))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("draft"));
    assert_eq!(drafts.count(), 0);
    let (rebuilt, recovered) = made(&prepare(&place));
    assert_eq!(rebuilt + recovered, ROWS);
    assert!(recovered > 20, "{recovered} rows were taken over");
}
