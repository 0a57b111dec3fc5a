//! What a worker's thread does: take a place, take an item, step, pass on; until the data ends.
//!
//! In: a stage, the queue before it and the queue after it. Out: results in the second queue,
//! in the order of the first. A panic of the stage is caught here and named. A worker ends when
//! its input ends or the run is stopped, and holds nothing after that. Next: [`crate::route`].

use crate::budget::{Charge, Stopped};
use crate::error::PipelineError;
use crate::gate::{Gate, Pass};
use crate::link::{AnyLink, Link, Parcel, Place, Taken};
use crate::meter::{Activity, Meter};
use crate::payload::Payload;
use crate::slow::Slowdowns;
use crate::stage::{Outlet, Stage, Trouble};
use crate::stop::{Cause, Stop};
use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
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
}

/// One of a stage's workers.
pub(crate) struct Worker<S: Stage> {
    pub(crate) index: usize,
    /// `None` until the worker is wanted for the first time.
    pub(crate) stage: Option<S>,
    pub(crate) make: Arc<dyn Fn() -> S + Send + Sync>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) input: Arc<Link<S::In>>,
    pub(crate) output: Arc<Link<S::Out>>,
    pub(crate) place: Option<Place>,
}

impl<S: Stage> Worker<S> {
    pub(crate) fn run(mut self, context: Context) {
        let end = self.work(&context).and_then(|inputs| self.finish(inputs, &context));
        self.give_back();
        context.meter.enter(Activity::Parked);
        leave(&self.output, end);
    }

    /// Works until the input ends; gives the number of items there were.
    fn work(&mut self, context: &Context) -> Result<u64, Stopped> {
        loop {
            match self.pass_gate(context)? {
                Pass::Work => {
                    let blocked = &mut || context.meter.enter(Activity::Blocked);
                    self.output.reserve(&mut self.place, blocked)?;
                }
                // Somebody saw the end already: no place is needed to see it again.
                Pass::Ended => {}
            }
            let starved = &mut || context.meter.enter(Activity::Starved);
            match self.input.take(starved)? {
                Taken::Item(number, parcel) => self.step(number, parcel, context)?,
                Taken::End(inputs) => {
                    self.gate.end();
                    return Ok(inputs);
                }
            }
        }
    }

    fn pass_gate(&mut self, context: &Context) -> Result<Pass, Stopped> {
        let Worker { gate, output, place, .. } = self;
        let pass = gate.pass(self.index, || {
            place.take().into_iter().for_each(|place| output.release(place));
            context.meter.enter(Activity::Parked);
        })?;
        if pass == Pass::Work && self.stage.is_none() {
            // Made on the worker's own thread, where its device stream will live.
            // Counted as work: a stage that takes long to make is not a stalled run.
            context.meter.begin(None);
            let made = catch_unwind(AssertUnwindSafe(|| (self.make)()));
            self.stage = Some(made.map_err(|panic| context.panicked(None, panic))?);
        }
        Ok(pass)
    }

    fn step(&mut self, input: u64, item: Parcel<S::In>, context: &Context) -> Result<(), Stopped> {
        let Some(body) = item.body else {
            return self.pass_marker(input, item.ticket, context);
        };
        let Some(stage) = &mut self.stage else { return Err(Stopped) };
        let (ticket, mut source) = (item.ticket, item.charge);
        context.meter.begin(ticket);
        context.slow.wait(context.stage);
        let (place, meter, slow) = (&mut self.place, &*context.meter, &context.slow);
        let (link, pushed) = (&*self.output, false);
        let mut out = Out { link, input, place, source: &mut source, meter, slow, pushed };
        let outcome = catch_unwind(AssertUnwindSafe(|| stage.step(body, &mut out)));
        let pushed = out.pushed;
        let done = context.judge(ticket, outcome)?;
        drop(source);
        context.meter.count();
        if done == Done::Skipped && !pushed {
            return self.pass_marker(input, ticket, context);
        }
        self.output.complete(input);
        Ok(())
    }

    /// Tells the next stage that this input was skipped, here or before. The stage never sees it.
    fn pass_marker(
        &mut self,
        input: u64,
        ticket: Option<Ticket>,
        context: &Context,
    ) -> Result<(), Stopped> {
        let blocked = &mut || context.meter.enter(Activity::Blocked);
        self.output.push_marker(input, ticket, &mut self.place, blocked)?;
        context.meter.count_move();
        self.output.complete(input);
        Ok(())
    }

    /// Lets the stage pass on its rest, after all items and in the order of the workers.
    fn finish(&mut self, inputs: u64, context: &Context) -> Result<(), Stopped> {
        let number = inputs + self.index as u64;
        // A worker that waits for its turn must not hold a place which an earlier one needs.
        self.give_back();
        if let Some(stage) = &mut self.stage {
            self.output.await_turn(number, &mut || context.meter.enter(Activity::Blocked))?;
            context.meter.begin(None);
            let (place, meter, slow) = (&mut self.place, &*context.meter, &context.slow);
            let (link, source, pushed) = (&*self.output, &mut None, false);
            let mut out = Out { link, input: number, place, source, meter, slow, pushed };
            let outcome = catch_unwind(AssertUnwindSafe(|| stage.finish(&mut out)));
            context.judge(None, outcome)?;
        }
        self.output.complete(number);
        Ok(())
    }

    fn give_back(&mut self) {
        if let Some(place) = self.place.take() {
            self.output.release(place);
        }
    }
}

/// A stop reaches the queues one after the other. A worker that left because of it must not look
/// like one that had nothing more to do, or the next stage would take the stop for the end of
/// the data.
fn leave<T: Payload>(output: &Link<T>, end: Result<(), Stopped>) {
    match end {
        Ok(()) => output.retire(),
        Err(Stopped) => output.stop(),
    }
}

/// The outlet of one step.
struct Out<'a, T> {
    link: &'a Link<T>,
    input: u64,
    place: &'a mut Option<Place>,
    source: &'a mut Option<Charge>,
    meter: &'a Meter,
    slow: &'a Slowdowns,
    pushed: bool,
}

impl<T: Payload> Outlet<T> for Out<'_, T> {
    fn push(&mut self, item: T) -> Result<(), Trouble> {
        self.pushed = true;
        let mut waited = false;
        let blocked = &mut || {
            waited = true;
            self.meter.enter(Activity::Blocked);
        };
        let pushed = self.link.push(self.input, item, self.place, self.source, blocked);
        self.meter.count_move();
        if waited {
            self.meter.enter(Activity::Busy);
        }
        pushed.map_err(Trouble::stop)
    }

    fn part(&mut self, name: &'static str) {
        self.meter.begin_part(name);
        self.slow.wait(name);
    }

    fn item(&mut self, what: &dyn Display) {
        self.meter.name_item(what.to_string());
    }

    fn waiting(&mut self, what: &dyn Display) {
        self.meter.wait_for(what.to_string());
    }

    fn working(&mut self) {
        self.meter.enter(Activity::Busy);
    }
}

/// The source of a route: an iterator with a thread of its own.
pub(crate) struct Source<I: Iterator> {
    pub(crate) items: I,
    pub(crate) output: Arc<Link<I::Item>>,
}

impl<I: Iterator<Item: Payload>> Source<I> {
    pub(crate) fn run(mut self, context: Context) {
        let end = self.work(&context);
        context.meter.enter(Activity::Parked);
        leave(&self.output, end);
    }

    fn work(&mut self, context: &Context) -> Result<(), Stopped> {
        let mut place = None;
        let blocked = &mut || context.meter.enter(Activity::Blocked);
        loop {
            self.output.reserve_in_turn(0, &mut place, blocked)?;
            if context.stop.is_draining() {
                break;
            }
            context.meter.begin(None);
            let next = catch_unwind(AssertUnwindSafe(|| self.items.next()));
            match next.map_err(|panic| context.panicked(None, panic))? {
                // All items of a source belong to one input that never completes.
                Some(item) => self.output.push(0, item, &mut place, &mut None, blocked)?,
                None => break,
            }
            context.meter.count();
        }
        place.into_iter().for_each(|place| self.output.release(place));
        Ok(())
    }
}

type Outcome = Result<Result<(), Trouble>, Box<dyn Any + Send>>;

/// How a step ended that did not end the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Done {
    Finished,
    Skipped,
}

impl Context {
    fn judge(&self, ticket: Option<Ticket>, outcome: Outcome) -> Result<Done, Stopped> {
        match outcome {
            Ok(Ok(())) => Ok(Done::Finished),
            Ok(Err(Trouble::SkipItem(why))) => {
                self.meter.count_skipped();
                let (stage, why) = (self.stage.into(), chain(&*why));
                self.recorder.send(Skipped { ticket, id: None, stage, why });
                Ok(Done::Skipped)
            }
            Ok(Err(Trouble::StopRun(source))) => {
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
        self.stop.stop(Cause::Failed(PipelineError::Panic { stage: self.stage, ticket, message }));
        Stopped
    }
}

/// An error with its causes in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
