//! Ctrl-C and SIGTERM: the first asks the run to stop, the second stops the program at once.

use crate::exit::ExitStatus;
use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tandem_pipeline::CancelToken;

/// A token that the first signal cancels.
pub fn cancel_on_signals() -> anyhow::Result<CancelToken> {
    let token = CancelToken::new();
    let again = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Order matters: the shutdown looks at the flag before the next line sets it.
        flag::register_conditional_shutdown(signal, ExitStatus::Interrupted as i32, again.clone())?;
        flag::register(signal, again.clone())?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let cancelled = token.clone();
    std::thread::Builder::new()
        .name("tandem-signals".into())
        .spawn(move || signals.forever().for_each(|_| cancelled.cancel()))
        .context("cannot start the thread that listens for Ctrl-C")?;
    Ok(token)
}
