//! SIGTERM at random moments of training: a checkpoint of the last step, exit code 3, within 30 s.
//! `scripts/signal_campaign.sh` does the same a hundred times.

mod kit;

use kit::runs::{Chance, SMALL_STEPS, lines, newest, parts};
use kit::{Place, signal};
use rustix::process::Signal;
use std::process::Stdio;
use std::time::{Duration, Instant};

const SIGNALS: usize = 4;
const WITHIN: Duration = Duration::from_secs(30);

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
fn a_signal_at_any_moment_ends_with_a_checkpoint_of_the_last_step() {
    let place = Place::new();
    let run = place.inside("run");
    let mut chance = Chance::new();
    for sent_before in 0..SIGNALS {
        let before = newest(&run);
        let more: &[&str] = if before.is_some() { &["run", "--resume"] } else { &["run"] };
        let mut command = place.tandem(&[&SMALL_STEPS[..], &TRAIN, more].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program runs");
        let began = Instant::now();
        while !run.is_dir() || parts(&run).len() <= sent_before {
            assert!(child.try_wait().expect("asked").is_none(), "it ended by itself");
            assert!(began.elapsed() < Duration::from_secs(120), "it does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(chance.up_to(1500));
        let sent = Instant::now();
        signal(&child, Signal::TERM);
        let ended = child.wait().expect("it ends");
        assert_eq!(ended.code(), Some(3), "{chance:?}");
        assert!(sent.elapsed() < WITHIN, "{chance:?}: it took {:?}", sent.elapsed());
        let done = parts(&run).iter().flat_map(|part| lines(part)).map(|(step, _)| step).max();
        assert_eq!(newest(&run), done, "{chance:?}: the checkpoint of the last step");
        assert!(newest(&run) >= before, "{chance:?}");
    }
}
