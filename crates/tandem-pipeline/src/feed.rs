//! The consumer's end of a run.
//!
//! In: the items of the last queue. Out: one after the other, in order, on the consumer's own
//! thread, which is measured here: busy between two calls of [`Feed::next`], starved inside. An
//! item's slot and bytes are free again at the next call. Dropping the feed stops the run and
//! joins its threads.

use crate::budget::Charge;
use crate::control::{Control, StageTotals};
use crate::error::PipelineError;
use crate::link::{Link, Place, Taken};
use crate::meter::{Activity, Reading};
use crate::payload::Payload;
use crate::run::Threads;
use crate::slow::Slowdowns;
use crate::stop::Cause;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_telemetry::event::{StartReason, Started};

/// Takes items from a running route.
pub struct Feed<T: Payload> {
    link: Arc<Link<T>>,
    held: Option<(Place, Charge)>,
    waited: Duration,
    over: bool,
    control: Control,
    threads: Threads,
    grace: Duration,
    slow: Slowdowns,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What ended it.
    pub how: Ending,
    /// Threads that are stuck inside a stage and had to be left behind, by name.
    pub left_behind: Vec<String>,
    /// What each stage did.
    pub stages: Vec<StageTotals>,
    /// What the consumer did.
    pub consumer: Reading,
    /// The final number of workers and slots, as flags to type next time.
    pub flags: Vec<String>,
}

/// What ended a run.
#[derive(Clone, Debug)]
pub enum Ending {
    /// Every item was delivered.
    EndOfData,
    /// The consumer wanted no more.
    ConsumerLeft,
    /// It could not go on.
    Failed(PipelineError),
}

impl<T: Payload> Feed<T> {
    pub(crate) fn new(
        link: Arc<Link<T>>,
        control: Control,
        threads: Threads,
        grace: Duration,
        slow: Slowdowns,
    ) -> Feed<T> {
        let (held, waited, over) = (None, Duration::ZERO, false);
        Feed { link, held, waited, over, control, threads, grace, slow }
    }

    /// Gives back the last item's slot and waits for the next item; `None` at the end of the
    /// data. A run that was stopped tells why.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot end with a cause")]
    pub fn next(&mut self) -> Result<Option<T>, PipelineError> {
        self.release();
        let meter = Arc::clone(&self.control.0.consumer_meter);
        let mut from = None;
        let starved = &mut || {
            from.get_or_insert_with(Instant::now);
            meter.enter(Activity::Starved);
        };
        let taken = self.link.take_and_keep(starved);
        self.waited = from.map_or(Duration::ZERO, |from| from.elapsed());
        match taken {
            Ok(Taken::Item(_, parcel)) => {
                meter.begin(parcel.ticket);
                meter.count();
                self.held = Some((parcel.place, parcel.charge));
                self.slow.wait(self.control.0.consumer);
                Ok(Some(parcel.body))
            }
            Ok(Taken::End(_)) => {
                meter.enter(Activity::Parked);
                self.over = true;
                Ok(None)
            }
            Err(_) => {
                meter.enter(Activity::Parked);
                Err(self.control.0.stop.error().unwrap_or(PipelineError::Cancelled))
            }
        }
    }

    /// How long the last [`Feed::next`] had to wait: the stall before that item.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Gives back the last item's slot before the next one is asked for.
    pub fn release(&mut self) {
        if let Some((place, charge)) = self.held.take() {
            drop(charge);
            self.link.release(place);
        }
    }

    /// The controlled start: waits until so many slots are ready, `at_most` so long. More slots
    /// than there are cannot be waited for. What it found goes to the record.
    pub fn wait_ready(&mut self, slots: usize, at_most: Duration) -> Started {
        let began = Instant::now();
        let found = self.link.await_ready(slots, began + at_most);
        let places = self.control.depth();
        let (ready, why) = match found {
            Err(_) => (0, StartReason::Stopped),
            Ok((ready, _)) if ready >= slots.min(places) => (ready, StartReason::EnoughReady),
            Ok((ready, true)) => (ready, StartReason::EndOfData),
            Ok((ready, false)) => (ready, StartReason::DelayOver),
        };
        let (waited, limit) = (began.elapsed().into(), at_most.into());
        let started = Started { waited, limit, ready: ready as u32, why };
        self.control.0.recorder.send(started.clone());
        started
    }

    /// A handle for other threads.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Stops the run if it is not over, joins its threads, and says how it went.
    pub fn close(mut self) -> Ended {
        let left_behind = self.end();
        let run = &self.control.0;
        let how = match run.stop.cause() {
            Some(Cause::Failed(error)) => Ending::Failed(error),
            _ if self.over => Ending::EndOfData,
            _ => Ending::ConsumerLeft,
        };
        let (stages, consumer) = (self.control.stages(), self.control.consumer());
        Ended { how, left_behind, stages, consumer, flags: self.control.flags() }
    }

    fn end(&mut self) -> Vec<String> {
        self.release();
        self.control.0.consumer_meter.enter(Activity::Parked);
        if !self.over {
            self.control.0.stop.stop(Cause::ConsumerGone);
        }
        self.threads.join(&self.control.0.stop, self.grace)
    }
}

impl<T: Payload> Drop for Feed<T> {
    fn drop(&mut self) {
        self.end();
    }
}
