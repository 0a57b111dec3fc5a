//! Turns a panic inside a device library into an error, without noise on the terminal.
//!
//! The libraries below panic where a driver is missing, memory runs out or a device is lost. A
//! panic hook belongs to the whole process, so one is installed once, in front of whatever was
//! there, and keeps quiet only on a thread that is inside [`guarded`].

use super::DeviceError;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; a panic in it becomes [`DeviceError::Broke`] with what `doing` names.
///
/// The caller must throw away whatever `work` could have left half done.
pub fn guarded<T>(doing: &'static str, work: impl FnOnce() -> T) -> Result<T, DeviceError> {
    install_hook();
    let before = QUIET.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    outcome.map_err(|payload| {
        let why = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no reason given".to_owned());
        DeviceError::Broke { doing, why }
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
        let error = guarded("copying", || -> () { panic!("lost device {}", 1) }).unwrap_err();
        assert_eq!(error.to_string(), "the device failed while copying: lost device 1");
        assert!(!QUIET.get(), "the thread stays quiet after the panic");
        assert_eq!(guarded("copying", || 5), Ok(5));
    }
}
