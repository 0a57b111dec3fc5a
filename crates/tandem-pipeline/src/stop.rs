//! Stops a run: once, for the first cause, and ends every wait.
//!
//! In: a cause, from a stage, the watchdog, the user or the consumer. Out: all waits at the queues
//! and all_permits of the run end. Stopping is idempotent and never waits for a stage. Next:
//! [`crate::error`].

use crate::error::PipelineError;
use crate::permits::Permits;
use crate::queue::AnyQueue;
use crate::sync::{Mutex, lock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Lets any thread stop a run, such as the one that handles Ctrl-C.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Cancel>);

#[derive(Default)]
struct Cancel {
    cancelled: AtomicBool,
    runs: Mutex<Vec<Weak<Stop>>>,
}

impl CancelToken {
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Stops every run that has this token, now or later.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        let runs: Vec<_> = lock(&self.0.runs).iter().filter_map(Weak::upgrade).collect();
        runs.iter().for_each(|run| run.stop(Cause::Failed(PipelineError::Cancelled)));
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    pub(crate) fn attach(&self, stop: &Arc<Stop>) {
        let mut runs = lock(&self.0.runs);
        runs.retain(|run| run.strong_count() > 0);
        runs.push(Arc::downgrade(stop));
        drop(runs);
        if self.is_cancelled() {
            stop.stop(Cause::Failed(PipelineError::Cancelled));
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Cause {
    ConsumerGone,
    Failed(PipelineError),
}

/// Stops one run.
pub(crate) struct Stop {
    cause: Mutex<Option<Cause>>,
    // The source ends early; the stages finish what was taken from it.
    draining: AtomicBool,
    alarm_at: Mutex<Option<Instant>>,
    queues: Vec<Arc<dyn AnyQueue>>,
    all_permits: Vec<Arc<Permits>>,
}

impl Stop {
    pub(crate) fn new(queues: Vec<Arc<dyn AnyQueue>>, all_permits: Vec<Arc<Permits>>) -> Stop {
        let (draining, alarm_at) = (AtomicBool::new(false), Mutex::new(None));
        Stop { cause: Mutex::new(None), draining, alarm_at, queues, all_permits }
    }

    /// Stops the run. Only the first cause is stored.
    pub(crate) fn stop(&self, cause: Cause) {
        lock(&self.cause).get_or_insert(cause);
        self.queues.iter().for_each(|queue| queue.stop());
        self.all_permits.iter().for_each(|permits| permits.stop());
    }

    /// Takes no more from the source; what was taken is still delivered.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// A worker may never return: its thread is only joined for a limited time.
    pub(crate) fn set_alarm(&self) {
        lock(&self.alarm_at).get_or_insert_with(Instant::now);
    }

    pub(crate) fn time_since_alarm(&self) -> Option<Duration> {
        lock(&self.alarm_at).map(|since| since.elapsed())
    }

    pub(crate) fn cause(&self) -> Option<Cause> {
        lock(&self.cause).clone()
    }

    pub(crate) fn error(&self) -> Option<PipelineError> {
        match self.cause() {
            Some(Cause::Failed(error)) => Some(error),
            Some(Cause::ConsumerGone) | None => None,
        }
    }
}
