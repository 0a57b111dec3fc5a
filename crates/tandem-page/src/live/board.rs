//! The newest view of the run: written by the follower, read by all clients.

use crate::follow::{Follower, Found};
use crate::live::DashboardOptions;
use crate::samples::{Samples, Spoken};
use crate::view::RunView;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_telemetry::event::RunOutcome;
use tandem_units::Lang;
use tokio::sync::watch;

/// State shared by the follower and all clients.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) samples: Samples,
    pub(super) lang: Lang,
    pub(super) name: String,
    newest: watch::Sender<Newest>,
    closed: Mutex<bool>,
    closing: Condvar,
}

/// The newest view of the run.
#[derive(Clone, Debug)]
pub(super) struct Newest {
    pub(super) view: Arc<RunView>,
    pub(super) spoken: Vec<Spoken>,
    /// Why the record cannot be read at the moment.
    pub(super) fault: Option<String>,
    grown: Instant,
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
    StageError,
}

/// A run without events for this long is called quiet: devices are sampled every second.
const QUIET: Duration = Duration::from_secs(15);

impl Board {
    pub(super) fn new(view: Arc<RunView>, samples: Samples, options: DashboardOptions) -> Board {
        let spoken = samples.newest();
        let newest = Newest {
            view,
            spoken,
            fault: None,
            // A record that does not grow from now on is not running.
            grown: Instant::now(),
        };
        let DashboardOptions { lang, name, .. } = options;
        let newest = watch::Sender::new(newest);
        Board { samples, lang, name, newest, closed: Mutex::default(), closing: Condvar::new() }
    }

    /// Follows the run until the page is closed.
    pub(super) fn follow(&self, mut follower: Follower, every: Duration) {
        loop {
            let polled = follower.poll();
            let spoken = self.samples.newest();
            let fault = polled.as_ref().err().map(ToString::to_string);
            let grown = matches!(polled, Ok(Found::More));
            self.newest.send_if_modified(|newest| {
                if grown {
                    newest.view = follower.view();
                    newest.grown = Instant::now();
                }
                let changed = grown || newest.spoken != spoken || newest.fault != fault;
                newest.spoken = spoken;
                newest.fault = fault;
                changed
            });
            let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.closing.wait_timeout_while(closed, every, |closed| !*closed);
            if waited.is_ok_and(|(closed, _)| *closed) {
                return;
            }
        }
    }

    /// The newest there is.
    pub(super) fn now(&self) -> Newest {
        self.newest.borrow().clone()
    }

    /// The newest and all that follow.
    pub(super) fn subscribe(&self) -> watch::Receiver<Newest> {
        self.newest.subscribe()
    }

    /// Ends [`Board::follow`].
    pub(super) fn close(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.closing.notify_all();
    }
}

impl Newest {
    /// Present state of the run.
    pub(super) fn state(&self) -> State {
        match &self.view.summary.ending {
            _ if self.fault.is_some() => State::StageError,
            Some(ending) => State::Over(ending.outcome),
            None if self.grown.elapsed() > QUIET => State::Quiet,
            None => State::Running,
        }
    }
}
