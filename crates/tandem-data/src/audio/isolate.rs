//! Turns a panic inside a decoder into an error, without noise on the terminal.
//!
//! The decoders read hostile bytes and are not ours. A panic hook belongs to the whole
//! process, so one is installed once, in front of whatever was there, and keeps quiet only on a
//! thread that is inside [`isolated`]. Panics elsewhere look as they always did.

use super::AudioError;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; a panic in it becomes [`AudioError::Panicked`].
///
/// The caller must throw away whatever `work` could have left half done.
pub fn isolated<T>(work: impl FnOnce() -> Result<T, AudioError>) -> Result<T, AudioError> {
    install_hook();
    let before = QUIET.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    outcome.unwrap_or_else(|payload| {
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no reason given".to_owned());
        Err(AudioError::Panicked { message })
    })
}

fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                previous(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_keeps_its_words() {
        let error = isolated::<()>(|| panic!("index {} of 3", 7)).unwrap_err();
        assert_eq!(error.to_string(), "the decoder broke down on this file: index 7 of 3");
        assert!(!QUIET.get(), "the thread stays quiet after the panic");
        assert_eq!(isolated(|| Ok(5)).unwrap(), 5);
    }
}
