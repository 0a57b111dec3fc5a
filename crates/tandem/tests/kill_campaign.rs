//! `tandem train` killed repeatedly: no checkpoint is lost, and the result equals that of an
//! undisturbed run. `xtask/campaigns/kill_campaign.sh` does the same a hundred times.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::TestDir;
use support::runs::{CHECKPOINT_SKIPPED, RandomDelay, SMALL_STEPS, lines, newest, parts, steps};

const KILLS: u64 = 6;
const STEPS: &str = "16";

const TRAIN: [&str; 7] =
    ["--warmup-steps", "1000", "--checkpoint-every", "2", "--max-steps", STEPS, "--checkpoint-dir"];

#[test]
fn a_repeatedly_killed_run_ends_like_an_undisturbed_one() {
    let dir = TestDir::new();
    let alone = dir.run(&[&SMALL_STEPS[..], &TRAIN, &["alone"]].concat());
    assert_eq!(alone.code, Some(0), "{alone:?}");
    let expected = steps(&dir.path("alone"));
    assert_eq!(expected.len(), STEPS.parse::<usize>().unwrap());

    let mut delay = RandomDelay::new();
    let mut reached = 0;
    for kill in 0..KILLS {
        let newest = newest(&dir.path("run"));
        assert!(newest.unwrap_or(0) >= reached, "a checkpoint was lost");
        reached = newest.unwrap_or(0);
        let more: &[&str] = if newest.is_some() { &["run", "--resume"] } else { &["run"] };
        let args = [&SMALL_STEPS[..], &TRAIN, more].concat();
        let mut command = dir.tandem(&args);
        command.stdout(Stdio::null()).stderr(fs::File::create(dir.path("err")).unwrap());
        let mut run = command.spawn().expect("the program runs");
        // Alternately: shortly after a new checkpoint, and at any time.
        if kill % 2 == 0 {
            wait_for_checkpoint_after(reached, &dir.path("run"), &mut run);
            std::thread::sleep(delay.up_to(300));
        } else {
            std::thread::sleep(delay.up_to(1500));
        }
        run.kill().expect("SIGKILL");
        run.wait().expect("it is gone");
        let output = fs::read_to_string(dir.path("err")).unwrap();
        assert!(
            !output.contains("error:") && !output.contains(CHECKPOINT_SKIPPED),
            "{delay:?}: {output}"
        );
    }
    let output = dir.run(&[&SMALL_STEPS[..], &TRAIN, &["run", "--resume"]].concat());
    assert_eq!(output.code, Some(0), "{delay:?}: {output:?}");
    assert!(!output.err.contains(CHECKPOINT_SKIPPED), "{delay:?}: {output:?}");

    for (step, line) in parts(&dir.path("run")).iter().flat_map(|part| lines(part)) {
        assert_eq!(Some(&line), expected.get(&step), "{delay:?}: step {step} differs");
    }
    for file in
        ["weights", "ema", "moments", "aligner_snapshots"].map(|name| format!("{name}.safetensors"))
    {
        let of = |run: &str| fs::read(dir.path(run).join("step-00000016").join(&file)).unwrap();
        assert!(of("alone") == of("run"), "{delay:?}: `{file}` differs");
    }
}

fn wait_for_checkpoint_after(step: u64, run: &Path, child: &mut Child) {
    let began = Instant::now();
    while newest(run).unwrap_or(0) <= step {
        if child.try_wait().expect("asked").is_some() {
            // The run reached its end: there is nothing left to kill.
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(600), "no checkpoint within ten minutes");
        std::thread::sleep(Duration::from_millis(5));
    }
}
