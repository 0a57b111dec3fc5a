//! Formats the progress of a training run. Prints nothing.
//!
//! In: the events of the run record. Out: text, a pure function of the events.

use super::Plan;
use tandem_telemetry::Nanos;
use tandem_telemetry::event::{
    Checkpoint, Decision, DecisionOutcome, Event, Health, Loss, Name, Skipped, Stamped,
    StartReason, Started, Step, Validation, WarmUp, Warning,
};
use tandem_telemetry::record::Update;
use tandem_units::Seconds;

/// Skipped items that are shown one by one; the report counts all.
const SHOWN: u64 = 3;
/// Interval between progress lines of the warm-up.
const SHAPES_EVERY: Nanos = Nanos(2_000_000_000);
/// Time constant of the mean speeds, in seconds.
const MEMORY: f64 = 20.0;

/// The sum of all losses, in steps and validations.
const TOTAL: &str = "total";

/// A line of output.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    Line(String),
    Warning(String),
}

/// State of a run.
#[derive(Default)]
pub(super) struct Board {
    plan: Plan,
    step: u64,
    epoch: u32,
    losses: Vec<(Name, Option<f32>)>,
    /// The total loss of the last validation.
    held_out: Option<f64>,
    /// The character errors that a judge heard.
    heard: Option<f64>,
    pace: Pace,
    skipped: u64,
    /// Warnings that were shown, each sentence once, and how often it came.
    warned: Vec<(Warning, u64)>,
    reported_disk: bool,
    /// Time of the last line of the warm-up.
    reported_shapes: Nanos,
}

/// Exponentially decaying sums.
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

    /// Processes an event and returns the lines to print.
    pub(super) fn hear(&mut self, news: Update<'_>) -> Vec<Said> {
        let stamped = match news {
            Update::Periodic(line) => return vec![Said::Line(line.to_string())],
            Update::Event(stamped) => stamped,
        };
        match &stamped.event {
            Event::Step(step) => self.add(step),
            Event::Warning(warning) => return self.warned(warning),
            Event::WarmUp(shape) => return self.warmed_up(shape, stamped.at),
            Event::Kernels(kernels) => return vec![Said::Line(format!("kernels: {kernels}"))],
            Event::Started(start) => return vec![Said::Line(started(start))],
            Event::Checkpoint(checkpoint) => return vec![Said::Line(saved(checkpoint))],
            Event::Validation(validation) => {
                self.held_out = validation.values.get(TOTAL).copied();
                self.heard = validation.values.get("cer").copied();
                return vec![Said::Line(validated(validation))];
            }
            Event::Decision(decision) if decision.outcome != DecisionOutcome::Trying => {
                return vec![Said::Line(decided(decision))];
            }
            Event::Skipped(skipped) => return self.skipped(skipped),
            Event::Health(health) => return self.health(health),
            _ => {}
        }
        Vec::new()
    }

    /// Prints every shape if shapes are slow, otherwise one now and then.
    fn warmed_up(&mut self, warm_up: &WarmUp, at: Nanos) -> Vec<Said> {
        let quiet = at.0.saturating_sub(self.reported_shapes.0);
        if warm_up.number < warm_up.total && quiet < SHAPES_EVERY.0 {
            return Vec::new();
        }
        self.reported_shapes = at;
        let WarmUp { shape: [rows, symbols, frames], number, total, took } = warm_up;
        let shape = format!("{rows} rows, {symbols} symbols, {frames} frames");
        vec![Said::Line(format!("warm-up: shape {number} of {total} ({shape}) in {took}"))]
    }

    /// The last finished step.
    pub(super) fn step(&self) -> u64 {
        self.step
    }

    /// Epochs are counted from 1 here.
    pub(super) fn epoch(&self) -> String {
        let epoch = self.epoch + 1;
        match self.plan.epochs {
            Some(epochs) => format!("epoch {epoch} of {epochs}"),
            None => format!("epoch {epoch}"),
        }
    }

    /// What people look for comes first, so that 80 columns show it: time left, loss, held-out loss, speed, waiting.
    pub(super) fn figures(&self) -> String {
        let (total, others): (Vec<_>, Vec<_>) =
            self.losses.iter().partition(|(name, _)| name.as_ref() == TOTAL);
        let named = |name: &str, value: Option<f32>| match value {
            Some(value) => format!("{name} {}", digits(f64::from(value))),
            None => format!("{name} ?"),
        };
        let mut parts = Vec::new();
        parts.extend(self.left().map(|left| format!("eta {}", rough(left))));
        parts.extend(total.iter().map(|(_, value)| named("loss", *value)));
        parts.extend(self.held_out.map(|loss| format!("held out {}", digits(loss))));
        parts.extend(self.heard.map(|share| format!("CER {:.1} %", 100.0 * share)));
        let Pace { steps, items, seconds, waited } = self.pace;
        if seconds > 0.0 {
            parts.push(format!("{} steps/s", digits(steps / seconds)));
            parts.push(format!("wait {:.0} %", 100.0 * (waited / seconds).clamp(0.0, 1.0)));
        }
        parts.extend(others.iter().map(|(name, value)| named(&name.replace('_', " "), *value)));
        if seconds > 0.0 {
            parts.push(format!("{} samples/s", digits(items / seconds)));
        }
        parts.join(", ")
    }

    pub(super) fn line(&self) -> String {
        let step = match self.plan.last_step {
            Some(last) => format!("step {}/{last}", self.step),
            None => format!("step {}", self.step),
        };
        format!("{step}, {}; {}", self.figures(), self.epoch())
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

    /// A sentence that comes again with other figures is shown by its first clause: the remedy was said.
    fn warned(&mut self, warning: &Warning) -> Vec<Said> {
        let Some((_, count)) = self.warned.iter_mut().find(|(known, _)| known.is_like(warning))
        else {
            self.warned.push((warning.clone(), 1));
            return vec![Said::Warning(warning.text.clone())];
        };
        *count += 1;
        let first = warning.text.split(';').next().unwrap_or_default();
        vec![Said::Warning(format!("{first} ({count} times so far)"))]
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
        if health.write_errors == 0 || std::mem::replace(&mut self.reported_disk, true) {
            return Vec::new();
        }
        let why = health.first_error.as_deref().unwrap_or("no reason given");
        vec![Said::Warning(format!("the run continues, but its record cannot be written: {why}"))]
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
        StartReason::DelayOver => "the start delay elapsed",
        StartReason::EndOfData => "the data ended",
        StartReason::Stopped => "the run was stopped",
    };
    format!("training starts after {}: {why} ({} ready)", start.waited, start.ready)
}

fn saved(checkpoint: &Checkpoint) -> String {
    let Checkpoint { step, path, bytes, took, why } = checkpoint;
    format!("checkpoint after step {step} ({why}): {path}, {bytes} in {took}")
}

fn validated(validation: &Validation) -> String {
    let Validation { step, took, best, values } = validation;
    let total = values.get(TOTAL).map(|loss| format!(" {}", digits(*loss))).unwrap_or_default();
    // The rest is in the record and in TensorBoard.
    let shown = |name: &str| name != TOTAL && name != "acoustic" && !name.starts_with("alignment_");
    let others = values.iter().filter(|(name, _)| shown(name));
    let others =
        others.map(|(name, value)| format!("{} {}", name.replace('_', " "), digits(*value)));
    let others = others.collect::<Vec<_>>().join(", ");
    let best = if *best { "; the best so far" } else { "" };
    format!("held-out loss after step {step}:{total} ({others}){best}; in {took}")
}

/// Four significant digits, without zeros that say nothing: 7.405, 0.3965, 0.001, 2e-5.
fn digits(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || size == 0.0 {
        return format!("{value}");
    }
    if size < 1e-4 {
        return format!("{:e}", format!("{value:.2e}").parse::<f64>().unwrap_or(value));
    }
    let places = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// A time that is only an estimate: whole seconds.
fn rough(left: Seconds) -> String {
    if left.0 < 60.0 { format!("{:.0} s", left.0) } else { left.to_string() }
}

fn decided(decision: &Decision) -> String {
    let outcome = match decision.outcome {
        DecisionOutcome::Kept => "kept",
        DecisionOutcome::Reverted => "reverted",
        DecisionOutcome::Trying => "on trial",
    };
    let stage = decision.stage.as_ref().map(|stage| format!(" of `{stage}`")).unwrap_or_default();
    let Decision { what, from, to, before, .. } = decision;
    let after = decision.after.map(|after| format!(" -> {after:.1}")).unwrap_or_default();
    format!("adapted {what}{stage} {from} -> {to}: {before:.1}{after} items/s, {outcome}")
}
