//! Ctrl-C and SIGTERM: the first asks the run to stop, a later one stops the program at once.
//!
//! What `timeout` and some supervisors send arrives twice, at the program and at its group: signals that come together are
//! one.

use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::time::{Duration, Instant};
use tandem_pipeline::CancelToken;

/// Signals so close to the first are the same wish.
const TOGETHER: Duration = Duration::from_millis(300);

/// A token that the first signal cancels.
pub fn cancel_on_signals() -> Result<CancelToken> {
    let token = CancelToken::new();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let cancelled = token.clone();
    // This thread does nothing else, so it answers whatever the others are busy with.
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
