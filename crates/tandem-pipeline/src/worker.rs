//! The loop of a worker's thread: reserve a slot, take an item, run the step, until the data ends.
//!
//! In: a stage, its input queue and its output queue. Out: results in the output queue, in the
//! order of the input. The marker of a skipped item passes without a step. A panic of the stage is
//! caught here and reported with the stage's name. A worker ends when its input ends or the run is
//! stopped; it then has no slot and no bytes. Next: [`crate::route`].

use crate::budget::{Charge, Stopped};
use crate::error::PipelineError;
use crate::intervals::Intervals;
use crate::meter::{Activity, Meter};
use crate::payload::Payload;
use crate::permits::{Pass, Permits};
use crate::queue::{AnyQueue, Queue, QueueEntry, QueueSlot, Taken};
use crate::slow::Slowdowns;
use crate::stage::{Emitter, Stage, StageError};
use crate::stop::{Cause, Stop};
use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::Skipped;
use tandem_units::Ticket;

/// What the runner adds to a stage.
pub(crate) struct Context {
    pub(crate) stage: &'static str,
    pub(crate) meter: Arc<Meter>,
    pub(crate) stop: Arc<Stop>,
    pub(crate) recorder: Recorder,
    pub(crate) slow: Slowdowns,
    pub(crate) intervals: Intervals,
}

/// One of a stage's workers.
pub(crate) struct Worker<S: Stage> {
    pub(crate) index: usize,
    /// `None` until the worker is needed for the first time.
    pub(crate) stage: Option<S>,
    pub(crate) make: Arc<dyn Fn() -> S + Send + Sync>,
    pub(crate) permits: Arc<Permits>,
    pub(crate) input: Arc<Queue<S::In>>,
    pub(crate) output: Arc<Queue<S::Out>>,
    pub(crate) slot: Option<QueueSlot>,
}

impl<S: Stage> Worker<S> {
    pub(crate) fn run(mut self, context: Context) {
        let end = self.work(&context).and_then(|inputs| self.finish(inputs, &context));
        self.release_slot();
        context.meter.enter(Activity::Parked);
        leave(&self.output, end);
    }

    /// Works until the input ends; returns the number of inputs there were.
    fn work(&mut self, context: &Context) -> Result<u64, Stopped> {
        loop {
            match self.pass_gate(context)? {
                Pass::Work => {
                    let blocked = &mut || context.meter.enter(Activity::Blocked);
                    self.output.reserve(&mut self.slot, blocked)?;
                }
                // Another worker saw the end of the input: no slot is needed to see it again.
                Pass::Ended => {}
            }
            let starved = &mut || context.meter.enter(Activity::Starved);
            match self.input.take(starved)? {
                Taken::Item(number, entry) => self.step(number, entry, context)?,
                Taken::End(inputs) => {
                    self.permits.end();
                    return Ok(inputs);
                }
            }
        }
    }

    fn pass_gate(&mut self, context: &Context) -> Result<Pass, Stopped> {
        let Worker { permits, output, slot, .. } = self;
        let pass = permits.pass(self.index, || {
            slot.take().into_iter().for_each(|slot| output.release(slot));
            context.meter.enter(Activity::Parked);
        })?;
        if pass == Pass::Work && self.stage.is_none() {
            // On the worker's own thread, because a device stream belongs to a thread.
            // Counted as work: a stage that takes long to construct is not a stalled run.
            context.meter.begin(None);
            let made = catch_unwind(AssertUnwindSafe(|| (self.make)()));
            self.stage = Some(made.map_err(|panic| context.panicked(None, panic))?);
        }
        Ok(pass)
    }

    fn step(
        &mut self,
        input: u64,
        item: QueueEntry<S::In>,
        context: &Context,
    ) -> Result<(), Stopped> {
        let Some(body) = item.body else {
            return self.pass_marker(input, item.ticket, context);
        };
        let Some(stage) = &mut self.stage else { return Err(Stopped) };
        let (ticket, mut source) = (item.ticket, item.charge);
        context.meter.begin(ticket);
        context.slow.wait(context.stage);
        let (queue, slot, pushed) = (&*self.output, &mut self.slot, false);
        let mut out = StepEmitter { queue, input, slot, source: &mut source, context, pushed };
        let outcome = catch_unwind(AssertUnwindSafe(|| stage.step(body, &mut out)));
        let pushed = out.pushed;
        let done = context.conclude(ticket, outcome)?;
        drop(source);
        context.meter.count();
        if done == Done::Skipped && !pushed {
            return self.pass_marker(input, ticket, context);
        }
        self.output.complete(input);
        Ok(())
    }

    /// Passes on that this input was skipped, by this stage or an earlier one.
    fn pass_marker(
        &mut self,
        input: u64,
        ticket: Option<Ticket>,
        context: &Context,
    ) -> Result<(), Stopped> {
        let blocked = &mut || context.meter.enter(Activity::Blocked);
        self.output.push_marker(input, ticket, &mut self.slot, blocked)?;
        context.meter.count_move();
        self.output.complete(input);
        Ok(())
    }

    /// Lets the stage push what it still has, after all items and in the order of the workers.
    fn finish(&mut self, inputs: u64, context: &Context) -> Result<(), Stopped> {
        let number = inputs + self.index as u64;
        // A worker that waits for its turn must not reserve a slot that an earlier one needs.
        self.release_slot();
        if let Some(stage) = &mut self.stage {
            self.output.await_turn(number, &mut || context.meter.enter(Activity::Blocked))?;
            context.meter.begin(None);
            let (queue, slot, pushed) = (&*self.output, &mut self.slot, false);
            let source = &mut None;
            let mut out = StepEmitter { queue, input: number, slot, source, context, pushed };
            let outcome = catch_unwind(AssertUnwindSafe(|| stage.finish(&mut out)));
            context.conclude(None, outcome)?;
        }
        self.output.complete(number);
        Ok(())
    }

    fn release_slot(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.output.release(slot);
        }
    }
}

/// A stop reaches the queues one after the other. A worker that ends because of it must not look
/// like one whose input ended: the next stage would mistake the stop for the end of the data.
fn leave<T: Payload>(output: &Queue<T>, end: Result<(), Stopped>) {
    match end {
        Ok(()) => output.retire(),
        Err(Stopped) => output.stop(),
    }
}

/// The emitter of one step.
struct StepEmitter<'a, T> {
    queue: &'a Queue<T>,
    input: u64,
    slot: &'a mut Option<QueueSlot>,
    source: &'a mut Option<Charge>,
    context: &'a Context,
    pushed: bool,
}

impl<T: Payload> Emitter<T> for StepEmitter<'_, T> {
    fn push(&mut self, item: T) -> Result<(), StageError> {
        self.pushed = true;
        // Before the consumer can take the item.
        let context = self.context;
        context.intervals.add(item.ticket(), context.meter.take_laps(context.stage));
        let mut waited = false;
        let blocked = &mut || {
            waited = true;
            self.context.meter.enter(Activity::Blocked);
        };
        let pushed = self.queue.push(self.input, item, self.slot, self.source, blocked);
        self.context.meter.count_move();
        if waited {
            self.context.meter.enter(Activity::Busy);
        }
        pushed.map_err(StageError::stop)
    }

    fn part(&mut self, name: &'static str, done: Duration) {
        self.context.meter.begin_part(name, done);
        self.context.slow.wait(name);
    }

    fn item(&mut self, what: &dyn Display) {
        self.context.meter.name_item(what.to_string());
    }

    fn waiting(&mut self, what: &dyn Display) {
        self.context.meter.wait_for(what.to_string());
    }

    fn working(&mut self) {
        self.context.meter.enter(Activity::Busy);
    }
}

/// The source of a route: an iterator on its own thread.
pub(crate) struct Source<I: Iterator> {
    pub(crate) items: I,
    pub(crate) output: Arc<Queue<I::Item>>,
}

impl<I: Iterator<Item: Payload>> Source<I> {
    pub(crate) fn run(mut self, context: Context) {
        let end = self.work(&context);
        context.meter.enter(Activity::Parked);
        leave(&self.output, end);
    }

    fn work(&mut self, context: &Context) -> Result<(), Stopped> {
        let mut slot = None;
        let blocked = &mut || context.meter.enter(Activity::Blocked);
        loop {
            self.output.reserve_in_turn(0, &mut slot, blocked)?;
            if context.stop.is_draining() {
                break;
            }
            context.meter.begin(None);
            let next = catch_unwind(AssertUnwindSafe(|| self.items.next()));
            match next.map_err(|panic| context.panicked(None, panic))? {
                // All items of a source are results of one input, which never completes.
                Some(item) => self.output.push(0, item, &mut slot, &mut None, blocked)?,
                None => break,
            }
            context.meter.count();
        }
        slot.into_iter().for_each(|slot| self.output.release(slot));
        Ok(())
    }
}

type Outcome = Result<Result<(), StageError>, Box<dyn Any + Send>>;

/// How a step ended that did not end the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Done {
    Finished,
    Skipped,
}

impl Context {
    fn conclude(&self, ticket: Option<Ticket>, outcome: Outcome) -> Result<Done, Stopped> {
        match outcome {
            Ok(Ok(())) => Ok(Done::Finished),
            Ok(Err(StageError::Skip(_))) if self.stop.cause().is_some() => Err(Stopped),
            Ok(Err(StageError::Skip(why))) => {
                self.meter.count_skipped();
                let (stage, why) = (self.stage.into(), chain(&*why));
                self.recorder.send(Skipped { ticket, id: None, stage, why });
                Ok(Done::Skipped)
            }
            Ok(Err(StageError::Stop(source))) => {
                let (stage, source) = (self.stage, Arc::from(source));
                self.stop.stop(Cause::Failed(PipelineError::Stage { stage, ticket, source }));
                Err(Stopped)
            }
            Err(panic) => Err(self.panicked(ticket, panic)),
        }
    }

    fn panicked(&self, ticket: Option<Ticket>, panic: Box<dyn Any + Send>) -> Stopped {
        let known = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
        let message = known
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "it gave no reason".to_string());
        let (stage, item) = (self.stage, self.meter.item());
        self.stop.stop(Cause::Failed(PipelineError::Panic { stage, ticket, item, message }));
        Stopped
    }
}

/// An error with its causes in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
