//! The bottleneck of a run, in one sentence.
//!
//! In: the sums of a run. Out: [`Verdict`], and the [`StageLoad`]s it rests on. A step takes as
//! long as its slowest stage, so the verdict compares what each stage needs per step with what
//! a step took. It names a stage only where the measurements show one; otherwise it states what is missing.

use crate::event::Name;
use crate::ranks::rank_verdict;
use crate::rules::Rules;
use crate::stats::Stats;
use crate::summary::{StageSums, StepSums, Summary};
use serde::{Deserialize, Serialize};

/// The consumer's name among the stages.
pub const TRAIN: &str = "train";

/// What one stage needs for one step, and how its workers spent their time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageLoad {
    pub stage: Name,
    pub workers: u32,
    /// Seconds of a step it would need alone, all its workers at work.
    pub per_step: f64,
    /// Share of its workers' time spent working.
    pub busy: f64,
    /// Share spent waiting for input.
    pub starved: f64,
    /// Share spent waiting for room.
    pub blocked: f64,
}

/// The bottleneck of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub cause: Cause,
    /// The stage that limits the run.
    pub stage: Option<Name>,
    /// Share of the run's time that would be saved without the bottleneck.
    pub cost: f64,
    /// Share of the step time that the next slowest stage has to spare.
    pub slack: Option<f64>,
    pub sentence: String,
}

/// Kinds of bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    NoSteps,
    /// The model, with slack in the stages before it. This is the goal.
    Model,
    /// None: the model and the stages before it take equally long.
    Balanced,
    /// A stage before the model.
    Feed,
    /// No stage is too slow in the mean, but their times vary too much for the buffer.
    Variation,
    /// The sum of the gradients of several ranks.
    Communication,
    /// One rank, slower than all others.
    Rank,
    /// The model waits, and the record has no stages.
    Unknown,
}

/// The time of a step, and how much of it was waiting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    pub(crate) step: f64,
    pub(crate) stall: f64,
}

impl Pace {
    /// From all steps but the first, which compiles kernels; from that one where it is alone.
    pub(crate) fn of(steps: &StepSums) -> Option<Pace> {
        let steady = steps.steady.count() > 0;
        let (times, waited): (&Stats, _) =
            if steady { (&steps.steady, steps.steady_waited) } else { (&steps.all, steps.waited) };
        let figures = times.figures()?;
        let whole = figures.mean * figures.count as f64;
        let stall = if whole > 0.0 { (waited.seconds().0 / whole).min(1.0) } else { 0.0 };
        Some(Pace { step: figures.mean, stall })
    }
}

/// All stages in path order, the model last; empty where no step was finished.
pub fn stage_loads(summary: &Summary) -> Vec<StageLoad> {
    let Some(pace) = Pace::of(&summary.steps) else { return Vec::new() };
    let before = summary.stages.iter().filter(|sums| sums.stage != TRAIN);
    let mut loads: Vec<StageLoad> =
        before.map(|sums| load(sums, per_step(sums, &summary.steps))).collect();
    let training = pace.step * (1.0 - pace.stall);
    let recorded = summary.stages.iter().find(|sums| sums.stage == TRAIN);
    loads.push(recorded.map_or_else(|| model_load(training, pace), |sums| load(sums, training)));
    loads
}

/// The stage that needs most time per step.
pub fn slowest_stage(loads: &[StageLoad]) -> Option<&StageLoad> {
    loads.iter().max_by(|left, right| left.per_step.total_cmp(&right.per_step))
}

/// The slowest stage's time over the step's: 1 where stages overlap fully.
pub fn efficiency(summary: &Summary) -> Option<f64> {
    let pace = Pace::of(&summary.steps)?;
    let loads = stage_loads(summary);
    let slowest = slowest_stage(&loads)?.per_step;
    // Over 1 is noise at the edges of the run: no step is faster than its slowest stage.
    (pace.step > 0.0).then(|| (slowest / pace.step).min(1.0))
}

/// Finds the bottleneck of a run.
pub fn verdict(summary: &Summary, rules: &Rules) -> Verdict {
    let loads = stage_loads(summary);
    let (Some(pace), Some((model, feed))) = (Pace::of(&summary.steps), loads.split_last()) else {
        return Verdict {
            cause: Cause::NoSteps,
            stage: None,
            cost: 0.0,
            slack: None,
            sentence: "no step was finished: there is nothing to judge".into(),
        };
    };
    if let Some(verdict) = rank_verdict(summary) {
        return verdict;
    }
    match slowest_stage(feed) {
        None if pace.stall > rules.stall => unknown(pace),
        None => model_alone(pace),
        Some(worst) if pace.stall <= rules.stall => model_bound(model, worst, pace, rules),
        Some(worst) if worst.per_step >= rules.full * pace.step => feed_bound(worst, &loads, pace),
        Some(worst) => varying(worst, pace),
    }
}

fn model_alone(pace: Pace) -> Verdict {
    Verdict {
        cause: Cause::Model,
        stage: Some(TRAIN.into()),
        cost: 0.0,
        slack: None,
        sentence: format!(
            "the model is the bottleneck: it waits {} of the time; the record has no stages before \
             it, so their slack is unknown",
            percent(pace.stall)
        ),
    }
}

fn unknown(pace: Pace) -> Verdict {
    Verdict {
        cause: Cause::Unknown,
        stage: None,
        cost: pace.stall,
        slack: None,
        sentence: format!(
            "the model waits {} of the time; the record has no stages, so the cause is unknown",
            percent(pace.stall)
        ),
    }
}

fn model_bound(model: &StageLoad, next: &StageLoad, pace: Pace, rules: &Rules) -> Verdict {
    let slack = (1.0 - next.per_step / pace.step).max(0.0);
    let balanced = next.per_step >= rules.balance * model.per_step;
    let sentence = if balanced {
        format!(
            "balanced: there is no bottleneck; the model waits {} of the time, and `{}` needs nearly \
             as long as a step (slack {})",
            percent(pace.stall),
            next.stage,
            percent(slack)
        )
    } else {
        format!(
            "the model is the bottleneck, as intended: it waits {} of the time, and `{}`, the \
             slowest stage before it, has {} slack",
            percent(pace.stall),
            next.stage,
            percent(slack)
        )
    };
    let cause = if balanced { Cause::Balanced } else { Cause::Model };
    let stage = (!balanced).then(|| model.stage.clone());
    Verdict { cause, stage, cost: 0.0, slack: Some(slack), sentence }
}

fn feed_bound(worst: &StageLoad, loads: &[StageLoad], pace: Pace) -> Verdict {
    let others = loads.iter().filter(|load| load.stage != worst.stage);
    let next = others.map(|load| load.per_step).fold(0.0, f64::max);
    let cost = (1.0 - next / pace.step).max(0.0);
    let sentence = format!(
        "`{}` is the bottleneck: with {} it needs {} of every step, the model waits {} of the \
         time, and without this bottleneck the run would be up to {} shorter",
        worst.stage,
        workers(worst.workers),
        percent((worst.per_step / pace.step).min(1.0)),
        percent(pace.stall),
        percent(cost)
    );
    let stage = Some(worst.stage.clone());
    Verdict { cause: Cause::Feed, stage, cost, slack: Some(0.0), sentence }
}

fn varying(worst: &StageLoad, pace: Pace) -> Verdict {
    let slack = (1.0 - worst.per_step / pace.step).max(0.0);
    let sentence = format!(
        "stage times vary too much for the buffer: the model waits {} of the time although no \
         stage is too slow on average (the slowest, `{}`, has {} slack); use a deeper buffer",
        percent(pace.stall),
        worst.stage,
        percent(slack)
    );
    Verdict {
        cause: Cause::Variation,
        stage: Some(worst.stage.clone()),
        cost: pace.stall,
        slack: Some(slack),
        sentence,
    }
}

/// Seconds per step that a stage needs. It works ahead of the model, so its items are not
/// exactly those of the steps: its own count decides, taken as batches or as utterances,
/// whichever is nearer.
fn per_step(sums: &StageSums, steps: &StepSums) -> f64 {
    let (count, utterances) = (steps.all.count() as f64, steps.items as f64);
    if sums.items == 0 || count == 0.0 {
        return sums.alone / count.max(1.0);
    }
    let apart = |other: f64| (sums.items as f64 / other.max(1.0)).ln().abs();
    let by_utterance = apart(utterances) < apart(count);
    let per_item = sums.alone / sums.items as f64;
    if by_utterance { per_item * utterances / count } else { per_item }
}

fn load(sums: &StageSums, per_step: f64) -> StageLoad {
    StageLoad {
        stage: sums.stage.clone(),
        workers: sums.workers,
        per_step,
        busy: sums.busy.share_of(sums.capacity),
        starved: sums.starved.share_of(sums.capacity),
        blocked: sums.blocked.share_of(sums.capacity),
    }
}

fn model_load(training: f64, pace: Pace) -> StageLoad {
    StageLoad {
        stage: TRAIN.into(),
        workers: 1,
        per_step: training,
        busy: 1.0 - pace.stall,
        starved: pace.stall,
        blocked: 0.0,
    }
}

fn workers(count: u32) -> String {
    if count == 1 { "1 worker".into() } else { format!("{count} workers") }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
