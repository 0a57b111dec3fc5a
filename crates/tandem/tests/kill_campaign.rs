//! `tandem train` killed again and again: nothing is lost, and the end is that of a run that was
//! left alone. `scripts/kill_campaign.sh` does the same a hundred times.

mod kit;

use kit::Place;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const KILLS: u64 = 6;
const STEPS: &str = "16";

const TRAIN: [&str; 21] = [
    "train",
    "--train-data",
    "demo",
    "--cache-dataset",
    "--batch-size",
    "2",
    "--frame-budget",
    "800",
    "--warmup-steps",
    "1000",
    "--align-flat-start",
    "0",
    "--align-every",
    "2",
    "--align-lag",
    "2",
    "--checkpoint-every",
    "2",
    "--max-steps",
    STEPS,
    "--checkpoint-dir",
];

#[test]
fn a_run_that_is_killed_again_and_again_ends_as_if_it_had_been_left_alone() {
    let place = Place::new();
    let alone = place.run(&[&TRAIN[..], &["alone"]].concat());
    assert_eq!(alone.code, Some(0), "{alone:?}");
    let expected = steps(&place.inside("alone"));
    assert_eq!(expected.len(), STEPS.parse::<usize>().unwrap());

    let mut chance = Chance::new();
    let mut reached = 0;
    for kill in 0..KILLS {
        let newest = newest(&place.inside("run"));
        assert!(newest.unwrap_or(0) >= reached, "a checkpoint was lost");
        reached = newest.unwrap_or(0);
        let more: &[&str] = if newest.is_some() { &["run", "--resume"] } else { &["run"] };
        let args = [&TRAIN[..], more].concat();
        let mut command = place.tandem(&args);
        command.stdout(Stdio::null()).stderr(fs::File::create(place.inside("err")).unwrap());
        let mut run = command.spawn().expect("the program runs");
        // In turn: soon after a new checkpoint began to be there, and at any time at all.
        if kill % 2 == 0 {
            wait_for_checkpoint_after(reached, &place.inside("run"), &mut run);
            std::thread::sleep(chance.up_to(300));
        } else {
            std::thread::sleep(chance.up_to(1500));
        }
        run.kill().expect("SIGKILL");
        run.wait().expect("it is gone");
        let said = fs::read_to_string(place.inside("err")).unwrap();
        assert!(!said.contains("error:") && !said.contains("passed over"), "{chance:?}: {said}");
    }
    let said = place.run(&[&TRAIN[..], &["run", "--resume"]].concat());
    assert_eq!(said.code, Some(0), "{chance:?}: {said:?}");
    assert!(!said.err.contains("passed over"), "{chance:?}: {said:?}");

    for (step, line) in parts(&place.inside("run")).iter().flat_map(|part| lines(part)) {
        assert_eq!(Some(&line), expected.get(&step), "{chance:?}: step {step} was another one");
    }
    for file in ["weights", "ema", "moments", "readers"].map(|name| format!("{name}.safetensors")) {
        let of = |run: &str| fs::read(place.inside(run).join("step-00000016").join(&file)).unwrap();
        assert!(of("alone") == of("run"), "{chance:?}: `{file}` differs");
    }
}

/// Every step of a run with what it learned from and what came of it: batch, rows, frames, shape and
/// losses to the last digit. Times are left out.
fn steps(run: &Path) -> BTreeMap<u64, serde_json::Value> {
    parts(run).iter().flat_map(|part| lines(part)).collect()
}

fn lines(part: &Path) -> Vec<(u64, serde_json::Value)> {
    let text = fs::read_to_string(part).unwrap();
    // A kill may cut the last line off.
    let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    let steps = lines.filter(|line: &serde_json::Value| line["event"] == "step");
    let without_times = |mut line: serde_json::Value| {
        let fields = line.as_object_mut().unwrap();
        ["at", "took", "waited"].iter().for_each(|name| {
            fields.remove(*name);
        });
        (line["step"].as_u64().unwrap(), line)
    };
    steps.map(without_times).collect()
}

fn parts(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect()
}

/// The step of the newest checkpoint that is there under its name.
fn newest(run: &Path) -> Option<u64> {
    let entries = fs::read_dir(run).ok()?.map(|entry| entry.unwrap().file_name());
    let step = |name: std::ffi::OsString| name.to_str()?.strip_prefix("step-")?.parse().ok();
    entries.filter_map(step).max()
}

fn wait_for_checkpoint_after(step: u64, run: &Path, child: &mut Child) {
    let began = Instant::now();
    while newest(run).unwrap_or(0) <= step {
        if child.try_wait().expect("asked").is_some() {
            // It came to its end: there is nothing left to kill.
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "no checkpoint within two minutes");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Moments that are others each time; the seed is in every message.
#[derive(Debug)]
struct Chance {
    #[allow(dead_code, reason = "for messages")]
    seed: u64,
    state: u64,
}

impl Chance {
    fn new() -> Chance {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seed = now.as_nanos() as u64 | 1;
        Chance { seed, state: seed }
    }

    fn up_to(&mut self, milliseconds: u64) -> Duration {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        Duration::from_millis(self.state % milliseconds)
    }
}
