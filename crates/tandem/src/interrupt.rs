//! Ctrl-C, SIGTERM and SIGUSR1: the first signal cancels the run, a later one ends the program at once.
//!
//! SIGUSR1 is for `mpirun`: Open MPI passes it on to all ranks at once, where it waits before it passes SIGTERM on.
//! `timeout` and some supervisors send a signal to the program and to its process group, so it arrives
//! twice: signals within a short time count as one.

use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::time::{Duration, Instant};
use tandem_pipeline::CancelToken;

/// Signals this close to the first count as the same signal.
const TOGETHER: Duration = Duration::from_millis(300);

/// A token that the first signal cancels.
pub fn cancel_on_signals() -> Result<CancelToken> {
    let token = CancelToken::new();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
    let cancelled = token.clone();
    // A thread of its own, so that it reacts while other threads are busy.
    let listen = move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            if first.get_or_insert_with(Instant::now).elapsed() > TOGETHER {
                low_level::exit(ExitStatus::Interrupted as i32);
            }
            cancelled.cancel();
        }
    };
    std::thread::Builder::new()
        .name("tandem-signals".into())
        .spawn(listen)
        .context("cannot start the thread that listens for Ctrl-C")?;
    Ok(token)
}
