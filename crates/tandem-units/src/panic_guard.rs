//! Turns a panic inside a library into an error, without a message on the terminal.
//!
//! In: a closure that calls a library. Out: its result, or the panic's message. Decoders read hostile
//! bytes; device libraries panic if a driver is missing or memory runs out. The panic hook is global,
//! so one is installed once in front of the previous hook. It is silent only on a thread that is inside
//! [`catch_panic`]; other panics are reported as before.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; the error is the message of a panic in it.
///
/// The caller must discard any state that `work` may have left half changed.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    install_hook();
    let before = QUIET.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    outcome.map_err(|payload| message(payload.as_ref()))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason given").to_owned()
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
    fn a_panic_becomes_an_error_with_its_message() {
        let result = catch_panic(|| -> () { panic!("index {} of 3", 7) });
        assert_eq!(result, Err("index 7 of 3".to_owned()));
        assert!(!QUIET.get(), "the thread stays quiet after the panic");
        let result = catch_panic(|| -> () { panic!("lost") });
        assert_eq!(result, Err("lost".to_owned()));
        let result = catch_panic(|| -> () { panic::panic_any(7) });
        assert_eq!(result, Err("no reason given".to_owned()));
        assert_eq!(catch_panic(|| 5), Ok(5));
    }
}
