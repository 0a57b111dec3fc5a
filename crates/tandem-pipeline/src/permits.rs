//! Limits how many workers of a stage are active; the others wait here.
//!
//! In: the number of active workers, which may change at any time. Out: workers with a lower index
//! pass; the others wait until they are needed, the stage's input ends, or the run is stopped. The
//! order of items never depends on it. Next: [`crate::worker`].

use crate::budget::Stopped;
use crate::sync::{Condvar, Mutex, lock, wait};

pub(crate) struct Permits {
    state: Mutex<PermitState>,
    changed: Condvar,
}

struct PermitState {
    active: usize,
    ended: bool,
    stopped: bool,
}

/// Why a worker may work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Work,
    /// The stage has no more input.
    Ended,
}

impl Permits {
    pub(crate) fn new(active: usize) -> Permits {
        let state = PermitState { active, ended: false, stopped: false };
        Permits { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits until the worker may pass; `parking` is called before each wait.
    pub(crate) fn pass(&self, worker: usize, mut parking: impl FnMut()) -> Result<Pass, Stopped> {
        let mut state = lock(&self.state);
        loop {
            match *state {
                PermitState { stopped: true, .. } => return Err(Stopped),
                PermitState { ended: true, .. } => return Ok(Pass::Ended),
                PermitState { active, .. } if worker < active => return Ok(Pass::Work),
                _ => {
                    parking();
                    state = wait(&self.changed, state);
                }
            }
        }
    }

    pub(crate) fn active(&self) -> usize {
        lock(&self.state).active
    }

    pub(crate) fn set_active(&self, workers: usize) {
        lock(&self.state).active = workers;
        self.changed.notify_all();
    }

    /// The input has ended: all workers pass.
    pub(crate) fn end(&self) {
        lock(&self.state).ended = true;
        self.changed.notify_all();
    }

    /// Ends every wait here, now and later.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }
}
