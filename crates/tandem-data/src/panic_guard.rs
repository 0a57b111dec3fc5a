//! Work inside libraries that are not ours: a panic in it becomes words, without noise on the terminal.
//!
//! Decoders read hostile bytes; device libraries panic where a driver is missing or memory runs out. A panic hook belongs
//! to the whole process, so one is installed once, in front of whatever was there, and keeps quiet only on a thread that
//! is inside [`catch_panic`]. Panics elsewhere look as they always did.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; what a panic in it said is the error.
///
/// The caller must throw away whatever `work` could have left half done.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    install_hook();
    let before = QUIET.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    outcome.map_err(|payload| words(payload.as_ref()))
}

fn words(payload: &(dyn Any + Send)) -> String {
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
    fn a_panic_becomes_an_error_that_keeps_its_words() {
        let said = catch_panic(|| -> () { panic!("index {} of 3", 7) });
        assert_eq!(said, Err("index 7 of 3".to_owned()));
        assert!(!QUIET.get(), "the thread stays quiet after the panic");
        let said = catch_panic(|| -> () { panic!("lost") });
        assert_eq!(said, Err("lost".to_owned()));
        let said = catch_panic(|| -> () { panic::panic_any(7) });
        assert_eq!(said, Err("no reason given".to_owned()));
        assert_eq!(catch_panic(|| 5), Ok(5));
    }
}
