//! How a run is stopped: once, for the first cause, with nobody left waiting.
//!
//! In: a cause, from a stage, the watchdog, the user or the consumer. Out: every queue and gate
//! of the run sends its waiters away. Stopping is idempotent and never waits for a stage.

use crate::error::PipelineError;
use crate::gate::Gate;
use crate::link::AnyLink;
use crate::sync::{Mutex, lock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Lets any thread stop a run, such as the one that hears Ctrl-C.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Cancel>);

#[derive(Default)]
struct Cancel {
    cancelled: AtomicBool,
    runs: Mutex<Vec<Weak<Stop>>>,
}

impl CancelToken {
    /// A token nobody has used.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Stops every run that was given this token, now or later.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        let runs: Vec<_> = lock(&self.0.runs).iter().filter_map(Weak::upgrade).collect();
        runs.iter().for_each(|run| run.stop(Cause::Failed(PipelineError::Cancelled)));
    }

    /// Whether somebody asked to stop.
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

/// Why a run is stopped.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// The consumer wants no more.
    ConsumerGone,
    /// It cannot go on.
    Failed(PipelineError),
}

/// Stops one run.
pub(crate) struct Stop {
    cause: Mutex<Option<Cause>>,
    // The source ends early, the rest of the route runs dry.
    draining: AtomicBool,
    frozen: Mutex<Option<Instant>>,
    links: Vec<Arc<dyn AnyLink>>,
    gates: Vec<Arc<Gate>>,
}

impl Stop {
    pub(crate) fn new(links: Vec<Arc<dyn AnyLink>>, gates: Vec<Arc<Gate>>) -> Stop {
        let (draining, frozen) = (AtomicBool::new(false), Mutex::new(None));
        Stop { cause: Mutex::new(None), draining, frozen, links, gates }
    }

    /// Stops the run; a later cause than the first is not kept.
    pub(crate) fn stop(&self, cause: Cause) {
        lock(&self.cause).get_or_insert(cause);
        self.links.iter().for_each(|link| link.stop());
        self.gates.iter().for_each(|gate| gate.stop());
    }

    /// Takes no more from the source; what was taken is still delivered.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// A worker is stuck: nobody should wait for its thread.
    pub(crate) fn freeze(&self) {
        lock(&self.frozen).get_or_insert_with(Instant::now);
    }

    /// How long ago a worker was found stuck.
    pub(crate) fn frozen_for(&self) -> Option<Duration> {
        lock(&self.frozen).map(|since| since.elapsed())
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
