//! What `tandem train` does and says before its first step: the run directory, GPUs that are not used,
//! rows that are too long.

mod support;

use std::fs;
use std::path::Path;
use support::{CommandOutput, Kind, TestDir, tone_wav, wav};

const TRAIN: [&str; 11] = [
    "train",
    "--train-data",
    "corpus",
    "--model-size",
    "micro",
    "--batch-size",
    "4",
    "--num-workers",
    "1",
    "--no-adapt",
    "--max-steps",
];

fn test_dir() -> TestDir {
    let rows = ('a'..='h').map(|name| format!("{name}|hello there|hello there\n"));
    TestDir::with_clips(8, &rows.collect::<String>())
}

fn train(dir: &TestDir, more: &[&str]) -> CommandOutput {
    dir.run(&[&TRAIN[..], more].concat())
}

fn first_line(output: &CommandOutput) -> &str {
    output.err.lines().next().unwrap_or_default()
}

/// Alignment of later batches waits for weights that no step has made yet, so more would never be ready. The
/// delay is far longer than loading takes: whatever the machine, a run that waits for the whole buffer fails here.
#[test]
fn a_run_starts_with_the_batches_that_can_be_aligned() {
    let dir = test_dir();
    let ahead = ["3", "--align-flat-start", "0", "--align-lag", "1", "--align-every", "1"];
    let output = train(&dir, &[&ahead[..], &["--model-start-delay", "600"]].concat());
    assert_eq!(output.code, Some(0), "{}", output.err);
    let started = output.err.lines().find(|line| line.starts_with("training starts after"));
    assert!(started.is_some_and(|line| line.contains("enough")), "{}", output.err);
}

#[test]
fn rows_that_cannot_be_read_while_the_corpus_is_measured_are_named() {
    let dir = test_dir();
    assert_eq!(dir.run(&["prepare", "corpus"]).code, Some(0));
    let failure = ["--inject-failure", "read-error:open wavs/c.wav#1-", "--max-rejected", "0.5"];
    let output = train(&dir, &[&["2"], &failure[..]].concat());
    assert_eq!(output.code, Some(0), "{}", output.err);
    let named = "warning: could not be read while the corpus was measured: `c`: ";
    assert!(output.err.contains(named), "{}", output.err);
    let vocoder =
        ["train-vocoder", "--train-data", "corpus", "--size", "micro", "--batch-size", "2"];
    let place = ["--max-steps", "1", "--checkpoint-dir", "vocoder"];
    let output = dir.run(&[&vocoder[..], &place, &failure[..2]].concat());
    assert!(output.err.contains(named), "{}", output.err);
}

#[test]
fn each_run_gets_a_new_directory_and_resume_takes_the_newest() {
    let dir = test_dir();
    train(&dir, &["1", "--resume"]).assert_failed(&["no run in `runs`", "--resume"]);
    for number in 1..=2 {
        let output = train(&dir, &["1"]);
        assert_eq!(output.code, Some(0), "{}", output.err);
        let directory = format!("runs/corpus-micro-b4-{number}");
        assert_eq!(first_line(&output), format!("run directory: {directory}"));
        assert!(dir.path(&directory).join("run.jsonl").exists());
    }
    // Of the same name, and written last.
    let mut smaller = TRAIN;
    smaller[6] = "2";
    let other = dir.run(&[&smaller[..], &["1"]].concat());
    assert_eq!(first_line(&other), "run directory: runs/corpus-micro-b2-1", "{}", other.err);
    let resumed = train(&dir, &["2", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    let newest = "run directory: runs/corpus-micro-b4-2, the newest of 3 runs to resume";
    assert_eq!(first_line(&resumed), newest);
    assert!(resumed.err.contains("resumed at step 1 in runs/corpus-micro-b4-2"), "{}", resumed.err);

    // The settings of a run start another one; a typed directory is used as before.
    let again = ["train", "--config", "runs/corpus-micro-b4-1/config.toml"];
    assert_eq!(first_line(&dir.run(&again)), "run directory: runs/corpus-micro-b4-3");
    assert_eq!(train(&dir, &["1", "--checkpoint-dir", "typed"]).code, Some(0));
    let refused = train(&dir, &["1", "--checkpoint-dir", "typed"]);
    refused.assert_failed(&["holds a run already", "--resume"]);

    // A run that fails before it writes anything leaves no directory.
    let failed = dir.run(&["train", "--train-data", "nowhere", "--max-steps", "1"]);
    failed.assert_failed(&["nowhere"]);
    assert!(failed.err.starts_with("run directory: runs/nowhere-tiny-b16-1\n"), "{}", failed.err);
    assert!(!dir.path("runs/nowhere-tiny-b16-1").exists());
}

#[test]
fn runs_that_start_at_once_do_not_share_a_directory() {
    let dir = test_dir();
    assert_eq!(dir.run(&["prepare", "corpus"]).code, Some(0));
    let start = |_| dir.tandem(&[&TRAIN[..], &["1"]].concat()).spawn().expect("it starts");
    let runs: Vec<_> = (0..3).map(start).collect();
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        let output = CommandOutput::of(run.wait_with_output().expect("it ends"));
        assert_eq!(output.code, Some(0), "{}", output.err);
        names.push(first_line(&output).to_string());
    }
    names.sort();
    let expected = [1, 2, 3].map(|n| format!("run directory: runs/corpus-micro-b4-{n}"));
    assert_eq!(names, expected);
}

/// A machine with an NVIDIA and an AMD card, as the kernel describes it.
fn machine_with_cards(root: &Path) {
    for (pci, vendor) in [("0000:01:00.0", "0x10de"), ("0000:03:00.0", "0x1002")] {
        let place = root.join("bus/pci/devices").join(pci);
        fs::create_dir_all(&place).expect("created");
        for (name, value) in [("class", "0x030000"), ("vendor", vendor), ("device", "0x2684")] {
            fs::write(place.join(name), format!("{value}\n")).expect("written");
        }
    }
}

#[test]
fn a_cpu_run_names_the_gpus_that_it_does_not_use() {
    let dir = test_dir();
    machine_with_cards(&dir.path("sys"));
    let output = train(&dir, &["1", "--sys", "sys", "--backend", "cpu"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let warning = "the NVIDIA GPU at 0000:01:00.0 (model 2684) is not used";
    assert!(output.err.contains(&format!("warning: {warning}")), "{}", output.err);
    assert!(output.err.contains("the AMD GPU at 0000:03:00.0"), "{}", output.err);
    // What a build without that backend would need.
    if !cfg!(feature = "cuda") {
        assert!(output.err.contains("--features cuda"), "{}", output.err);
    }
    assert!(output.out.contains(&format!("idle_gpu: {warning}")), "{}", output.out);
    let none = train(&dir, &["1", "--sys", "no-cards"]);
    assert!(!none.err.contains("is not used"), "{}", none.err);
}

#[test]
fn rows_beyond_the_limits_are_counted_with_the_flag_that_keeps_them() {
    // One clip of 2.5 s, one with a long text, eight short ones.
    let mut rows: String = ('a'..='h').map(|name| format!("{name}|hello there|hello\n")).collect();
    rows += &format!("long|hello there|hello\nwordy|{0}|{0}\n", "hello there ".repeat(20));
    let dir = TestDir::with_clips(8, &rows);
    dir.write("wavs/long.wav", &wav(Kind::Int(16), 22_050, 1, 2.5));
    dir.write("wavs/wordy.wav", &tone_wav());
    let limit = ["--max-mel-frames", "200"];
    let mel = "1 of 10 rows (10.0 %) is longer than 200 mel frames and is not used; \
               `--max-mel-frames 216` keeps them: the largest batch grows from ";
    let text = "1 of 10 rows (10.0 %) is longer than 200 symbols and is not used; \
                `--max-text-length 239` keeps them";
    let prepared = dir.run(&[&["prepare", "corpus"], &limit[..]].concat());
    for words in
        [mel, text, "16 x 200 frames and 200 symbols to 16 x 216 frames", "(model size tiny)"]
    {
        assert!(prepared.out.contains(words), "no `{words}` in {}", prepared.out);
    }
    let summary = dir.prepare(&limit);
    assert_eq!(summary["too_long"][0]["longest"], 216);
    assert_eq!(summary["rebuilt"], 0, "lengths of rejected rows are in the cache");

    let trained = train(&dir, &["1", limit[0], limit[1]]);
    assert_eq!(trained.code, Some(0), "{}", trained.err);
    for words in [mel, text] {
        assert!(trained.err.contains(&format!("warning: {words}")), "{}", trained.err);
        assert!(trained.out.contains(&format!("rows_too_long: {words}")), "{}", trained.out);
    }
    let raised = ["1", "--max-mel-frames", "216", "--max-text-length", "239"];
    let kept = train(&dir, &raised);
    assert_eq!(kept.code, Some(0), "{}", kept.err);
    assert!(!kept.err.contains("is longer than"), "{}", kept.err);

    let failed = dir.run(&["prepare", "corpus", "--max-mel-frames", "200", "--max-rejected", "0"]);
    failed.assert_failed(&["rows are unusable", "--max-mel-frames", "keeps"]);
}
