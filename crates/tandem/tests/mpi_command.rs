//! The real program under the real `mpirun`, on this machine: `xtask/tests/mpi_tests.sh` builds it with MPI and
//! runs these tests. `TANDEM_MPI_KILLS=50` makes a campaign of the kills.

#![cfg(feature = "mpi")]
#![allow(clippy::print_stdout, reason = "figures of a campaign")]

mod support;

use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;
use support::mpi_job::{END_WITHIN, KILL_TIMEOUT, MpiJob, mpirun};
use support::runs::{CHECKPOINT_SKIPPED, RandomDelay, newest, steps};
use support::{CommandOutput, TestDir, not_tested, settings_dir};
use tandem_telemetry::run_parts::main_part;

/// Small steps of the smallest model, both kinds of alignment, learning rates that do not depend on the end.
const TRAIN: [&str; 22] = [
    "train",
    "--train-data",
    "demo",
    "--cache-dataset",
    "--model-size",
    "micro",
    "--batch-size",
    "2",
    "--frame-budget",
    "800",
    "--align-flat-start",
    "2",
    "--align-every",
    "2",
    "--align-lag",
    "2",
    "--warmup-steps",
    "1000",
    "--model-start-delay",
    "0",
    "--checkpoint-dir",
    "run",
];

fn run(dir: &TestDir, ranks: usize, args: &[&str]) -> CommandOutput {
    let started = match ranks {
        1 => dir.tandem(args).output(),
        _ => mpirun(dir, ranks, &[&[env!("CARGO_BIN_EXE_tandem")], args].concat()).output(),
    };
    CommandOutput::of(started.expect("mpirun is installed"))
}

fn train(dir: &TestDir, ranks: usize, more: &[&str]) -> CommandOutput {
    let output = run(dir, ranks, &[&TRAIN[..], more].concat());
    assert_eq!(output.code, Some(0), "{output:?}");
    output
}

/// The tensors of the newest checkpoint, by file.
fn tensors(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let step = newest(run).expect("a checkpoint");
    let files = fs::read_dir(run.join(format!("step-{step:08}"))).unwrap();
    files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "safetensors"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect()
}

/// Items and losses of every step, without the batch that the record names.
fn losses(run: &Path) -> Vec<(u64, String)> {
    let steps = steps(run).into_iter();
    steps.map(|(step, line)| (step, format!("{} {}", line["items"], line["losses"]))).collect()
}

#[test]
fn two_ranks_equal_one_rank_that_accumulates_two_batches_bit_for_bit() {
    let (one, two) = (TestDir::new(), TestDir::new());
    // `compare` needs ten steps after the first.
    let validated = ["--max-steps", "12", "--validate-every", "6", "--sample-every", "6"];
    train(&one, 1, &[&validated[..], &["--grad-accum", "2"]].concat());
    let output = train(&two, 2, &validated);
    assert!(output.err.contains("ranks: 2 (2 on "), "{}", output.err);
    assert!(!output.err.contains("do not share memory"), "{}", output.err);
    assert_eq!(tensors(&one.path("run")), tensors(&two.path("run")));
    let expected = losses(&one.path("run"));
    assert_eq!(expected.len(), 12);
    // The age of an alignment is that of the last batch of a rank: the same rule, another batch.
    assert_eq!(expected, losses(&two.path("run")));
    assert_eq!(expected, losses(&two.path("run/ranks/1")), "rank 1 records the global losses");
    let expected = validations(&one.path("run"));
    assert_eq!(expected.len(), 2);
    assert_eq!(expected, validations(&two.path("run")), "ranks share the validation");
    shows_ranks(&two);
}

/// Rank 1 has a /dev/shm of its own.
const APART: &str = "[ \"$OMPI_COMM_WORLD_RANK\" = 0 ] && exec \"$@\"
    exec unshare -m sh -c 'mount -t tmpfs tmpfs /dev/shm && exec \"$@\"' sh \"$@\"";

#[test]
fn two_ranks_without_shared_memory_say_so_and_have_the_same_bits() {
    let mount = ["-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"];
    let tried = std::process::Command::new("unshare").args(mount).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        not_tested("two ranks without shared memory: a mount of its own needs root");
        return;
    }
    let (one, two) = (TestDir::new(), TestDir::new());
    train(&one, 1, &["--max-steps", "4", "--grad-accum", "2"]);
    let apart = ["sh", "-c", APART, "sh", env!("CARGO_BIN_EXE_tandem")];
    let job = [&apart[..], &TRAIN, &["--max-steps", "4"]].concat();
    // The transport of Open MPI for one machine needs shared memory, too.
    let output = mpirun(&two, 2, &job).env("OMPI_MCA_btl", "self,tcp").output();
    let output = CommandOutput::of(output.expect("mpirun is installed"));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.err.contains("do not share memory"), "{}", output.err);
    assert_eq!(tensors(&one.path("run")), tensors(&two.path("run")));
}

/// Values of every validation.
fn validations(run: &Path) -> Vec<String> {
    let text = fs::read_to_string(run.join("run.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let found = lines.filter(|line| line["event"] == "validation");
    found.map(|line| format!("{} {}", line["step"], line["values"])).collect()
}

/// Report, page and comparison of a run show its ranks.
fn shows_ranks(dir: &TestDir) {
    let report = dir.run(&["report", "run", "--html", "report.html"]);
    assert!(report.out.contains("sum of gradients") && report.out.contains("\n  1 "), "{report:?}");
    assert!(report.out.contains("slowest stage before the model"), "{report:?}");
    let report = dir.run(&["report", "run", "--json"]).json();
    let ranks = report["ranks"]["ranks"].as_array().expect("ranks");
    assert_eq!(ranks.len(), 2, "{report}");
    // From the record of each rank.
    assert!(ranks.iter().all(|rank| rank["record"]["outcome"] == "done"), "{report}");
    let compared = dir.run(&["compare", "run", "run"]);
    assert!(compared.out.contains("rank 1, per step"), "{compared:?}");
    let page = fs::read_to_string(dir.path("report.html")).unwrap();
    assert!(page.contains("id=\"ranks\""), "no section of ranks");
}

/// Four values are added as (a + b) + (c + d), and not as ((a + b) + c) + d.
const TOLERANCE: f64 = 1e-4;

#[test]
fn four_ranks_give_the_losses_of_four_accumulated_batches_within_a_tolerance() {
    let (one, four) = (TestDir::new(), TestDir::new());
    train(&one, 1, &["--max-steps", "4", "--grad-accum", "4"]);
    train(&four, 4, &["--max-steps", "4"]);
    assert_close_losses(&one.path("run"), &four.path("run"), 4);
}

/// The losses of so many steps, within the tolerance.
#[track_caller]
fn assert_close_losses(one: &Path, four: &Path, count: usize) {
    let total = |run: &Path| -> Vec<f64> {
        steps(run).values().map(|line| line["losses"]["total"].as_f64().expect("a loss")).collect()
    };
    let (expected, found) = (total(one), total(four));
    assert_eq!((expected.len(), found.len()), (count, count));
    let off = expected.iter().zip(&found).map(|(a, b)| (a - b).abs() / a.abs());
    let most = off.fold(0.0, f64::max);
    println!("losses of four ranks differ by {most:.1e} at most");
    assert!(most <= TOLERANCE, "{expected:?} and {found:?}: {most:e}");
}

#[test]
fn sums_are_measured_and_runs_of_two_ranks_are_predicted() {
    let dir = TestDir::new();
    let output = run(&dir, 2, &["bench", "reduce", "--largest", "1", "--repeats", "3", "--json"]);
    let measured = output.json();
    assert_eq!(measured["ranks"], 2);
    let saved = fs::read_to_string(dir.path("data/reduce.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&saved).unwrap(), measured);
    let check = ["plan", "--check", "--mode", "data-parallel", "--num-steps", "4", "--json"];
    let output = run(&dir, 1, &[&check[..], &["--batch-size", "1"]].concat());
    // On a busy machine the prediction may be off: exit code 1.
    assert!(matches!(output.code, Some(0 | 1)), "{output:?}");
    assert!(output.err.contains("2 ranks") && output.err.contains("predicted"), "{}", output.err);
    let found: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(found["tried"].as_array().map(Vec::len), Some(1), "{found}");
}

#[test]
fn a_run_continues_with_other_numbers_of_ranks_and_says_what_changes() {
    let (dir, alone) = (TestDir::new(), TestDir::new());
    train(&dir, 2, &["--max-steps", "4"]);
    let equal = train(&dir, 1, &["--max-steps", "6", "--resume", "--grad-accum", "2"]);
    assert!(equal.err.contains("a step takes 2 batches as before"), "{}", equal.err);
    // One process that was never interrupted has the same bits.
    train(&alone, 1, &["--max-steps", "6", "--grad-accum", "2"]);
    assert_eq!(tensors(&dir.path("run")), tensors(&alone.path("run")));
    assert_eq!(losses(&dir.path("run")), losses(&alone.path("run")));
    let larger = train(&dir, 4, &["--max-steps", "8", "--resume"]);
    let said =
        "a step takes 4 batches instead of 2 from step 6 on; no `--grad-accum` keeps it equal";
    assert!(larger.err.contains(said), "{}", larger.err);
    assert_eq!(newest(&dir.path("run")), Some(8));
    train(&alone, 1, &["--max-steps", "8", "--resume", "--grad-accum", "4"]);
    assert_close_losses(&alone.path("run"), &dir.path("run"), 8);
}

/// Starts a long job and waits until it has a checkpoint that is newer than `after`.
fn start_long_job<'a>(dir: &'a TestDir, after: Option<u64>, more: &[&str]) -> MpiJob<'a> {
    let mut args = [&TRAIN[..], more].concat();
    args.extend(["--max-steps", "1000000", "--checkpoint-every", "2"]);
    if after.is_some() {
        args.push("--resume");
    }
    let mut job = MpiJob::start(dir, 2, &args);
    job.wait_for_checkpoint(after);
    job
}

/// How the newest part of a run ended, and after which step, as a rank recorded it.
fn ending(run: &Path) -> (String, u64) {
    let part = main_part(run).expect("a record");
    let text = fs::read_to_string(part).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let found: Vec<_> = lines.filter(|line| line["event"] == "final").collect();
    assert_eq!(found.len(), 1, "the record is complete: {found:?}");
    let outcome = found[0]["outcome"].as_str().expect("an outcome").to_string();
    (outcome, found[0]["steps"].as_u64().expect("a step"))
}

fn kills() -> u64 {
    std::env::var("TANDEM_MPI_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(3)
}

#[test]
fn a_rank_that_is_killed_ends_the_job_with_its_name_and_a_checkpoint_that_resumes() {
    let dir = TestDir::new();
    let mut delay = RandomDelay::new();
    let (mut longest, mut reached) = (Duration::ZERO, None);
    for kill in 0..kills() {
        let job = start_long_job(&dir, reached, &[]);
        std::thread::sleep(delay.up_to(400));
        let before = newest(&dir.path("run"));
        // Mostly rank 1; now and then the rank that writes the checkpoints.
        let rank = usize::from(kill % 3 != 2);
        job.signal(rank, Signal::KILL);
        let took = job.wait_for_end(&[1 - rank], END_WITHIN);
        longest = longest.max(took);
        assert_eq!(job.code(1 - rank), Some(2), "{delay:?}: {}", job.all_said());
        if rank == 1 {
            let (said, named) = (job.said(0), "rank 1 on host ");
            assert!(said.contains(named) && said.contains("is lost"), "{delay:?}: {said}");
        }
        reached = newest(&dir.path("run"));
        assert!(reached >= before, "{delay:?}: a checkpoint was lost: {}", job.all_said());
        if rank == 1 {
            let (outcome, step) = ending(&dir.path("run"));
            assert_eq!((outcome.as_str(), Some(step)), ("failed", reached), "{}", job.all_said());
        }
    }
    let steps = (reached.unwrap() + 2).to_string();
    let resumed = train(&dir, 1, &["--max-steps", &steps, "--resume", "--grad-accum", "2"]);
    assert!(!resumed.err.contains(CHECKPOINT_SKIPPED), "{}", resumed.err);
    println!("{} kills, the slowest end after {longest:?}", kills());
}

#[test]
fn a_rank_that_hangs_ends_the_job_with_its_name() {
    let dir = TestDir::new();
    let job = start_long_job(&dir, None, &["--rank-timeout", "8"]);
    job.signal(1, Signal::STOP);
    let took = job.wait_for_end(&[0], END_WITHIN);
    let said = job.said(0);
    assert!(said.contains("rank 1 on host "), "{}", job.all_said());
    assert!(said.contains("no heartbeat for "), "{}", job.all_said());
    assert_eq!(job.code(0), Some(2), "{}", job.all_said());
    println!("ended after {took:?}");
    drop(job);
    let steps = (newest(&dir.path("run")).unwrap() + 2).to_string();
    train(&dir, 2, &["--max-steps", &steps, "--resume"]);
}

/// Both ranks were stopped by the user, after the same step, whose checkpoint is the newest. Returns the step.
#[track_caller]
fn assert_interrupted(job: &MpiJob, dir: &TestDir) -> u64 {
    let run = dir.path("run");
    assert_eq!([0, 1].map(|rank| job.code(rank)), [Some(3), Some(3)], "{}", job.all_said());
    let (outcome, step) = ending(&run);
    assert_eq!(outcome, "interrupted", "{}", job.all_said());
    assert_eq!(ending(&run.join("ranks/1")), (outcome, step), "{}", job.all_said());
    assert_eq!(newest(&run), Some(step), "{}", job.all_said());
    let told = format!("stopped at step {step};");
    assert!(job.said(0).contains(&told), "{}", job.all_said());
    step
}

#[test]
fn sigterm_to_mpirun_stops_all_ranks_with_a_checkpoint() {
    let dir = TestDir::new();
    let job = start_long_job(&dir, None, &[]);
    job.signal_mpirun(Signal::TERM);
    job.wait_for_end(&[0, 1], KILL_TIMEOUT + END_WITHIN);
    let step = assert_interrupted(&job, &dir);
    drop(job);
    train(&dir, 2, &["--max-steps", &(step + 2).to_string(), "--resume"]);
}

#[test]
fn sigusr1_to_mpirun_stops_all_ranks_with_a_checkpoint() {
    let dir = TestDir::new();
    let job = start_long_job(&dir, None, &[]);
    job.signal_mpirun(Signal::USR1);
    job.wait_for_end(&[0, 1], END_WITHIN);
    assert_interrupted(&job, &dir);
}

#[test]
fn a_signal_to_one_rank_stops_all_of_them_with_exit_code_3() {
    let dir = TestDir::new();
    let job = start_long_job(&dir, None, &[]);
    job.signal(1, Signal::TERM);
    job.wait_for_end(&[0, 1], END_WITHIN);
    assert_interrupted(&job, &dir);
}

/// Every file of the cache, by name.
fn cache(dir: &TestDir) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(settings_dir(&dir.corpus().join(".tandem-cache"))).unwrap();
    let files = files.map(|file| file.unwrap().path()).filter(|path| path.is_file());
    files
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .filter(|(name, _)| name != "lock")
        .collect()
}

fn long_corpus() -> TestDir {
    let rows: Vec<String> = (0..300).map(|row| format!("c{row:03}|Row number {row}.")).collect();
    let dir = TestDir::new();
    for row in 0..300 {
        dir.write(&format!("wavs/c{row:03}.wav"), &support::tone_wav());
    }
    // Two rows that cannot be used.
    dir.write("wavs/c007.wav", b"no sound");
    fs::remove_file(dir.corpus().join("wavs/c008.wav")).unwrap();
    dir.write("metadata.csv", rows.join("\n").as_bytes());
    dir
}

#[test]
fn the_cache_of_four_ranks_has_the_bytes_of_one_process_also_after_a_kill() {
    let dir = long_corpus();
    let args = ["prepare", "corpus", "--cache-dataset", "--json"];
    let one = run(&dir, 1, &args).json();
    let expected = cache(&dir);
    assert!(expected.len() > 2, "{:?}", expected.keys());
    let clear = || fs::remove_dir_all(dir.corpus().join(".tandem-cache")).unwrap();
    clear();
    let four = run(&dir, 4, &args).json();
    assert_eq!((&four["rows"], &four["rebuilt"]), (&one["rows"], &one["rebuilt"]));
    assert_eq!(cache(&dir), expected);

    clear();
    let job = MpiJob::start(&dir, 4, &args);
    job.wait_for_rank(2);
    std::thread::sleep(RandomDelay::new().up_to(600));
    // It may have ended.
    job.signal(2, Signal::KILL);
    // Ranks that had not started MPI yet are ended by `mpirun`.
    job.wait_for_end(&[0, 1, 2, 3], KILL_TIMEOUT + END_WITHIN);
    drop(job);
    run(&dir, 4, &args).json();
    let after = run(&dir, 1, &["batches", "corpus", "--cache-dataset", "--json"]).json();
    clear();
    run(&dir, 1, &args).json();
    let alone = run(&dir, 1, &["batches", "corpus", "--cache-dataset", "--json"]).json();
    assert_eq!(after, alone);
}

#[test]
fn gpus_that_do_not_fit_the_ranks_are_refused_by_every_rank() {
    let dir = TestDir::new();
    for (flags, words) in [
        (["--data-gpu", "0", "--model-gpu", "1"], "name 1 pairs for 2 ranks on this machine"),
        (["--data-gpu", "0,2", "--model-gpu", "1,1"], "`--model-gpu` names GPU 1 twice"),
        (
            ["--data-gpu", "0,2,4", "--model-gpu", "1,3"],
            "`--data-gpu` names 3 GPUs and `--model-gpu` 2",
        ),
        (["--data-gpu", "90,92", "--model-gpu", "91,93"], "insufficient GPUs for multi-GPU mode"),
    ] {
        let output = run(&dir, 2, &[&TRAIN[..], &flags[..]].concat());
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.err.contains(words), "{}", output.err);
        assert!(!dir.path("run").join("run.jsonl").exists(), "nothing was started");
    }
}

#[test]
fn a_command_for_one_process_is_refused_under_mpirun() {
    let dir = TestDir::new();
    let output = run(&dir, 2, &["devices"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.err.contains("of a command that runs in one process"), "{}", output.err);
}

#[test]
fn output_to_a_file_has_no_colours_although_mpirun_gives_its_ranks_a_terminal() {
    let dir = TestDir::new();
    let small = ["--model-size", "micro", "--batch-size", "1", "--steps", "1", "--turns", "1"];
    let output = run(&dir, 2, &[&["bench", "scale"], &small[..]].concat());
    assert!(output.out.contains("batches/s of 2 ranks"), "{output:?}");
    let escape = '\u{1b}';
    assert!(!output.out.contains(escape) && !output.err.contains(escape), "{output:?}");
}
