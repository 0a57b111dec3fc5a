//! Finds the stage that hangs, and says what it was doing.
//!
//! In: what every worker does now, and for how long. Out: the first [`Frozen`] worker: one that
//! has been inside a single step for longer than the limit. Waiting is never frozen: who waits
//! for input, room or a turn is the victim. The run then ends with that name as its error.

use crate::control::Control;
pub use crate::error::Frozen;
use crate::meter::{Activity, Reading};
use std::sync::Arc;
use std::time::Duration;

/// What to do about a frozen worker.
pub type OnFrozen = Arc<dyn Fn(&Frozen) + Send + Sync>;

/// What counts as frozen.
#[derive(Clone)]
pub struct Watch {
    /// The longest a stage may work on one item without passing anything on; `None` watches
    /// no stage.
    pub limit: Option<Duration>,
    /// The longest the consumer may take between two items; `None` does not watch it, since
    /// nobody but the consumer itself can end its thread.
    pub consumer: Option<Duration>,
    /// How long a frozen worker gets to come back before its thread is left behind.
    pub grace: Duration,
    /// Told of a frozen worker after the run was stopped. The only place where a frozen
    /// consumer can be dealt with: close the record, end the program.
    pub on_frozen: Option<OnFrozen>,
}

impl Default for Watch {
    fn default() -> Watch {
        let (limit, grace) = (Some(Duration::from_secs(300)), Duration::from_secs(2));
        Watch { limit, consumer: None, grace, on_frozen: None }
    }
}

impl Watch {
    /// How often to look.
    pub(crate) fn every(&self) -> Option<Duration> {
        let shortest = self.limit.into_iter().chain(self.consumer).min()?;
        Some((shortest / 4).max(Duration::from_millis(1)))
    }

    /// The worker that has been silent for the longest, if that is too long.
    pub(crate) fn look(&self, control: &Control) -> Option<Frozen> {
        let run = &control.0;
        let workers = run.stages.iter().flat_map(|stage| {
            let readings = stage.meters.iter().map(|meter| meter.read()).enumerate();
            readings.map(|(worker, reading)| (stage.name, worker, reading, self.limit))
        });
        let consumer = (run.consumer, 0, control.consumer(), self.consumer);
        workers
            .chain([consumer])
            .filter(|(.., reading, limit)| limit.is_some_and(|limit| is_frozen(reading, limit)))
            .max_by_key(|(.., reading, _)| reading.for_so_long)
            .map(|(stage, worker, reading, _)| Frozen {
                stage,
                worker,
                ticket: reading.ticket,
                for_so_long: reading.for_so_long,
            })
    }
}

fn is_frozen(reading: &Reading, limit: Duration) -> bool {
    reading.doing == Activity::Busy && reading.for_so_long > limit
}
