//! How many workers of a stage are at work; the others wait here.
//!
//! In: a number, which may change at any time. Out: workers below it pass, the others wait until
//! they are wanted, the stage's input ends, or the run is stopped. Order never depends on it.

use crate::budget::Stopped;
use crate::sync::{Condvar, Mutex, lock, wait};

pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    active: usize,
    ended: bool,
    stopped: bool,
}

/// What a worker learns at the gate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// It is wanted.
    Work,
    /// There is no more input for this stage.
    Ended,
}

impl Gate {
    pub(crate) fn new(active: usize) -> Gate {
        let state = State { active, ended: false, stopped: false };
        Gate { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Lets a worker pass or keeps it waiting; `parking` is called before a wait.
    pub(crate) fn pass(&self, worker: usize, mut parking: impl FnMut()) -> Result<Pass, Stopped> {
        let mut state = lock(&self.state);
        loop {
            match *state {
                State { stopped: true, .. } => return Err(Stopped),
                State { ended: true, .. } => return Ok(Pass::Ended),
                State { active, .. } if worker < active => return Ok(Pass::Work),
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

    /// The input is over: nobody need wait any more.
    pub(crate) fn end(&self) {
        lock(&self.state).ended = true;
        self.changed.notify_all();
    }

    /// Sends all away who wait here, now and later.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }
}
