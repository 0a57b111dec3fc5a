//! The real program under the real `mpirun`, on this machine: `scripts/mpi_tests.sh` builds it with MPI and
//! runs these tests. `TANDEM_MPI_KILLS=50` makes a campaign of the kills.

#![cfg(feature = "mpi")]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::runs::{RandomDelay, newest, steps};
use support::{CommandOutput, TestDir, settings_dir};

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

/// The longest that the survivors of a lost rank may take to end.
const END_WITHIN: Duration = Duration::from_secs(30);

/// The longest that `mpirun` may take after them: it sleeps up to twice its time for ranks to save.
const RETURN_WITHIN: Duration = Duration::from_secs(60);

/// `mpirun` with so many ranks of the program. Ranks of a failed job have 10 s to save.
fn mpirun(dir: &TestDir, ranks: usize, args: &[&str]) -> Command {
    let ranks = ranks.to_string();
    let mut all = vec!["-np", &ranks, "--oversubscribe", "--bind-to", "none"];
    all.extend(["--mca", "btl", "self,vader", "--mca", "odls_base_sigkill_timeout", "10"]);
    all.push(env!("CARGO_BIN_EXE_tandem"));
    all.extend(args);
    let mut command = dir.with_test_env(Command::new("mpirun"), &all);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

fn run(dir: &TestDir, ranks: usize, args: &[&str]) -> CommandOutput {
    let started = match ranks {
        1 => dir.tandem(args).output(),
        _ => mpirun(dir, ranks, args).output(),
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
    let validated = ["--max-steps", "8", "--validate-every", "4", "--sample-every", "4"];
    train(&one, 1, &[&validated[..], &["--grad-accum", "2"]].concat());
    let output = train(&two, 2, &validated);
    assert!(output.err.contains("ranks: 2 (2 on "), "{}", output.err);
    assert_eq!(tensors(&one.path("run")), tensors(&two.path("run")));
    let expected = losses(&one.path("run"));
    assert_eq!(expected.len(), 8);
    // The age of an alignment is that of the last batch of a rank: the same rule, another batch.
    assert_eq!(expected, losses(&two.path("run")));
    assert_eq!(expected, losses(&two.path("run/ranks/1")), "rank 1 records the global losses");
    let expected = validations(&one.path("run"));
    assert_eq!(expected.len(), 2);
    assert_eq!(expected, validations(&two.path("run")), "ranks share the validation");
    shows_ranks(&two);
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
    let report = dir.run(&["report", "run", "--json"]).json();
    assert_eq!(report["ranks"]["ranks"].as_array().map(Vec::len), Some(2), "{report}");
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
    let total = |run: &Path| -> Vec<f64> {
        steps(run).values().map(|line| line["losses"]["total"].as_f64().expect("a loss")).collect()
    };
    let (expected, found) = (total(&one.path("run")), total(&four.path("run")));
    assert_eq!((expected.len(), found.len()), (4, 4));
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
    let dir = TestDir::new();
    train(&dir, 2, &["--max-steps", "4"]);
    let equal = train(&dir, 1, &["--max-steps", "6", "--resume", "--grad-accum", "2"]);
    assert!(equal.err.contains("a step takes 2 batches as before"), "{}", equal.err);
    let larger = train(&dir, 4, &["--max-steps", "8", "--resume"]);
    let said =
        "a step takes 4 batches instead of 2 from step 6 on; no `--grad-accum` keeps it equal";
    assert!(larger.err.contains(said), "{}", larger.err);
    assert_eq!(newest(&dir.path("run")), Some(8));
}

/// A process of a job, by its rank.
fn process_of_rank(mpirun: &Child, rank: usize) -> Option<Pid> {
    let name = format!("OMPI_COMM_WORLD_RANK={rank}");
    let processes = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    processes.into_iter().find_map(|process| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let parent: u32 = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
        let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
        let is_rank = environment.split(|byte| *byte == 0).any(|one| one == name.as_bytes());
        (parent == mpirun.id() && is_rank).then(|| Pid::from_raw(process)).flatten()
    })
}

/// Starts a long job and waits until it has a checkpoint that is newer than `after`.
fn start_long_job(dir: &TestDir, ranks: usize, after: Option<u64>) -> Child {
    let mut args = TRAIN.to_vec();
    args.extend(["--max-steps", "1000000", "--checkpoint-every", "2", "--rank-timeout", "5"]);
    if after.is_some() {
        args.push("--resume");
    }
    let mut command = mpirun(dir, ranks, &args);
    command.stdout(Stdio::null()).stderr(fs::File::create(dir.path("err")).unwrap());
    let mut job = command.spawn().expect("mpirun is installed");
    let begun = Instant::now();
    while newest(&dir.path("run")) <= after {
        let ended = job.try_wait().unwrap();
        let said = || fs::read_to_string(dir.path("err")).unwrap();
        assert!(ended.is_none(), "{ended:?}: {}", said());
        assert!(begun.elapsed() < Duration::from_secs(120), "no checkpoint: {}", said());
        std::thread::sleep(Duration::from_millis(20));
    }
    job
}

/// Waits for the end of a job; returns its exit code, what it printed, and how long the ranks took that
/// were not lost.
fn end_of(
    job: &mut Child,
    dir: &TestDir,
    survivors: &[Option<Pid>],
) -> (Option<i32>, String, Duration) {
    let begun = Instant::now();
    let said = || fs::read_to_string(dir.path("err")).unwrap();
    let mut took = None;
    loop {
        if took.is_none() && survivors.iter().flatten().all(|rank| has_ended(*rank)) {
            took = Some(begun.elapsed());
        }
        if let Some(status) = job.try_wait().unwrap() {
            return (status.code(), said(), took.unwrap_or_else(|| begun.elapsed()));
        }
        let limit = if took.is_some() { END_WITHIN + RETURN_WITHIN } else { END_WITHIN };
        if begun.elapsed() > limit {
            // Ends what this test started: mpirun ends its ranks.
            job.kill().unwrap();
            panic!("the job did not end within {limit:?}, its ranks after {took:?}: {}", said());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process that mpirun has not collected yet has ended, too.
fn has_ended(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z')))
        || !Path::new(&format!("/proc/{}", process.as_raw_nonzero())).exists()
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
        let mut job = start_long_job(&dir, 2, reached);
        std::thread::sleep(delay.up_to(400));
        let before = newest(&dir.path("run"));
        // Mostly rank 1; now and then the rank that writes the checkpoints.
        let rank = usize::from(kill % 3 != 2);
        let process = process_of_rank(&job, rank).expect("the rank runs");
        let survivor = process_of_rank(&job, 1 - rank);
        kill_process(process, Signal::KILL).unwrap();
        let (code, said, took) = end_of(&mut job, &dir, &[survivor]);
        longest = longest.max(took);
        assert!(code.is_some_and(|code| code != 0), "{delay:?}: {code:?}: {said}");
        if rank == 1 {
            let named = "rank 1 on host ";
            assert!(said.contains(named) && said.contains("is lost"), "{delay:?}: {said}");
        }
        reached = newest(&dir.path("run"));
        assert!(reached >= before, "{delay:?}: a checkpoint was lost: {said}");
    }
    let steps = (reached.unwrap() + 2).to_string();
    train(&dir, 1, &["--max-steps", &steps, "--resume", "--grad-accum", "2"]);
    println!("{} kills, the slowest end after {longest:?}", kills());
}

#[test]
fn a_rank_that_hangs_ends_the_job_with_its_name() {
    let dir = TestDir::new();
    let mut job = start_long_job(&dir, 2, None);
    let process = process_of_rank(&job, 1).expect("the rank runs");
    let survivor = process_of_rank(&job, 0);
    kill_process(process, Signal::STOP).unwrap();
    let (code, said, took) = end_of(&mut job, &dir, &[survivor]);
    assert!(said.contains("rank 1 on host "), "{said}");
    assert!(said.contains("no sign of life for "), "{said}");
    assert_eq!(code, Some(2), "{said}");
    println!("ended after {took:?}");
    let steps = (newest(&dir.path("run")).unwrap() + 2).to_string();
    train(&dir, 2, &["--max-steps", &steps, "--resume"]);
}

#[test]
fn sigterm_to_mpirun_stops_all_ranks_with_a_checkpoint() {
    let dir = TestDir::new();
    let mut job = start_long_job(&dir, 2, None);
    let ranks = [0, 1].map(|rank| process_of_rank(&job, rank));
    kill_process(Pid::from_child(&job), Signal::TERM).unwrap();
    let (_, said, _) = end_of(&mut job, &dir, &ranks);
    let stopped = said.split("stopped at step ").nth(1).expect("rank 0 says where it stopped");
    let step: u64 = stopped.split(';').next().unwrap().parse().unwrap();
    assert_eq!(newest(&dir.path("run")), Some(step), "{said}");
    train(&dir, 2, &["--max-steps", &(step + 2).to_string(), "--resume"]);
}

#[test]
fn a_signal_to_one_rank_stops_all_of_them_with_exit_code_3() {
    let dir = TestDir::new();
    let mut job = start_long_job(&dir, 2, None);
    let process = process_of_rank(&job, 1).expect("the rank runs");
    let ranks = [process_of_rank(&job, 0), Some(process)];
    kill_process(process, Signal::TERM).unwrap();
    let (code, said, _) = end_of(&mut job, &dir, &ranks);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("stopped at step "), "{said}");
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
    let mut job = mpirun(&dir, 4, &args);
    job.stdout(Stdio::null()).stderr(Stdio::null());
    let mut job = job.spawn().unwrap();
    let begun = Instant::now();
    let process = loop {
        if let Some(process) = process_of_rank(&job, 2) {
            break process;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "rank 2 does not start");
        std::thread::sleep(Duration::from_millis(5));
    };
    std::thread::sleep(RandomDelay::new().up_to(600));
    // It may have ended.
    let _ = kill_process(process, Signal::KILL);
    job.wait().unwrap();
    run(&dir, 4, &args).json();
    let after = run(&dir, 1, &["batches", "corpus", "--cache-dataset", "--json"]).json();
    clear();
    run(&dir, 1, &args).json();
    let alone = run(&dir, 1, &["batches", "corpus", "--cache-dataset", "--json"]).json();
    assert_eq!(after, alone);
}

#[test]
fn a_command_for_one_process_is_refused_under_mpirun() {
    let dir = TestDir::new();
    let output = run(&dir, 2, &["devices"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.err.contains("of a command that runs in one process"), "{}", output.err);
}
