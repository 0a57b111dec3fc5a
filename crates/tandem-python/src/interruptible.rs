//! Runs long work on a thread of its own, while the calling thread looks for Ctrl-C.
//!
//! In: a closure that needs no Python. Out: its result, or the exception of the signal. The interpreter is
//! free for other threads all the time. A panic of the work becomes an exception.

use crate::errors::{Class, of_panic};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use tandem::failure::{Failure, Result};
use tandem_pipeline::CancelToken;

/// How often signals are looked for.
pub const TICK: Duration = Duration::from_millis(50);

/// Runs `work`. A signal, or an error of `each_tick`, cancels the token and waits until the work has ended;
/// a second one does not wait. Without a token the work ends by itself, unobserved.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    name: &str,
    class: Class,
    cancel: Option<&CancelToken>,
    each_tick: &mut dyn FnMut() -> PyResult<()>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = sync_channel(1);
    let thread = std::thread::Builder::new().name(format!("tandem-{name}")).spawn(move || {
        // After an interruption nobody may receive it.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    let thread = thread.map_err(|error| class.of(py, Failure::foreign(error)))?;
    let mut interrupted = None;
    let result = loop {
        let (got, back) = py.detach(move || (receiver.recv_timeout(TICK), receiver));
        receiver = back;
        match got {
            Ok(result) => break result,
            Err(RecvTimeoutError::Disconnected) => {
                let hint = "this is a bug; please report it";
                return Err(Class::Internal.error(py, "a thread ended without a result", hint));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals().and_then(|()| each_tick()) {
                    cancel.iter().for_each(|token| token.cancel());
                    if interrupted.is_some() || cancel.is_none() {
                        return Err(error);
                    }
                    interrupted = Some(error);
                }
            }
        }
    };
    // It ends right after it has sent the result.
    py.detach(|| drop(thread.join()));
    if let Some(error) = interrupted {
        return Err(error);
    }
    match result {
        Ok(result) => result.map_err(|failure| class.of(py, failure)),
        Err(panic) => Err(of_panic(py, &*panic)),
    }
}

/// Runs short work on the calling thread, while other threads of the interpreter continue.
pub fn guarded<T: Send>(
    py: Python<'_>,
    class: Class,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(result) => result.map_err(|failure| class.of(py, failure)),
        Err(panic) => Err(of_panic(py, &*panic)),
    }
}

/// Panics on the calling thread, for the test that a panic of [`guarded`] is an exception.
#[pyfunction]
pub fn panic_here_for_tests(py: Python<'_>) -> PyResult<()> {
    guarded(py, Class::Internal, || panic!("on purpose"))
}

/// Panics on a worker thread, for the test that a panic is an exception.
#[pyfunction]
pub fn panic_for_tests(py: Python<'_>) -> PyResult<()> {
    run(py, "panic", Class::Internal, None, &mut || Ok(()), || panic!("on purpose"))
}

/// Waits so long on a worker thread, for the tests of Ctrl-C.
#[pyfunction]
pub fn wait_for_tests(py: Python<'_>, seconds: f64) -> PyResult<()> {
    let wait = move || {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        Ok(())
    };
    run(py, "wait", Class::Internal, None, &mut || Ok(()), wait)
}
