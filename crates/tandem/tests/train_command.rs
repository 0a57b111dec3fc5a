//! `tandem train` on the built-in corpus: a few steps; interrupted, killed, resumed and refused runs.

mod support;

use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::runs::CHECKPOINT_SKIPPED;
use support::{CommandOutput, TestDir, signal};

/// The warm-up is longer than any test, so that the learning rate of a step does not depend on
/// `--max-steps`.
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

fn train(dir: &TestDir, directory: &str, more: &[&str]) -> CommandOutput {
    dir.run(&[&TRAIN[..], &["--align-lag", "2", "--checkpoint-dir", directory], more].concat())
}

/// The tensor files and the training state of a checkpoint.
fn checkpoint_files(dir: &TestDir, checkpoint: &str) -> BTreeMap<String, Vec<u8>> {
    let names = ["weights", "ema", "moments", "aligner_snapshots"]
        .map(|name| format!("{name}.safetensors"));
    let read = |name: String| {
        let bytes = fs::read(dir.path(checkpoint).join(&name)).expect("a file of a checkpoint");
        (name, bytes)
    };
    names.into_iter().chain(["state.json".to_string()]).map(read).collect()
}

/// The first part of a run ends with a validation that the uninterrupted run does not have.
fn without_best(bytes: &[u8]) -> Vec<u8> {
    let Ok(mut state) = serde_json::from_slice::<serde_json::Value>(bytes) else {
        return bytes.to_vec();
    };
    for key in ["best", "since_best"] {
        state.as_object_mut().expect("a state").remove(key);
    }
    state.to_string().into_bytes()
}

#[test]
fn an_interrupted_run_ends_with_the_same_weights_to_the_last_bit() {
    let dir = TestDir::new();
    let whole = train(&dir, "whole", &["--max-steps", "6"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(whole.out.contains("verdict"), "{}", whole.out);
    assert!(whole.out.contains("warm-up   none: the CPU compiles no kernels"), "{}", whole.out);
    assert!(whole.out.contains("in use    data side at most "), "{}", whole.out);
    let output = whole.err.matches("mel frames: on the host (the CPU is the only").count();
    assert_eq!(output, 1, "{}", whole.err);
    let part = train(&dir, "parts", &["--max-steps", "3", "--num-workers", "1"]);
    assert_eq!(part.code, Some(0), "{part:?}");
    let rest = ["--max-steps", "6", "--resume", "--num-workers", "3", "--no-adapt"];
    let rest = train(&dir, "parts", &rest);
    assert_eq!(rest.code, Some(0), "{rest:?}");
    assert!(rest.err.contains("resumed at step 3"), "{}", rest.err);
    let (whole, parts) = (
        checkpoint_files(&dir, "whole/step-00000006"),
        checkpoint_files(&dir, "parts/step-00000006"),
    );
    for (name, bytes) in &whole {
        assert!(without_best(bytes) == without_best(&parts[name]), "`{name}` differs");
    }
}

/// With a single compute thread, which the training loop occupies: a computation that another thread
/// submits to the pool would wait forever.
#[test]
fn a_single_compute_thread_gives_the_same_weights() {
    let dir = TestDir::new();
    let validate = ["--validate-every", "2", "--sample-every", "4", "--max-steps", "4"];
    let many = train(&dir, "many", &validate);
    assert_eq!(many.code, Some(0), "{many:?}");
    let args = [&TRAIN[..], &["--align-lag", "2", "--checkpoint-dir", "one"], &validate].concat();
    let mut run = dir.tandem(&args);
    run.env("RAYON_NUM_THREADS", "1").stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = run.spawn().expect("the program runs");
    let began = Instant::now();
    let ended = loop {
        if let Some(ended) = run.try_wait().expect("a child process") {
            break ended;
        }
        if began.elapsed() > Duration::from_secs(300) {
            signal(&run, Signal::KILL);
            panic!("the run waits for a compute thread that is never free");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(ended.code(), Some(0));
    assert!(
        checkpoint_files(&dir, "one/step-00000004") == checkpoint_files(&dir, "many/step-00000004")
    );
}

#[test]
fn gradients_of_several_batches_are_accumulated_in_one_step() {
    let dir = TestDir::new();
    let output = train(&dir, "run", &["--max-steps", "2", "--grad-accum", "3"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let state =
        String::from_utf8(checkpoint_files(&dir, "run/step-00000002")["state.json"].clone());
    let state: serde_json::Value = serde_json::from_str(&state.expect("text")).expect("JSON");
    assert_eq!(state["next_batch"], 6);
}

#[test]
fn a_signal_ends_the_run_after_the_current_step_with_a_checkpoint() {
    let dir = TestDir::new();
    let mut run = start(&dir, "run");
    wait_for_steps(&dir, &mut run, "run/run.jsonl");
    signal(&run, Signal::TERM);
    let ended = run.wait().expect("it ends");
    assert_eq!(ended.code(), Some(3));
    let resumed = train(&dir, "run", &["--max-steps", "1", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.err.contains("resumed at step"), "{}", resumed.err);
}

/// It is written before the last validation, which may take long and may mark it as the best.
#[test]
fn the_last_checkpoint_can_be_the_best() {
    let dir = TestDir::new();
    let output = train(&dir, "run", &["--max-steps", "2"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let best =
        fs::read_to_string(dir.path("run/best.json")).expect("the best checkpoint is marked");
    assert!(best.contains(r#""step":2"#), "{best}");
}

/// The loss of the frames decides, without that of the durations.
#[test]
fn the_score_of_the_best_checkpoint_is_its_acoustic_loss() {
    let dir = TestDir::new();
    let output = train(&dir, "run", &["--max-steps", "2"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let record = fs::read_to_string(dir.path("run/run.jsonl")).expect("a record");
    let validated = record
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an event"))
        .rfind(|event| event["event"] == "validation" && event["best"] == true)
        .expect("a best validation");
    let value = |name: &str| validated["values"][name].as_f64().expect("a number");
    let best = fs::read_to_string(dir.path("run/best.json")).expect("a mark");
    let score = format!("\"score\":{}", value("acoustic"));
    assert!(best.contains(&score), "{best} {validated}");
    assert!((value("acoustic") - value("prior") - value("flow")).abs() < 1e-9, "{validated}");
    assert!(value("total") > value("acoustic"), "{validated}");
}

/// The events of a kind in the record of `run`.
fn events(dir: &TestDir, kind: &str) -> Vec<serde_json::Value> {
    let record = fs::read_to_string(dir.path("run/run.jsonl")).expect("a record");
    let event = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("an event");
    record.lines().map(event).filter(|event| event["event"] == kind).collect()
}

#[test]
fn the_best_checkpoint_follows_what_a_judge_hears() {
    let dir = TestDir::new();
    let judge = "sh -c 'for file; do echo the morning train; done' -";
    let every = ["--max-steps", "2", "--validate-every", "1", "--checkpoint-every", "1"];
    let output = train(&dir, "run", &[&every[..], &["--judge", judge]].concat());
    assert_eq!(output.code, Some(0), "{output:?}");
    let validations = events(&dir, "validation");
    let first = &validations[0];
    let heard = first["values"]["cer"].as_f64().expect("character errors");
    assert!(heard > 0.5 && first["values"]["wer"].as_f64().expect("word errors") > 0.5, "{first}");
    assert_eq!(first["best"], true, "{first}");
    // It heard the same words again: no better, whatever the loss says.
    assert_eq!(validations[1]["best"], false, "{validations:?}");
    let best = fs::read_to_string(dir.path("run/best.json")).expect("a mark");
    assert!(best.contains(&format!("\"score\":{heard}")), "{best}");
    assert!(best.contains("heard by a judge"), "{best}");
}

#[test]
fn a_judge_that_fails_is_named_once_and_the_loss_decides() {
    let dir = TestDir::new();
    let every = ["--max-steps", "3", "--validate-every", "1", "--checkpoint-every", "1"];
    // It works once.
    let judge = "sh -c 'mkdir was-here || exit 7; for file; do echo the; done' -";
    let output = train(&dir, "run", &[&every[..], &["--judge", judge]].concat());
    assert_eq!(output.code, Some(0), "{output:?}");
    let warnings = events(&dir, "warning");
    let named: Vec<_> = warnings.iter().filter(|event| event["code"] == "judge_failed").collect();
    assert_eq!(named.len(), 1, "{warnings:?}");
    let validations = events(&dir, "validation");
    let losses = validations.iter().map(|event| event["values"]["acoustic"].as_f64().unwrap());
    let least = losses.fold(f64::INFINITY, f64::min);
    let best = fs::read_to_string(dir.path("run/best.json")).expect("a mark");
    assert!(best.contains(&format!("\"score\":{least}")), "{best} {validations:?}");
    assert!(!best.contains("judge"), "{best}");
}

#[test]
fn a_judge_that_cannot_be_reached_is_refused_before_training() {
    let dir = TestDir::new();
    let output = train(&dir, "run", &["--max-steps", "1", "--judge", "https://example.org/v1"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.err.contains("http://HOST:PORT/PATH"), "{}", output.err);
}

/// `timeout` signals the program and then its process group, so the program gets both signals.
#[test]
fn two_signals_at_once_count_as_one() {
    let dir = TestDir::new();
    let mut run = start(&dir, "run");
    wait_for_steps(&dir, &mut run, "run/run.jsonl");
    signal(&run, Signal::TERM);
    signal(&run, Signal::TERM);
    assert_eq!(run.wait().expect("it ends").code(), Some(3));
    let record = std::fs::read_to_string(dir.path("run/run.jsonl")).expect("a record");
    assert!(record.contains(r#""event":"final","outcome":"interrupted""#), "{record}");
}

#[test]
fn a_lost_device_costs_no_training_progress() {
    let dir = TestDir::new();
    let lost = ["--max-steps", "8", "--lose-device-at", "5", "--pipeline-depth", "2"];
    let lost = train(&dir, "run", &lost);
    assert_eq!(lost.code, Some(2), "{lost:?}");
    assert!(lost.err.contains("the device was lost"), "{}", lost.err);
    assert!(lost.err.contains("transfer"), "the stage is named: {}", lost.err);
    assert!(lost.err.contains("with `--resume` to continue"), "{}", lost.err);
    let rest = train(&dir, "run", &["--max-steps", "8", "--resume"]);
    assert_eq!(rest.code, Some(0), "{rest:?}");
    assert!(rest.err.contains("resumed at step"), "{}", rest.err);
    let whole = train(&dir, "whole", &["--max-steps", "8"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(
        checkpoint_files(&dir, "run/step-00000008")
            == checkpoint_files(&dir, "whole/step-00000008")
    );
}

#[test]
fn a_killed_run_resumes_from_its_last_checkpoint() {
    let dir = TestDir::new();
    let mut run = start(&dir, "run");
    wait_for_steps(&dir, &mut run, "run/step-00000002/manifest.json");
    signal(&run, Signal::KILL);
    run.wait().expect("it is gone");
    let resumed = train(&dir, "run", &["--max-steps", "1", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
}

fn start(dir: &TestDir, directory: &str) -> Child {
    let more =
        ["--align-lag", "2", "--max-steps", "500", "--checkpoint-every", "2", "--checkpoint-dir"];
    let args = [&TRAIN[..], &more, &[directory]].concat();
    let mut command = dir.tandem(&args);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program runs")
}

/// Waits until this file exists and the record has a step.
fn wait_for_steps(dir: &TestDir, run: &mut Child, file: &str) {
    let began = Instant::now();
    let stepped = || {
        let record = fs::read_to_string(dir.path("run/run.jsonl")).unwrap_or_default();
        dir.path(file).exists() && record.contains("\"event\":\"step\"")
    };
    while !stepped() {
        assert!(run.try_wait().expect("asked").is_none(), "it ended before its first step");
        assert!(began.elapsed() < Duration::from_secs(600), "no step within ten minutes");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_existing_run_is_not_overwritten_and_a_different_run_is_not_resumed() {
    let dir = TestDir::new();
    assert_eq!(train(&dir, "run", &["--max-steps", "1"]).code, Some(0));
    train(&dir, "run", &["--max-steps", "1"]).assert_failed(&["holds a run already", "--resume"]);
    train(&dir, "empty", &["--resume"]).assert_failed(&["no checkpoint", "leave out `--resume`"]);
    let small = ["--resume", "--model-size", "small", "--max-steps", "2"];
    train(&dir, "run", &small).assert_failed(&["size tiny", "--model-size small"]);
    let other = ["--resume", "--seed", "7", "--max-steps", "2"];
    train(&dir, "run", &other).assert_failed(&["seed or fixed shapes changed", "--allow-changes"]);
    let allowed = train(&dir, "run", &[&other[..], &["--allow-changes"]].concat());
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    assert!(allowed.err.contains("resumed with a change"), "{}", allowed.err);
}

#[test]
fn a_damaged_newest_checkpoint_is_skipped_and_named() {
    let dir = TestDir::new();
    let output = train(&dir, "run", &["--max-steps", "2", "--checkpoint-every", "1"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let weights = dir.path("run/step-00000002/weights.safetensors");
    let mut bytes = fs::read(&weights).expect("weights");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&weights, bytes).expect("damaged");
    let resumed = train(&dir, "run", &["--max-steps", "2", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.err.contains(CHECKPOINT_SKIPPED), "{}", resumed.err);
    assert!(resumed.err.contains("resumed at step 1"), "{}", resumed.err);
}

#[test]
fn campaign_scripts_search_for_the_note_of_a_damaged_checkpoint() {
    for name in ["kill_campaign.sh", "signal_campaign.sh"] {
        let path = format!("{}/../../xtask/campaigns/{name}", env!("CARGO_MANIFEST_DIR"));
        let script = fs::read_to_string(&path).expect("a script");
        assert!(script.contains(CHECKPOINT_SKIPPED), "{path} searches for an old message");
    }
}

/// Padded frames of the first batch, and two of its losses. The third loss depends on noise of the padded size.
fn first_step(dir: &TestDir, directory: &str) -> (u64, [f64; 2]) {
    let record = fs::read_to_string(dir.path(&format!("{directory}/run.jsonl"))).unwrap();
    let steps = record.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let step = steps.into_iter().find(|event| event["event"] == "step").expect("a step");
    let loss = |name: &str| step["losses"][name].as_f64().expect("a number");
    (step["shape"][2].as_u64().expect("frames"), ["prior", "duration"].map(loss))
}

#[test]
fn batches_without_static_shapes_are_smaller_and_have_the_same_losses() {
    let dir = TestDir::new();
    for (run, shapes) in [("fixed", "true"), ("tight", "false")] {
        let shapes = format!("--enable-static-shapes={shapes}");
        let output = train(&dir, run, &["--max-steps", "1", &shapes]);
        assert_eq!(output.code, Some(0), "{output:?}");
    }
    let ((fixed, padded), (tight, bare)) = (first_step(&dir, "fixed"), first_step(&dir, "tight"));
    assert!(tight < fixed, "{tight} {fixed}");
    for (padded, bare) in padded.iter().zip(&bare) {
        assert!((padded - bare).abs() < 1e-4 * padded.abs().max(1.0), "{padded} {bare}");
    }
}

#[test]
fn impossible_settings_are_refused_before_any_work() {
    let dir = TestDir::new();
    let both = ["--data-gpu", "0", "--model-gpu", "1"];
    train(&dir, "run", &both).assert_failed(&["insufficient GPUs for multi-GPU mode"]);
    train(&dir, "run", &["--model-gpu", "1"])
        .assert_failed(&["insufficient GPUs for multi-GPU mode"]);
    train(&dir, "run", &["--mel-on", "device"]).assert_failed(&["data device", "--mel-on device"]);
    let tight = ["--enable-memory-isolation", "--model-gpu-memory", "1", "--data-gpu-memory", "1"];
    train(&dir, "run", &[&tight[..], &["--max-steps", "1"]].concat()).assert_failed(&["memory"]);
    assert!(!dir.path("run/step-00000001").exists());
}

/// A file size limit simulates a full disk: a write fails in the middle of a file.
#[test]
fn a_checkpoint_that_cannot_be_written_is_a_warning_until_the_last_one() {
    let dir = TestDir::new();
    let first = train(&dir, "run", &["--max-steps", "2"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let before = checkpoint_files(&dir, "run/step-00000002");
    let more = ["--align-lag", "2", "--checkpoint-dir", "run", "--max-steps", "5", "--resume"];
    let args = [&TRAIN[..], &more, &["--checkpoint-every", "1"]].concat();
    // Below 2 MB the record and the samples fit, the weights do not. SIGXFSZ would end the program.
    let limited = r#"trap '' XFSZ; ulimit -f 2048; exec "$@""#;
    let mut command = std::process::Command::new("bash");
    command.args(["-c", limited, "bash", env!("CARGO_BIN_EXE_tandem")]);
    let output = CommandOutput::of(dir.with_test_env(command, &args).output().expect("bash runs"));
    // Every failed checkpoint is a warning; the last one makes the run fail, since its result is lost.
    assert_eq!(
        output.err.matches("warning: the checkpoint was not saved").count(),
        3,
        "{output:?}"
    );
    output.assert_failed(&[
        "reached step 5",
        "its last checkpoint is not on disk",
        "File too large",
    ]);
    // It trained to the end, and the earlier checkpoint is unchanged.
    let record = fs::read_to_string(dir.path("run/run-from-00000002.jsonl")).expect("a record");
    assert!(record.contains("\"step\":5,"), "{record}");
    assert!(checkpoint_files(&dir, "run/step-00000002") == before);
    assert!(!dir.path("run/step-00000003").exists());
    let drafts = fs::read_dir(dir.path("run")).expect("the run").filter(|entry| {
        entry.as_ref().expect("read").file_name().to_string_lossy().starts_with(".step-")
    });
    assert_eq!(drafts.count(), 0);
    let resumed = train(&dir, "run", &["--max-steps", "5", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.err.contains("resumed at step 2"), "{}", resumed.err);
}
