//! The consumer's end of a run.
//!
//! In: the items of the last queue. Out: the same items in order, on the consumer's own thread,
//! which is measured here: busy between two calls of [`Feed::next`], starved inside. The
//! consumer may also see where items were skipped: [`Feed::next_delivery`]. An item's slot and bytes
//! are free again at the next call. Dropping the feed stops the run and joins its threads. Next:
//! [`crate::control`], for other threads.

use crate::budget::Charge;
use crate::control::{Control, StageTotals};
use crate::error::PipelineError;
use crate::intervals::Interval;
use crate::meter::{Activity, Reading};
use crate::payload::Payload;
use crate::queue::{Queue, QueueSlot, Taken};
use crate::run::Threads;
use crate::slow::Slowdowns;
use crate::stop::Cause;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_telemetry::event::{StartReason, Started};
use tandem_units::Ticket;

/// Takes items from a running route.
pub struct Feed<T: Payload> {
    queue: Arc<Queue<T>>,
    current: Option<(QueueSlot, Option<Charge>)>,
    waited: Duration,
    work: Vec<Interval>,
    // The last delivery was an item: the next wait is a new one.
    delivered: bool,
    over: bool,
    control: Control,
    threads: Threads,
    grace: Duration,
    slow: Slowdowns,
}

/// What the consumer receives, in the order of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery<T> {
    Item(T),
    /// A stage skipped the item with this ticket, so that nothing follows for it.
    Skipped(Option<Ticket>),
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub how: Ending,
    /// Names of the threads that did not return from their stage.
    pub left_behind: Vec<String>,
    pub stages: Vec<StageTotals>,
    pub consumer: Reading,
    /// The final numbers of workers and slots, as command-line flags.
    pub flags: Vec<String>,
}

/// What ended a run.
#[derive(Clone, Debug)]
pub enum Ending {
    /// Every item was delivered.
    EndOfData,
    /// The consumer stopped before the end of the data.
    ConsumerLeft,
    Failed(PipelineError),
}

impl<T: Payload> Feed<T> {
    pub(crate) fn new(
        queue: Arc<Queue<T>>,
        control: Control,
        threads: Threads,
        grace: Duration,
        slow: Slowdowns,
    ) -> Feed<T> {
        let (current, waited, delivered, over) = (None, Duration::ZERO, false, false);
        let work = Vec::new();
        Feed { queue, current, waited, work, delivered, over, control, threads, grace, slow }
    }

    /// Frees the last item's slot and waits for the next item; `None` at the end of the data.
    /// Skipped items are passed over. A run that was stopped returns its cause.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot end with a cause")]
    pub fn next(&mut self) -> Result<Option<T>, PipelineError> {
        loop {
            match self.next_delivery()? {
                Some(Delivery::Item(item)) => return Ok(Some(item)),
                Some(Delivery::Skipped(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// As [`Feed::next`], but a skipped item is reported in its turn: a consumer that counts
    /// steps, or that a stage waits for, learns of the gap without a later item having to arrive.
    pub fn next_delivery(&mut self) -> Result<Option<Delivery<T>>, PipelineError> {
        self.release();
        if std::mem::take(&mut self.delivered) {
            self.waited = Duration::ZERO;
        }
        let meter = Arc::clone(&self.control.0.consumer_meter);
        let mut from = None;
        let starved = &mut || {
            from.get_or_insert_with(Instant::now);
            meter.enter(Activity::Starved);
        };
        let taken = self.queue.take_and_keep(starved);
        self.waited += from.map_or(Duration::ZERO, |from| from.elapsed());
        match taken {
            Ok(Taken::Item(_, entry)) => {
                // What the consumer does after a marker is work too, but no item.
                meter.begin(entry.ticket);
                self.work = self.control.0.intervals.take(entry.ticket);
                self.current = Some((entry.slot, entry.charge));
                let Some(body) = entry.body else {
                    self.release();
                    return Ok(Some(Delivery::Skipped(entry.ticket)));
                };
                meter.count();
                self.delivered = true;
                self.slow.wait(self.control.0.consumer);
                Ok(Some(Delivery::Item(body)))
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

    /// Waits at most this long for the next delivery; whether [`Feed::next_delivery`] would return at
    /// once. For a consumer that must do something else from time to time, such as look for signals.
    pub fn wait_next(&mut self, at_most: Duration) -> bool {
        self.release();
        if std::mem::take(&mut self.delivered) {
            self.waited = Duration::ZERO;
        }
        let meter = Arc::clone(&self.control.0.consumer_meter);
        let mut from = None;
        let arrived = self.queue.await_next(Instant::now() + at_most, &mut || {
            from.get_or_insert_with(Instant::now);
            meter.enter(Activity::Starved);
        });
        self.waited += from.map_or(Duration::ZERO, |from| from.elapsed());
        arrived
    }

    /// How long the consumer waited for the last item, waits for markers before it included.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// How long each stage worked on the last item.
    pub fn work(&self) -> &[Interval] {
        &self.work
    }

    /// Frees the last item's slot before the next item is needed.
    pub fn release(&mut self) {
        if let Some((slot, charge)) = self.current.take() {
            drop(charge);
            self.queue.release(slot);
        }
    }

    /// Waits until this many slots (or all, if there are fewer) are ready, for at most `at_most`. The
    /// result is recorded.
    pub fn wait_ready(&mut self, slots: usize, at_most: Duration) -> Started {
        let began = Instant::now();
        let found = self.queue.await_ready(slots, began + at_most);
        let (ready, why) = found.unwrap_or((0, StartReason::Stopped));
        let (waited, limit) = (began.elapsed().into(), at_most.into());
        let started = Started { waited, limit, ready: ready as u32, why };
        self.control.0.recorder.send(started.clone());
        started
    }

    /// A handle for other threads.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Stops the run if it has not ended, joins its threads, and returns how it ended.
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

    /// The consumer takes no more items. Stages that are ended from outside after this skip nothing: their
    /// items are not wanted any more.
    pub fn stop(&self) {
        if !self.over {
            self.control.0.stop.stop(Cause::ConsumerGone);
        }
    }

    fn end(&mut self) -> Vec<String> {
        self.release();
        self.control.0.consumer_meter.enter(Activity::Parked);
        self.stop();
        self.threads.join(&self.control.0.stop, self.grace)
    }
}

impl<T: Payload> Drop for Feed<T> {
    fn drop(&mut self) {
        self.end();
    }
}
