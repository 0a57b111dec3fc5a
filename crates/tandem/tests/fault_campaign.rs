//! `tandem train` while its files are deleted, truncated, replaced, stalled and renamed, the disk is full, and the
//! process is stopped, killed and resumed. `xtask/campaigns/fault_campaign.sh N` injects N faults; the test suite a few.
//!
//! Each run must make progress, or end with a documented exit code and a checkpoint that resumes. A run
//! that ends is compared with an undisturbed run that skipped the same rows: weights, EMA, optimizer
//! moments and aligner snapshots must be equal, bit for bit.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a long campaign reports its progress"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use support::TestDir;
use support::faults::{Fault, Random, Recordings};
use support::runs::{newest, steps};

/// Faults of the test suite; `TANDEM_FAULTS` overrides.
const FAULTS: usize = 12;
/// A run that does not end within this time hangs. Far above what one takes on a busy machine.
const LONGEST: Duration = Duration::from_secs(180);
/// Restarts of one run, at most.
const RESTARTS: usize = 12;
const TENSORS: [&str; 4] = ["weights", "ema", "moments", "aligner_snapshots"];

#[test]
fn a_disturbed_run_ends_like_an_undisturbed_one_that_skipped_the_same_rows() {
    let wanted = std::env::var("TANDEM_FAULTS").ok().and_then(|text| text.parse().ok());
    let wanted: usize = wanted.unwrap_or(FAULTS);
    let seed = std::env::var("TANDEM_FAULT_SEED").ok().and_then(|text| text.parse().ok());
    let mut random = Random::new(seed);
    eprintln!("seed {}", random.seed());
    let (mut totals, began) = (Totals::default(), Instant::now());
    while totals.faults < wanted {
        let mut run = Campaign::new(&mut random);
        run.disturb(&mut random, &mut totals);
        run.compare(&mut totals);
        eprintln!("{totals:?} after {:.0?}", began.elapsed());
    }
    println!(
        "{} faults in {:.0?}: {} runs, {} restarts, {} rows skipped; 0 hangs, 0 unreadable checkpoints; \
         {} runs equal undisturbed ones",
        totals.faults,
        began.elapsed(),
        totals.runs,
        totals.restarts,
        totals.skipped,
        totals.compared,
    );
}

#[derive(Debug, Default)]
struct Totals {
    faults: usize,
    runs: usize,
    restarts: usize,
    skipped: usize,
    compared: usize,
}

/// One run with random settings, disturbed until it is done.
struct Campaign {
    dir: TestDir,
    recordings: Recordings,
    settings: Vec<String>,
    grad_accum: u64,
    steps: u64,
    history: Vec<String>,
    /// A killed process may lose the last lines of its record, so its skipped rows are not all known.
    comparable: bool,
}

impl Campaign {
    fn new(random: &mut Random) -> Campaign {
        let dir = TestDir::new();
        let recordings = Recordings::copy_of_demo(&dir, 36);
        let grad_accum = random.between(1, 3);
        let steps = random.between(30, 70);
        let align_every = random.between(1, 5);
        let mut settings: Vec<String> = [
            ("--batch-size", random.between(1, 3)),
            ("--grad-accum", grad_accum),
            ("--align-every", align_every),
            ("--align-lag", random.between(0, 6)),
            ("--align-flat-start", 0),
            ("--num-workers", random.between(1, 3)),
            ("--checkpoint-every", random.between(4, 12)),
            ("--keep", random.between(1, 3)),
            ("--validate-every", random.between(8, 20)),
            ("--sample-every", 1000),
            ("--warmup-steps", 1000),
            ("--max-steps", steps),
            ("--stall-timeout", 4),
        ]
        .iter()
        .flat_map(|(flag, value)| [flag.to_string(), value.to_string()])
        .collect();
        let fixed = ["--model-size", "micro", "--frame-budget", "1600", "--max-rejected", "0.9"];
        settings.extend(fixed.map(String::from));
        settings.extend(["--no-adapt", "--model-start-delay", "0"].map(String::from));
        if random.between(0, 2) == 0 {
            settings.push("--cache-dataset".into());
        }
        let history = vec![format!("{settings:?}")];
        Campaign { dir, recordings, settings, grad_accum, steps, history, comparable: true }
    }

    fn args<'a>(&'a self, run: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let corpus = self.recordings.corpus().to_str().expect("text");
        let mut args =
            vec!["train", "--train-data", corpus, "--cache-dir", "cache", "--checkpoint-dir", run];
        args.extend(self.settings.iter().map(String::as_str));
        args.extend(more);
        args
    }

    /// Starts the run, injects faults while it trains, repairs, and resumes, until the run is done.
    fn disturb(&mut self, random: &mut Random, totals: &mut Totals) {
        totals.runs += 1;
        for attempt in 0..=RESTARTS {
            let last_try = attempt == RESTARTS;
            let failure = random.disk_failure(last_try);
            // Long enough for faults to fall into the run.
            let mut more: Vec<&str> = vec!["--slow", "train=15"];
            let before = newest(&self.dir.path("run"));
            if before.is_some() {
                more.push("--resume");
                totals.restarts += 1;
            }
            if let Some(failure) = &failure {
                more.extend(["--inject-failure", failure]);
                totals.faults += 1;
            }
            self.history.push(format!("start {more:?} after {before:?}"));
            let mut child = self.start(&more);
            if !last_try {
                self.inject(&mut child, random, totals);
            }
            let status = self.wait(&mut child);
            self.history.push(format!("ended: {status}"));
            self.recordings.restore();
            self.judge(status, before);
            if status.code() == Some(0) {
                return;
            }
        }
        self.fail("the run was never done");
    }

    fn start(&self, more: &[&str]) -> Child {
        let mut command = self.dir.tandem(&self.args("run", more));
        let file = |name: &str| fs::File::create(self.dir.path(name)).expect("a file");
        command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
        command.spawn().expect("the program runs")
    }

    /// Faults come after the first step of this process: before it, a run measures its corpus, and a row that
    /// cannot be read then changes the scale of the mel frames.
    fn inject(&mut self, child: &mut Child, random: &mut Random, totals: &mut Totals) {
        self.wait_for_step(child);
        for _ in 0..random.between(1, 4) {
            std::thread::sleep(Duration::from_millis(random.between(20, 500)));
            if child.try_wait().expect("asked").is_some() {
                return;
            }
            let fault = random.fault();
            self.history.push(format!("{fault:?}"));
            totals.faults += 1;
            self.comparable &= fault != Fault::Kill;
            fault.inject(child, &self.recordings, &self.dir.path("run"), random);
            if random.between(0, 2) == 0 {
                std::thread::sleep(Duration::from_millis(random.between(20, 400)));
                self.recordings.restore();
            }
        }
    }

    fn wait_for_step(&self, child: &mut Child) {
        let began = Instant::now();
        let has_step = |run: &Path| {
            let newest = parts_in_order(run).pop();
            let text = newest.and_then(|(_, path)| fs::read_to_string(path).ok());
            text.is_some_and(|text| text.contains("\"event\":\"step\""))
        };
        let run = self.dir.path("run");
        while !(run.is_dir() && has_step(&run)) && began.elapsed() < LONGEST {
            if child.try_wait().expect("asked").is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn wait(&mut self, child: &mut Child) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = child.try_wait().expect("asked") {
                return status;
            }
            if began.elapsed() > LONGEST {
                let _ = child.kill();
                self.fail("it hangs");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The exit code is documented, a failure names its cause and a way out, and no checkpoint is lost.
    fn judge(&self, status: ExitStatus, before: Option<u64>) {
        let err = fs::read_to_string(self.dir.path("err")).unwrap_or_default();
        match status.code() {
            Some(0 | 3) => {}
            Some(2) if err.contains("error:") => {}
            // Only a signal that was sent may end it without a code.
            None if !self.comparable => {}
            _ => self.fail("an undocumented end"),
        }
        if err.contains("panicked") {
            self.fail("it panicked");
        }
        let now = newest(&self.dir.path("run"));
        if now.unwrap_or(0) < before.unwrap_or(0) {
            self.fail("a checkpoint was lost");
        }
        if let Some(best) = best(&self.dir.path("run"))
            && !self.dir.path("run").join(format!("step-{best:08}")).is_dir()
        {
            self.fail("best.json names a checkpoint that is gone");
        }
    }

    /// The same run, undisturbed, skipping the same rows.
    fn compare(&mut self, totals: &mut Totals) {
        let skipped = skipped_rows(&self.dir.path("run"), self.grad_accum);
        totals.skipped += skipped.len();
        if !self.comparable {
            return;
        }
        let list: String = skipped.iter().map(|row| format!("{row}\n")).collect();
        fs::write(self.dir.path("skipped.tsv"), list).expect("written");
        let list = self.dir.path("skipped.tsv");
        let more = ["--skip-list", list.to_str().expect("text")];
        let output = self.dir.run(&self.args("undisturbed", &more));
        if output.code != Some(0) {
            self.fail(&format!("the undisturbed run failed: {output:?}"));
        }
        let last = format!("step-{:08}", self.steps);
        for name in TENSORS {
            let read = |run: &str| {
                let path = self.dir.path(run).join(&last).join(format!("{name}.safetensors"));
                fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            };
            if read("run") != read("undisturbed") {
                let step = self.first_difference();
                self.fail(&format!("`{name}` differs from the undisturbed run: {step}"));
            }
        }
        totals.compared += 1;
    }

    /// The first step whose batch or losses differ, in both records, and the rows skipped until then.
    fn first_difference(&self) -> String {
        let (run, alone) = (steps(&self.dir.path("run")), steps(&self.dir.path("undisturbed")));
        let first = alone.iter().find(|(step, line)| run.get(step) != Some(line));
        let Some((step, line)) = first else { return "every recorded step is the same".into() };
        let list = fs::read_to_string(self.dir.path("skipped.tsv")).unwrap_or_default();
        format!("step {step}: {:?}\nundisturbed: {line:?}\nskipped:\n{list}", run.get(step))
    }

    fn fail(&self, why: &str) -> ! {
        self.recordings.restore();
        let tail = |name: &str| {
            let text = fs::read_to_string(self.dir.path(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(25).collect();
            lines.into_iter().rev().collect::<Vec<_>>().join("\n")
        };
        panic!("{why}\n{}\n--- err\n{}\n", self.history.join("\n"), tail("err"));
    }
}

fn best(run: &Path) -> Option<u64> {
    let text = fs::read_to_string(run.join("best.json")).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    find_step(&value)
}

fn find_step(value: &serde_json::Value) -> Option<u64> {
    let fields = value.as_object()?;
    let step = fields.get("step").and_then(serde_json::Value::as_u64);
    step.or_else(|| fields.values().find_map(find_step))
}

/// Rows that the surviving run skipped, as lines of a skip list. A resumed part repeats the batches from its first
/// step on, so that what an earlier part skipped there does not count.
fn skipped_rows(run: &Path, grad_accum: u64) -> Vec<String> {
    let mut rows: Vec<(u64, String)> = Vec::new();
    for (first_step, path) in parts_in_order(run) {
        rows.retain(|(batch, _)| *batch < first_step * grad_accum);
        let text = fs::read_to_string(&path).expect("a record");
        for line in text.lines() {
            let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            let (Some(batch), Some(id)) = (event["ticket"]["seq"].as_u64(), event["id"].as_str())
            else {
                continue;
            };
            let role = match event["stage"].as_str() {
                Some("load") => "utterance",
                Some("reference") => "reference",
                _ => continue,
            };
            if event["event"] == "skipped" {
                rows.push((batch, format!("{batch}\t{id}\t{role}")));
            }
        }
    }
    rows.sort();
    rows.dedup();
    rows.into_iter().map(|(_, line)| line).collect()
}

/// The records of a run in the order they were written, each with the step it continues from.
fn parts_in_order(run: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(run).into_iter().flatten().flatten().map(|entry| entry.path());
    let records = entries.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let mut parts: Vec<_> = records
        .map(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let step = name
                .strip_prefix("run-from-")
                .and_then(|rest| rest.split('-').next().and_then(|digits| digits.parse().ok()));
            let created = fs::metadata(&path).and_then(|meta| meta.created());
            (created.expect("a creation time"), step.unwrap_or(0), path)
        })
        .collect();
    parts.sort();
    parts.into_iter().map(|(_, step, path)| (step, path)).collect()
}
