//! SIGTERM at random times during training: exit code 3 within 30 s, and a checkpoint of the last step.
//! `xtask/campaigns/signal_campaign.sh` does the same a hundred times.

mod support;

use rustix::process::Signal;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::runs::{RandomDelay, SMALL_STEPS, lines, newest, parts};
use support::{TestDir, signal};

const SIGNALS: usize = 4;
/// A program that takes longer hangs; the speed of the machine must not decide.
const WITHIN: Duration = Duration::from_secs(300);

const TRAIN: [&str; 9] = [
    "--model-size",
    "micro",
    "--model-start-delay",
    "0",
    "--checkpoint-every",
    "7",
    "--max-steps",
    "1000000",
    "--checkpoint-dir",
];

#[test]
fn a_signal_at_any_time_leaves_a_checkpoint_of_the_last_step() {
    let dir = TestDir::new();
    let run = dir.path("run");
    let mut delay = RandomDelay::new();
    for sent_before in 0..SIGNALS {
        let before = newest(&run);
        let more: &[&str] = if before.is_some() { &["run", "--resume"] } else { &["run"] };
        let mut command = dir.tandem(&[&SMALL_STEPS[..], &TRAIN, more].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program runs");
        let began = Instant::now();
        while !run.is_dir() || parts(&run).len() <= sent_before {
            assert!(child.try_wait().expect("asked").is_none(), "it ended by itself");
            assert!(began.elapsed() < Duration::from_secs(600), "the run does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(delay.up_to(1500));
        let sent = Instant::now();
        signal(&child, Signal::TERM);
        let ended = child.wait().expect("it ends");
        assert_eq!(ended.code(), Some(3), "{delay:?}");
        assert!(sent.elapsed() < WITHIN, "{delay:?}: it took {:?}", sent.elapsed());
        let done = parts(&run).iter().flat_map(|part| lines(part)).map(|(step, _)| step).max();
        assert_eq!(newest(&run), done, "{delay:?}: the checkpoint of the last step");
        assert!(newest(&run) >= before, "{delay:?}");
    }
}
