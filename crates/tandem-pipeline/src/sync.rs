//! The locks that all other modules use.
//!
//! `tests/model.rs` compiles the queue, the budget, the slots and the workers a second time, with a
//! module of the same name that provides the model checker's locks. So those files take their locks
//! only from here. No code of a stage ever runs under such a lock, so the state behind a poisoned
//! lock is consistent and is used as it is.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;
use std::time::Duration;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn wait_at_most<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    at_most: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, at_most).unwrap_or_else(PoisonError::into_inner).0
}

/// Runs a test; the model checker's module of this name tries many schedules instead.
#[cfg(test)]
pub(crate) fn model(test: impl Fn() + Send + Sync + 'static) {
    test();
}
