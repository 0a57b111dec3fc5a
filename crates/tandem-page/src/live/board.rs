//! The newest view of the run: written by the follower, read by all clients.

use crate::follow::{Follower, Found};
use crate::lang::Lang;
use crate::live::DashboardOptions;
use crate::samples::{Samples, Spoken};
use crate::view::RunView;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tandem_telemetry::event::RunOutcome;

/// State shared by the follower and all clients.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) samples: Samples,
    pub(super) lang: Lang,
    pub(super) name: String,
    newest: Mutex<Newest>,
    changed: Condvar,
}

/// The newest view of the run.
#[derive(Clone, Debug)]
pub(super) struct Newest {
    pub(super) view: Arc<RunView>,
    pub(super) spoken: Vec<Spoken>,
    /// Why the record cannot be read at the moment.
    pub(super) trouble: Option<String>,
    version: u64,
    grown: Instant,
    closed: bool,
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its record grows.
    Running,
    /// It has no final event, and no event arrived for a while.
    Quiet,
    Over(RunOutcome),
    /// Its record cannot be read.
    Trouble,
}

/// A run without events for this long is called quiet: devices are sampled every second.
const QUIET: Duration = Duration::from_secs(15);

impl Board {
    pub(super) fn new(view: Arc<RunView>, samples: Samples, options: DashboardOptions) -> Board {
        let spoken = samples.newest();
        let newest = Newest {
            view,
            spoken,
            trouble: None,
            version: 1,
            // A record that does not grow from now on is not running.
            grown: Instant::now(),
            closed: false,
        };
        let DashboardOptions { lang, name, .. } = options;
        Board { samples, lang, name, newest: Mutex::new(newest), changed: Condvar::new() }
    }

    /// Follows the run until the page is closed.
    pub(super) fn follow(&self, mut follower: Follower, every: Duration) {
        loop {
            let polled = follower.poll();
            let spoken = self.samples.newest();
            let mut newest = self.lock();
            let trouble = polled.as_ref().err().map(ToString::to_string);
            let grown = matches!(polled, Ok(Found::More));
            if grown {
                newest.view = follower.view();
                newest.grown = Instant::now();
            }
            if grown || newest.spoken != spoken || newest.trouble != trouble {
                newest.spoken = spoken;
                newest.trouble = trouble;
                newest.version += 1;
                self.changed.notify_all();
            }
            let unchanged = |newest: &mut Newest| !newest.closed;
            let waited = self.changed.wait_timeout_while(newest, every, unchanged);
            if waited.is_ok_and(|(newest, _)| newest.closed) {
                return;
            }
        }
    }

    /// The newest there is.
    pub(super) fn now(&self) -> Newest {
        self.lock().clone()
    }

    /// Waits for something newer than `seen`, no longer than `limit`; none when the page closes.
    pub(super) fn wait(&self, seen: &Newest, limit: Duration) -> Option<Newest> {
        let same = |newest: &mut Newest| newest.version == seen.version && !newest.closed;
        let waited = self.changed.wait_timeout_while(self.lock(), limit, same);
        let (newest, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!newest.closed).then(|| newest.clone())
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, Newest> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Newest {
    /// Present state of the run.
    pub(super) fn state(&self) -> State {
        match &self.view.summary.ending {
            _ if self.trouble.is_some() => State::Trouble,
            Some(ending) => State::Over(ending.outcome),
            None if self.grown.elapsed() > QUIET => State::Quiet,
            None => State::Running,
        }
    }
}
