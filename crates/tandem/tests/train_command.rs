//! `tandem train` on the built-in corpus: a few steps, interrupted, killed, resumed, refused.

mod kit;

use kit::{Place, Said, signal};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The warm-up is longer than any test, so that the learning rate of a step does not depend on
/// how many were asked for.
const TRAIN: [&str; 14] = [
    "train",
    "--train-data",
    "demo",
    "--cache-dataset",
    "--batch-size",
    "3",
    "--frame-budget",
    "900",
    "--warmup-steps",
    "1000",
    "--align-every",
    "2",
    "--align-flat-start",
    "2",
];

fn train(place: &Place, directory: &str, more: &[&str]) -> Said {
    place.run(&[&TRAIN[..], &["--align-lag", "2", "--checkpoint-dir", directory], more].concat())
}

/// Every tensor file of a checkpoint, and where the data stands.
fn kept(place: &Place, checkpoint: &str) -> BTreeMap<String, Vec<u8>> {
    let names = ["weights", "ema", "moments", "aligner_snapshots"]
        .map(|name| format!("{name}.safetensors"));
    let read = |name: String| {
        let bytes = fs::read(place.inside(checkpoint).join(&name)).expect("a file of a checkpoint");
        (name, bytes)
    };
    names.into_iter().chain(["state.json".to_string()]).map(read).collect()
}

#[test]
fn an_interrupted_run_ends_with_the_same_weights_to_the_last_bit() {
    let place = Place::new();
    let whole = train(&place, "whole", &["--max-steps", "6"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(whole.out.contains("verdict"), "{}", whole.out);
    assert!(
        whole.out.contains("warm-up   none: the processor compiles no kernels"),
        "{}",
        whole.out
    );
    assert!(whole.out.contains("held      data side at most "), "{}", whole.out);
    let said = whole.err.matches("mel frames: on the host (the processor is the only").count();
    assert_eq!(said, 1, "{}", whole.err);
    let part = train(&place, "parts", &["--max-steps", "3", "--num-workers", "1"]);
    assert_eq!(part.code, Some(0), "{part:?}");
    let rest = ["--max-steps", "6", "--resume", "--num-workers", "3", "--no-adapt"];
    let rest = train(&place, "parts", &rest);
    assert_eq!(rest.code, Some(0), "{rest:?}");
    assert!(rest.err.contains("goes on after step 3"), "{}", rest.err);
    let (whole, parts) = (kept(&place, "whole/step-00000006"), kept(&place, "parts/step-00000006"));
    for (name, bytes) in &whole {
        assert!(bytes == &parts[name], "`{name}` differs");
    }
}

/// With one thread for all computations, which the training itself keeps: whoever asked it for something from outside would
/// wait for ever.
#[test]
fn one_thread_is_enough_and_learns_the_same() {
    let place = Place::new();
    let exams = ["--validate-every", "2", "--sample-every", "4", "--max-steps", "4"];
    let many = train(&place, "many", &exams);
    assert_eq!(many.code, Some(0), "{many:?}");
    let args = [&TRAIN[..], &["--align-lag", "2", "--checkpoint-dir", "one"], &exams].concat();
    let mut run = place.tandem(&args);
    run.env("RAYON_NUM_THREADS", "1").stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = run.spawn().expect("the program runs");
    let began = Instant::now();
    let ended = loop {
        if let Some(ended) = run.try_wait().expect("it can be asked") {
            break ended;
        }
        if began.elapsed() > Duration::from_secs(300) {
            signal(&run, Signal::KILL);
            panic!("somebody waits for a thread that never comes");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(ended.code(), Some(0));
    assert!(kept(&place, "one/step-00000004") == kept(&place, "many/step-00000004"));
}

#[test]
fn small_batches_together_make_one_step() {
    let place = Place::new();
    let said = train(&place, "run", &["--max-steps", "2", "--grad-accum", "3"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let state = String::from_utf8(kept(&place, "run/step-00000002")["state.json"].clone());
    let state: serde_json::Value = serde_json::from_str(&state.expect("text")).expect("JSON");
    assert_eq!(state["next_batch"], 6);
}

#[test]
fn a_signal_ends_the_step_and_keeps_it() {
    let place = Place::new();
    let mut run = start(&place, "run");
    wait_for_steps(&place, &mut run, "run/run.jsonl");
    signal(&run, Signal::TERM);
    let ended = run.wait().expect("it ends");
    assert_eq!(ended.code(), Some(3));
    let resumed = train(&place, "run", &["--max-steps", "1", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.err.contains("goes on after step"), "{}", resumed.err);
}

/// It is on the disk before the exam is held: nothing is lost while that lasts, and it can be marked.
#[test]
fn the_last_checkpoint_can_be_the_best_one() {
    let place = Place::new();
    let said = train(&place, "run", &["--max-steps", "2"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let best = fs::read_to_string(place.inside("run/best.json")).expect("the mark of the best");
    assert!(best.contains(r#""step":2"#), "{best}");
}

/// `timeout` signals the program and then its group: both reach it.
#[test]
fn signals_that_come_together_are_one() {
    let place = Place::new();
    let mut run = start(&place, "run");
    wait_for_steps(&place, &mut run, "run/run.jsonl");
    signal(&run, Signal::TERM);
    signal(&run, Signal::TERM);
    assert_eq!(run.wait().expect("it ends").code(), Some(3));
    let record = std::fs::read_to_string(place.inside("run/run.jsonl")).expect("a record");
    assert!(record.contains(r#""event":"final","outcome":"interrupted""#), "{record}");
}

#[test]
fn a_device_lost_on_the_way_costs_nothing_that_was_learned() {
    let place = Place::new();
    let lost = ["--max-steps", "8", "--lose-device-at", "5", "--pipeline-depth", "2"];
    let lost = train(&place, "run", &lost);
    assert_eq!(lost.code, Some(2), "{lost:?}");
    assert!(lost.err.contains("the device was lost"), "{}", lost.err);
    assert!(lost.err.contains("transfer"), "the stage is named: {}", lost.err);
    assert!(lost.err.contains("`--resume` goes on"), "{}", lost.err);
    let rest = train(&place, "run", &["--max-steps", "8", "--resume"]);
    assert_eq!(rest.code, Some(0), "{rest:?}");
    assert!(rest.err.contains("goes on after step"), "{}", rest.err);
    let whole = train(&place, "whole", &["--max-steps", "8"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(kept(&place, "run/step-00000008") == kept(&place, "whole/step-00000008"));
}

#[test]
fn a_killed_run_goes_on_from_its_last_checkpoint() {
    let place = Place::new();
    let mut run = start(&place, "run");
    wait_for_steps(&place, &mut run, "run/step-00000002/manifest.json");
    signal(&run, Signal::KILL);
    run.wait().expect("it is gone");
    let resumed = train(&place, "run", &["--max-steps", "1", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
}

fn start(place: &Place, directory: &str) -> Child {
    let more =
        ["--align-lag", "2", "--max-steps", "500", "--checkpoint-every", "2", "--checkpoint-dir"];
    let args = [&TRAIN[..], &more, &[directory]].concat();
    let mut command = place.tandem(&args);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program runs")
}

/// Until this file is there and a step is over.
fn wait_for_steps(place: &Place, run: &mut Child, file: &str) {
    let began = Instant::now();
    let stepped = || {
        let record = fs::read_to_string(place.inside("run/run.jsonl")).unwrap_or_default();
        place.inside(file).exists() && record.contains("\"event\":\"step\"")
    };
    while !stepped() {
        assert!(run.try_wait().expect("asked").is_none(), "it ended before its first step");
        assert!(began.elapsed() < Duration::from_secs(120), "no step within two minutes");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_directory_with_a_run_is_not_overwritten_and_another_run_is_not_resumed() {
    let place = Place::new();
    assert_eq!(train(&place, "run", &["--max-steps", "1"]).code, Some(0));
    train(&place, "run", &["--max-steps", "1"]).failed(&["holds a run already", "--resume"]);
    train(&place, "empty", &["--resume"]).failed(&["no checkpoint", "leave out `--resume`"]);
    let small = ["--resume", "--model-size", "small", "--max-steps", "2"];
    train(&place, "run", &small).failed(&["size tiny", "--model-size small"]);
    let other = ["--resume", "--seed", "7", "--max-steps", "2"];
    train(&place, "run", &other).failed(&["seed changed", "--allow-changes"]);
    let allowed = train(&place, "run", &[&other[..], &["--allow-changes"]].concat());
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    assert!(allowed.err.contains("not the same run any more"), "{}", allowed.err);
}

#[test]
fn a_broken_newest_checkpoint_is_passed_over_and_named() {
    let place = Place::new();
    let said = train(&place, "run", &["--max-steps", "2", "--checkpoint-every", "1"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let weights = place.inside("run/step-00000002/weights.safetensors");
    let mut bytes = fs::read(&weights).expect("weights");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&weights, bytes).expect("damaged");
    let resumed = train(&place, "run", &["--max-steps", "2", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.err.contains("passed over a broken checkpoint"), "{}", resumed.err);
    assert!(resumed.err.contains("goes on after step 1"), "{}", resumed.err);
}

/// Padded frames of the first batch, and two of its losses. The third is drawn from noise as large as the padded batch.
fn first_step(place: &Place, directory: &str) -> (u64, [f64; 2]) {
    let record = fs::read_to_string(place.inside(&format!("{directory}/run.jsonl"))).unwrap();
    let steps = record.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let step = steps.into_iter().find(|event| event["event"] == "step").expect("a step");
    let loss = |name: &str| step["losses"][name].as_f64().expect("a number");
    (step["shape"][2].as_u64().expect("frames"), ["prior", "duration"].map(loss))
}

#[test]
fn batches_without_fixed_shapes_are_smaller_and_cost_the_same() {
    let place = Place::new();
    for (run, shapes) in [("fixed", "true"), ("tight", "false")] {
        let shapes = format!("--enable-static-shapes={shapes}");
        let said = train(&place, run, &["--max-steps", "1", &shapes]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let ((fixed, padded), (tight, bare)) =
        (first_step(&place, "fixed"), first_step(&place, "tight"));
    assert!(tight < fixed, "{tight} {fixed}");
    for (padded, bare) in padded.iter().zip(&bare) {
        assert!((padded - bare).abs() < 1e-4 * padded.abs().max(1.0), "{padded} {bare}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_before_any_work() {
    let place = Place::new();
    let both = ["--data-gpu", "0", "--model-gpu", "1"];
    train(&place, "run", &both).failed(&["insufficient GPUs for multi-GPU mode"]);
    train(&place, "run", &["--model-gpu", "1"]).failed(&["insufficient GPUs for multi-GPU mode"]);
    train(&place, "run", &["--mel-on", "device"]).failed(&["data device", "--mel-on device"]);
    let tight = ["--enable-memory-isolation", "--model-gpu-memory", "1", "--data-gpu-memory", "1"];
    train(&place, "run", &[&tight[..], &["--max-steps", "1"]].concat()).failed(&["memory"]);
    assert!(!place.inside("run/step-00000001").exists());
}

/// A limit on the size of files stands for a full disk: writing fails in the middle of a file.
#[test]
fn a_disk_that_takes_no_checkpoint_costs_a_warning_and_not_the_run() {
    let place = Place::new();
    let first = train(&place, "run", &["--max-steps", "2"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let before = kept(&place, "run/step-00000002");
    let more = ["--align-lag", "2", "--checkpoint-dir", "run", "--max-steps", "5", "--resume"];
    let args = [&TRAIN[..], &more, &["--checkpoint-every", "1"]].concat();
    // 2 MB: the record and the samples fit, the weights do not. The signal would end the program.
    let limited = r#"trap '' XFSZ; ulimit -f 2048; exec "$@""#;
    let mut command = std::process::Command::new("bash");
    command.args(["-c", limited, "bash", env!("CARGO_BIN_EXE_tandem")]);
    let said = Said::of(place.surround(command, &args).output().expect("bash runs"));
    // Every one that was not kept is said, and the end is no success: what it came to is lost.
    assert_eq!(said.err.matches("warning: the checkpoint was not kept").count(), 3, "{said:?}");
    said.failed(&["came to step 5", "last checkpoint could not be written", "File too large"]);
    // It learned to the end, and what was there is there.
    let record = fs::read_to_string(place.inside("run/run-from-00000002.jsonl")).expect("a record");
    assert!(record.contains("\"step\":5,"), "{record}");
    assert!(kept(&place, "run/step-00000002") == before);
    assert!(!place.inside("run/step-00000003").exists());
    let drafts = fs::read_dir(place.inside("run")).expect("the run").filter(|entry| {
        entry.as_ref().expect("read").file_name().to_string_lossy().starts_with(".step-")
    });
    assert_eq!(drafts.count(), 0);
    let resumed = train(&place, "run", &["--max-steps", "5", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.err.contains("goes on after step 2"), "{}", resumed.err);
}
