//! The monitor thread of a run: records samples, runs the watchdog, applies the controller.
//!
//! In: the meters and queues, which it reads without blocking a worker. Out: stage and queue events
//! at an interval, a stop if the watchdog finds a stall, and changes to workers and slots. One
//! thread does all three, because each is a short periodic task. Next: [`crate::watchdog`].

use crate::adapt::{Action, Change, Controller, Limits, Measurement, Parameter, StageMeasure};
use crate::control::{Control, StageTotals};
use crate::error::PipelineError;
use crate::meter::Reading;
use crate::queue::Level;
use crate::run::{PipelineRun, Quit};
use crate::stop::Cause;
use crate::watchdog::{Alarm, Watch, Watchdog};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_telemetry::event::{Decision, DecisionOutcome, QueueLevel, StageInterval, Warning};

pub(crate) struct Monitor {
    control: Control,
    watch: Watch,
    sampled: Snapshot,
    sample_every: Duration,
    adapting: Option<Adapting>,
}

struct Adapting {
    controller: Controller,
    every: Duration,
    least_items: u64,
    since: Snapshot,
}

/// All totals of a run at one moment.
struct Snapshot {
    at: Instant,
    stages: Vec<StageTotals>,
    consumer: Reading,
}

impl Monitor {
    pub(crate) fn new(
        run: Arc<PipelineRun>,
        watch: &Watch,
        sample_every: Duration,
        adapt: Option<Limits>,
    ) -> Monitor {
        let control = Control(run);
        let sampled = Snapshot::of(&control);
        let adapting = adapt.map(|limits| Adapting {
            every: limits.interval,
            least_items: limits.least_items,
            controller: Controller::new(limits),
            since: Snapshot::of(&control),
        });
        Monitor { control, watch: watch.clone(), sampled, sample_every, adapting }
    }

    pub(crate) fn run(mut self, quit: &Quit) {
        let adapt_every = self.adapting.as_ref().map(|adapting| adapting.every);
        let every = [Some(self.sample_every), self.watch.tick(), adapt_every];
        let tick = every.into_iter().flatten().min().unwrap_or(self.sample_every);
        // `None` after an alarm: one is enough, since it ends the run.
        let mut watchdog = self.watch.tick().map(|_| Watchdog::new(self.watch.clone(), tick));
        let mut checked = Instant::now();
        while !quit.wait(tick) {
            let gap = std::mem::replace(&mut checked, Instant::now()).elapsed();
            let alarm = watchdog.as_mut().and_then(|dog| dog.check(&self.control, gap));
            if let Some(alarm) = alarm {
                watchdog = None;
                self.stop_for(alarm);
            }
            if self.sampled.at.elapsed() >= self.sample_every {
                self.sample();
            }
            self.adapt();
        }
        self.sample();
    }

    fn stop_for(&self, alarm: Alarm) {
        let (code, error) = match &alarm {
            Alarm::Frozen(frozen) => ("frozen", PipelineError::Frozen(frozen.clone())),
            Alarm::Stalled(stalled) => ("stalled", PipelineError::Stalled(stalled.clone())),
        };
        let run = &self.control.0;
        run.recorder.send(Warning { code: code.into(), text: error.to_string() });
        // Before the stop: a thread that does not return must not be waited for.
        run.stop.set_alarm();
        run.stop.stop(Cause::Failed(error));
        if let (Alarm::Frozen(frozen), Some(on_frozen)) = (&alarm, &self.watch.on_frozen) {
            on_frozen(frozen);
        }
    }

    fn sample(&mut self) {
        let now = Snapshot::of(&self.control);
        let (recorder, over) = (&self.control.0.recorder, now.at - self.sampled.at);
        let next = self.control.0.stages.iter().skip(1).map(|stage| stage.name);
        let feeds = next.chain([self.control.0.consumer]);
        for ((new, old), feeds) in now.stages.iter().zip(&self.sampled.stages).zip(feeds) {
            recorder.send(StageInterval {
                stage: new.name.into(),
                workers: new.workers as u32,
                interval: over.into(),
                busy: new.busy.saturating_sub(old.busy).into(),
                starved: new.starved.saturating_sub(old.starved).into(),
                blocked: new.blocked.saturating_sub(old.blocked).into(),
                items: new.items - old.items,
            });
            recorder.send(queue_level(feeds, new.queue));
        }
        let (new, old) = (&now.consumer, &self.sampled.consumer);
        recorder.send(StageInterval {
            stage: self.control.0.consumer.into(),
            workers: 1,
            interval: over.into(),
            busy: new.busy.saturating_sub(old.busy).into(),
            starved: new.starved.saturating_sub(old.starved).into(),
            blocked: Duration::ZERO.into(),
            items: new.items - old.items,
        });
        self.sampled = now;
    }

    fn adapt(&mut self) {
        let Some(adapting) = &mut self.adapting else { return };
        let now = Snapshot::of(&self.control);
        let items = now.consumer.items - adapting.since.consumer.items;
        // With a slow consumer the interval is longer: few items would make a noisy throughput.
        if now.at - adapting.since.at < adapting.every || items < adapting.least_items {
            return;
        }
        let measured = measure(&adapting.since, &now);
        let action = adapting.controller.decide(&measured);
        adapting.since = now;
        self.apply(action);
    }

    fn apply(&self, action: Action) {
        match action {
            Action::Nothing => {}
            Action::Try { change, before, why } => {
                self.set(change, change.to);
                self.record(change, (before, None), DecisionOutcome::Trying, why);
            }
            Action::Keep { change, before, after } => {
                let why = effect(before, after);
                self.record(change, (before, Some(after)), DecisionOutcome::Kept, why);
            }
            Action::Revert { change, before, after } => {
                self.set(change, change.from);
                let why = effect(before, after);
                self.record(change, (before, Some(after)), DecisionOutcome::Reverted, why);
            }
        }
    }

    fn set(&self, change: Change, value: usize) {
        match change.parameter {
            Parameter::Depth => self.control.set_depth(value),
            Parameter::Workers(stage) => {
                self.control.set_workers(self.control.0.stages[stage].name, value);
            }
        }
    }

    fn record(
        &self,
        change: Change,
        (before, after): (f64, Option<f64>),
        outcome: DecisionOutcome,
        why: String,
    ) {
        let (what, stage) = match change.parameter {
            Parameter::Depth => ("depth", None),
            Parameter::Workers(stage) => {
                ("workers", Some(self.control.0.stages[stage].name.into()))
            }
        };
        let (from, to) = (change.from as u64, change.to as u64);
        let what = what.into();
        self.control.0.recorder.send(Decision {
            what,
            stage,
            from,
            to,
            before,
            after,
            outcome,
            why,
        });
    }
}

impl Snapshot {
    fn of(control: &Control) -> Snapshot {
        let (stages, consumer) = (control.stages(), control.consumer());
        Snapshot { at: Instant::now(), stages, consumer }
    }
}

fn queue_level(feeds: &'static str, level: Level) -> QueueLevel {
    QueueLevel {
        queue: feeds.into(),
        items: level.ready as u64,
        bytes: level.bytes,
        limit: level.limit,
        limit_items: Some(level.slots as u64),
    }
}

fn measure(old: &Snapshot, new: &Snapshot) -> Measurement {
    let over = new.at - old.at;
    let share = |new: Duration, old: Duration| {
        new.saturating_sub(old).as_secs_f64() / over.as_secs_f64().max(1e-9)
    };
    let stages = new.stages.iter().zip(&old.stages).map(|(new, old)| StageMeasure {
        workers: new.workers,
        up_to: new.up_to,
        busy: share(new.busy, old.busy) / new.workers as f64,
        name: new.name,
    });
    let last = new.stages.last().map(|stage| stage.queue).unwrap_or_default();
    // One more slot is expected to need the mean size of the slots in use.
    let one_more = last.bytes.0 + last.bytes.0 / last.in_use.max(1) as u64;
    Measurement {
        over,
        items: new.consumer.items - old.consumer.items,
        starved: share(new.consumer.starved, old.consumer.starved),
        stages: stages.collect(),
        depth: last.slots,
        bytes_for_depth: one_more <= last.limit.0,
    }
}

fn effect(before: f64, after: f64) -> String {
    format!(
        "throughput {before:.2} to {after:.2} items/s, {:+.1} %",
        (after / before - 1.0) * 100.0
    )
}
