//! Status of the writer thread, readable at any time, even while its disk hangs.
//!
//! In: counts and times from [`crate::writer`]. Out: [`Health`], the sums of the run, and whether
//! the thread has ended. No lock here is ever held during a write.

use crate::clock::{Nanos, RunClock};
use crate::error::TelemetryError;
use crate::event::Health;
use crate::perfetto::TraceExtent;
use crate::record::Ending;
use crate::summary::Summary;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub(crate) struct Watch {
    write_errors: AtomicU64,
    late_losses: AtomicU64,
    slowest_write: AtomicU64,
    // Moment the present write began, plus one; zero between writes.
    writing_since: AtomicU64,
    first_error: OnceLock<String>,
    summary: Mutex<Summary>,
    trace: Mutex<Option<Result<TraceExtent, TelemetryError>>>,
    progress: Mutex<Progress>,
    progressed: Condvar,
}

/// How far the writer has come with ending.
#[derive(Default)]
struct Progress {
    // Set once the record is closed; the trace may still be on its way.
    record: Option<Ending>,
    all_done: bool,
    // Rounds of the writer that are over: queues emptied, lines handed to the file.
    rounds: u64,
}

/// Whether the writer has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Yes,
    NotYet,
}

impl Watch {
    pub(crate) fn health(&self, lost: BTreeMap<String, u64>, now: Nanos) -> Health {
        // A write that hangs has not ended yet: it counts with what it took so far.
        let running = match self.writing_since.load(Ordering::Relaxed) {
            0 => Nanos(0),
            since => now.less(Nanos(since - 1)),
        };
        Health {
            lost,
            write_errors: self.write_errors.load(Ordering::Relaxed),
            first_error: self.first_error.get().cloned(),
            slowest_write: running.max(Nanos(self.slowest_write.load(Ordering::Relaxed))),
            late_losses: self.late_losses.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn ending(&self) -> Ending {
        lock(&self.progress).record.unwrap_or(Ending::Cut)
    }

    /// Waits until the record is closed and then until the trace is written, each no longer than
    /// its limit.
    pub(crate) fn wait_for_end(&self, record: Duration, trace: Duration) -> Ended {
        let wait = |limit, unmet: fn(&mut Progress) -> bool| {
            let waited = self.progressed.wait_timeout_while(lock(&self.progress), limit, unmet);
            let (progress, _) = waited.unwrap_or_else(PoisonError::into_inner);
            (progress.record.is_some(), progress.all_done)
        };
        let (closed, _) = wait(record, |progress| progress.record.is_none());
        if closed && wait(trace, |progress| !progress.all_done).1 {
            return Ended::Yes;
        }
        Ended::NotYet
    }

    pub(crate) fn count_round(&self) {
        lock(&self.progress).rounds += 1;
        self.progressed.notify_all();
    }

    /// Waits until a round that began after this call is over, for at most `limit`; whether it is. `wake`
    /// ends the writer's sleep.
    pub(crate) fn wait_for_round(&self, limit: Duration, wake: &dyn Fn()) -> bool {
        let until = Instant::now() + limit;
        let mut progress = lock(&self.progress);
        // The round under way may have emptied the queues already.
        let wanted = progress.rounds + 2;
        while progress.rounds < wanted && !progress.all_done {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            wake();
            let waited = self.progressed.wait_timeout(progress, left.min(Duration::from_millis(5)));
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    pub(crate) fn record_closed(&self, ending: Ending) {
        lock(&self.progress).record = Some(ending);
        self.progressed.notify_all();
    }

    pub(crate) fn all_done(&self) {
        lock(&self.progress).all_done = true;
        self.progressed.notify_all();
    }

    /// The thread panicked: nothing more will be written.
    pub(crate) fn set_panicked(&self) {
        self.note(Err(io::Error::other("the thread that writes the record panicked")));
        let mut progress = lock(&self.progress);
        progress.record.get_or_insert(Ending::Cut);
        progress.all_done = true;
        self.progressed.notify_all();
    }

    /// The summary. The writer locks it only while it adds one event, never during a write.
    pub(crate) fn summary(&self) -> MutexGuard<'_, Summary> {
        lock(&self.summary)
    }

    pub(crate) fn take_trace(&self) -> Option<Result<TraceExtent, TelemetryError>> {
        lock(&self.trace).take()
    }

    pub(crate) fn set_trace(&self, result: Result<TraceExtent, TelemetryError>) {
        *lock(&self.trace) = Some(result);
    }

    pub(crate) fn count_late_loss(&self) {
        self.late_losses.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs a write and measures its duration, visible to others while it lasts.
    pub(crate) fn timed<T>(&self, clock: RunClock, write: impl FnOnce() -> T) -> T {
        let begin = clock.now();
        self.writing_since.store(begin.0 + 1, Ordering::Relaxed);
        let result = write();
        self.slowest_write.fetch_max(clock.now().less(begin).0, Ordering::Relaxed);
        self.writing_since.store(0, Ordering::Relaxed);
        result
    }

    /// Counts a failed write and stores the first error.
    pub(crate) fn note(&self, result: io::Result<()>) -> Ending {
        let Err(error) = result else { return Ending::Whole };
        self.write_errors.fetch_add(1, Ordering::Relaxed);
        let _ = self.first_error.set(error.to_string());
        Ending::Cut
    }
}

/// A panic in another thread must not lose the collected values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
