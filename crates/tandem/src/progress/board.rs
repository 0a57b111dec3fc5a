//! The numbers and sentences of a running training, without a screen.
//!
//! In: the record's news. Out: text. Pure: the same news give the same words.

use super::Plan;
use tandem_telemetry::Nanos;
use tandem_telemetry::event::{
    Checkpoint, Decision, DecisionOutcome, Event, Health, Loss, Name, Skipped, Stamped,
    StartReason, Started, Step, WarmUp,
};
use tandem_telemetry::record::Update;
use tandem_units::Seconds;

/// Items left out that are shown one by one; the report counts all.
const SHOWN: u64 = 3;
/// How often a warm-up says how far it is.
const SHAPES_EVERY: Nanos = Nanos(2_000_000_000);
/// Speeds are means over about so many seconds.
const MEMORY: f64 = 20.0;

/// Words for a person.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// A fact.
    Line(String),
    /// Something to look after.
    Warning(String),
}

/// Where a run stands.
#[derive(Default)]
pub(super) struct Board {
    plan: Plan,
    step: u64,
    epoch: u32,
    losses: Vec<(Name, Option<f32>)>,
    pace: Pace,
    skipped: u64,
    told_of_disk: bool,
    /// When the warm-up last said how far it is.
    told_of_shapes: Nanos,
}

/// Sums in which the past fades.
#[derive(Default)]
struct Pace {
    steps: f64,
    items: f64,
    seconds: f64,
    waited: f64,
}

pub(super) fn is_step(stamped: &Stamped) -> bool {
    matches!(stamped.event, Event::Step(_))
}

impl Board {
    pub(super) fn new(plan: Plan) -> Board {
        Board { plan, step: plan.done, ..Board::default() }
    }

    /// Takes the news in; returns what is worth a line of its own.
    pub(super) fn hear(&mut self, news: Update<'_>) -> Vec<Said> {
        let stamped = match news {
            Update::Periodic(line) => return vec![Said::Line(line.to_string())],
            Update::Event(stamped) => stamped,
        };
        match &stamped.event {
            Event::Step(step) => self.add(step),
            Event::Warning(warning) => return vec![Said::Warning(warning.text.clone())],
            Event::WarmUp(met) => return self.warmed_up(met, stamped.at),
            Event::Started(start) => return vec![Said::Line(started(start))],
            Event::Checkpoint(checkpoint) => return vec![Said::Line(saved(checkpoint))],
            Event::Decision(decision) if decision.outcome != DecisionOutcome::Trying => {
                return vec![Said::Line(decided(decision))];
            }
            Event::Skipped(skipped) => return self.skipped(skipped),
            Event::Health(health) => return self.health(health),
            _ => {}
        }
        Vec::new()
    }

    /// Every shape where they take long, now and then where not.
    fn warmed_up(&mut self, met: &WarmUp, at: Nanos) -> Vec<Said> {
        let quiet = at.0.saturating_sub(self.told_of_shapes.0);
        if met.number < met.total && quiet < SHAPES_EVERY.0 {
            return Vec::new();
        }
        self.told_of_shapes = at;
        let WarmUp { shape: [rows, symbols, frames], number, total, took } = met;
        let shape = format!("{rows} rows, {symbols} symbols, {frames} frames");
        vec![Said::Line(format!("warm-up: shape {number} of {total} ({shape}) in {took}"))]
    }

    /// The last step that is over.
    pub(super) fn step(&self) -> u64 {
        self.step
    }

    /// Counted from one, as people do.
    pub(super) fn epoch(&self) -> String {
        let epoch = self.epoch + 1;
        match self.plan.epochs {
            Some(epochs) => format!("epoch {epoch} of {epochs}"),
            None => format!("epoch {epoch}"),
        }
    }

    /// Losses, speeds, utilisation and the time that is left.
    pub(super) fn figures(&self) -> String {
        let mut parts = Vec::new();
        if !self.losses.is_empty() {
            let losses = self.losses.iter().map(|(name, value)| match value {
                Some(value) => format!("{name} {value:.4}"),
                None => format!("{name} ?"),
            });
            parts.push(losses.collect::<Vec<_>>().join(" "));
        }
        let pace = &self.pace;
        if pace.seconds > 0.0 {
            parts.push(format!("{:.2} steps/s", pace.steps / pace.seconds));
            parts.push(format!("{:.1} samples/s", pace.items / pace.seconds));
            let busy = (1.0 - pace.waited / pace.seconds).clamp(0.0, 1.0);
            parts.push(format!("busy {:.1} %", 100.0 * busy));
        }
        parts.extend(self.left().map(|left| format!("eta {left}")));
        parts.join(", ")
    }

    /// All of it on one line.
    pub(super) fn line(&self) -> String {
        let step = match self.plan.last_step {
            Some(last) => format!("step {} of {last}", self.step),
            None => format!("step {}", self.step),
        };
        format!("{}, {step}: {}", self.epoch(), self.figures())
    }

    fn left(&self) -> Option<Seconds> {
        let steps = self.plan.last_step?.saturating_sub(self.step) as f64;
        let pace = self.pace.seconds / self.pace.steps;
        (self.pace.steps > 0.0).then_some(Seconds(steps * pace))
    }

    fn add(&mut self, step: &Step) {
        self.step = step.step;
        self.epoch = step.ticket.epoch.0;
        if !step.losses.is_empty() {
            let value = |loss: &Loss| (loss.name.clone(), loss.value.value());
            self.losses = step.losses.iter().map(value).collect();
        }
        self.pace.add(step);
    }

    fn skipped(&mut self, skipped: &Skipped) -> Vec<Said> {
        self.skipped += 1;
        if self.skipped > SHOWN {
            return Vec::new();
        }
        let place = skipped.ticket.map(|ticket| format!("#{}", ticket.seq));
        let name = skipped.id.clone().or(place).unwrap_or_else(|| "an item".into());
        let more = if self.skipped == SHOWN { "; more are only counted" } else { "" };
        let text = format!("skipped {name} at `{}`: {}{more}", skipped.stage, skipped.why);
        vec![Said::Warning(text)]
    }

    fn health(&mut self, health: &Health) -> Vec<Said> {
        if health.write_errors == 0 || std::mem::replace(&mut self.told_of_disk, true) {
            return Vec::new();
        }
        let why = health.first_error.as_deref().unwrap_or("no reason given");
        vec![Said::Warning(format!("the run goes on, but its record cannot be written: {why}"))]
    }
}

impl Pace {
    fn add(&mut self, step: &Step) {
        let seconds = step.took.seconds().0;
        let fade = (-seconds / MEMORY).exp();
        let Pace { steps, items, seconds: all, waited } = self;
        for (sum, new) in [
            (steps, 1.0),
            (items, f64::from(step.items)),
            (all, seconds),
            (waited, step.waited.seconds().0),
        ] {
            *sum = *sum * fade + new;
        }
    }
}

fn started(start: &Started) -> String {
    let why = match start.why {
        StartReason::EnoughReady => "enough batches were ready",
        StartReason::DelayOver => "the delay was over",
        StartReason::EndOfData => "the data ended",
        StartReason::Stopped => "the run was stopped",
    };
    format!("the model starts after {}: {why} ({} ready)", start.waited, start.ready)
}

fn saved(checkpoint: &Checkpoint) -> String {
    let Checkpoint { step, path, bytes, took, why } = checkpoint;
    format!("checkpoint after step {step} ({why}): {path}, {bytes} in {took}")
}

fn decided(decision: &Decision) -> String {
    let outcome = match decision.outcome {
        DecisionOutcome::Kept => "kept",
        DecisionOutcome::Reverted => "reverted",
        DecisionOutcome::Trying => "being tried",
    };
    let stage = decision.stage.as_ref().map(|stage| format!(" of `{stage}`")).unwrap_or_default();
    let Decision { what, from, to, before, .. } = decision;
    let after = decision.after.map(|after| format!(" -> {after:.1}")).unwrap_or_default();
    format!("adapted {what}{stage} {from} -> {to}: {before:.1}{after} items/s, {outcome}")
}
