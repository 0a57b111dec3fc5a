//! `tandem train` killed again and again: nothing is lost, and the end is that of a run that was
//! left alone. `scripts/kill_campaign.sh` does the same a hundred times.

mod kit;

use kit::Place;
use kit::runs::{Chance, SMALL_STEPS, lines, newest, parts, steps};
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const KILLS: u64 = 6;
const STEPS: &str = "16";

const TRAIN: [&str; 7] =
    ["--warmup-steps", "1000", "--checkpoint-every", "2", "--max-steps", STEPS, "--checkpoint-dir"];

#[test]
fn a_run_that_is_killed_again_and_again_ends_as_if_it_had_been_left_alone() {
    let place = Place::new();
    let alone = place.run(&[&SMALL_STEPS[..], &TRAIN, &["alone"]].concat());
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
        let args = [&SMALL_STEPS[..], &TRAIN, more].concat();
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
    let said = place.run(&[&SMALL_STEPS[..], &TRAIN, &["run", "--resume"]].concat());
    assert_eq!(said.code, Some(0), "{chance:?}: {said:?}");
    assert!(!said.err.contains("passed over"), "{chance:?}: {said:?}");

    for (step, line) in parts(&place.inside("run")).iter().flat_map(|part| lines(part)) {
        assert_eq!(Some(&line), expected.get(&step), "{chance:?}: step {step} was another one");
    }
    for file in
        ["weights", "ema", "moments", "aligner_snapshots"].map(|name| format!("{name}.safetensors"))
    {
        let of = |run: &str| fs::read(place.inside(run).join("step-00000016").join(&file)).unwrap();
        assert!(of("alone") == of("run"), "{chance:?}: `{file}` differs");
    }
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
