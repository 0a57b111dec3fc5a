//! The bottleneck of a run.
//!
//! In: the sums of a run. Out: [`Verdict`], and the [`StageLoad`]s it rests on. A step takes as
//! long as its slowest stage, so the verdict compares what each stage needs per step with what
//! a step took. It names a stage only where the measurements show one; otherwise it states what is missing.
//! A profile gives the same [`Verdict`] from its own measurements. Sentences: [`crate::verdict_words`]. What to
//! change is not part of a verdict: [`crate::advice`].

use crate::event::Name;
use crate::ranks::rank_verdict;
use crate::rules::Rules;
use crate::stats::Stats;
use crate::summary::{StageSums, StepSums, Summary};
use serde::{Deserialize, Serialize};
use tandem_units::Lang;

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
    /// What the sentence says in figures.
    #[serde(default)]
    pub facts: VerdictFacts,
    /// In English; [`Verdict::words`] has other languages.
    pub sentence: String,
}

/// The measurements that a verdict names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerdictFacts {
    /// Seconds of a step.
    pub step: f64,
    /// Share of it that the model waits.
    pub stall: f64,
    /// The slowest stage before the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<StageNeed>,
    /// A second stage before the model that is as slow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_slow: Option<StageNeed>,
    /// The model with batches from memory, which only a profile measures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<ModelAlone>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RankFacts>,
}

/// What a stage needs of a step, all its workers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageNeed {
    pub stage: Name,
    pub workers: u32,
    /// In seconds.
    pub per_step: f64,
}

/// The model without data work beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelAlone {
    /// Seconds of a step.
    pub step: f64,
    /// Share by which data work slows the model, waiting not counted.
    pub contention: f64,
    pub shared: SharedPart,
}

/// What data work and training share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedPart {
    Cpu,
    Gpu,
    /// Each has a GPU: only the host is shared.
    Host,
}

/// The slowest rank beside the next one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankFacts {
    pub ranks: usize,
    pub slow: usize,
    pub host: String,
    /// Seconds per step of the slowest rank and of the next.
    pub per_step: f64,
    pub next: f64,
    /// Whether most of its time is waiting for data.
    pub waits: bool,
    /// The stage that it waits for, where its record was read.
    pub stage: Option<StageNeed>,
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
    /// A stage before the model, or two that are equally slow.
    Feed,
    /// No stage is too slow in the mean, but their times vary too much for the buffer.
    #[serde(alias = "uneven")]
    Variation,
    /// The sum of the gradients of several ranks.
    Communication,
    /// One rank, slower than all others.
    Rank,
    /// The model waits, and the record has no stages.
    Unknown,
}

impl Verdict {
    /// With its sentence. The stage is the limiting one, where there is one.
    pub fn new(
        cause: Cause,
        stage: Option<Name>,
        [cost, slack]: [Option<f64>; 2],
        facts: VerdictFacts,
    ) -> Verdict {
        let cost = cost.unwrap_or(0.0);
        let mut made = Verdict { cause, stage, cost, slack, facts, sentence: String::new() };
        made.sentence = made.words(Lang::En);
        made
    }

    /// Whether something other than the model limits the run.
    pub fn is_held_back(&self) -> bool {
        use Cause::{Communication, Feed, Rank, Variation};
        matches!(self.cause, Feed | Variation | Communication | Rank)
    }
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

    fn facts(self, slowest: Option<&StageLoad>) -> VerdictFacts {
        let slowest = slowest.map(StageLoad::need);
        VerdictFacts { step: self.step, stall: self.stall, slowest, ..VerdictFacts::default() }
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
        return Verdict::new(Cause::NoSteps, None, [None, None], VerdictFacts::default());
    };
    if let Some(verdict) = rank_verdict(summary, pace.facts(slowest_stage(feed))) {
        return verdict;
    }
    match slowest_stage(feed) {
        None if pace.stall > rules.stall => {
            Verdict::new(Cause::Unknown, None, [Some(pace.stall), None], pace.facts(None))
        }
        None => Verdict::new(Cause::Model, Some(TRAIN.into()), [None, None], pace.facts(None)),
        Some(worst) => {
            let slack = Some(worst.slack(pace.step));
            let even = worst.per_step >= rules.balance * model.per_step;
            let full = worst.per_step >= rules.full * pace.step;
            // The model takes as long as what feeds it: making either faster alone gains little.
            let balanced = even && model.per_step >= rules.balance * worst.per_step;
            let (cause, stage, cost) = match pace.stall <= rules.stall {
                true if even => (Cause::Balanced, None, None),
                true => (Cause::Model, Some(model.stage.clone()), None),
                false if full && balanced => (Cause::Balanced, None, None),
                false if full => return feed_bound(worst, feed, pace, rules),
                false => (Cause::Variation, Some(worst.stage.clone()), Some(pace.stall)),
            };
            Verdict::new(cause, stage, [cost, slack], pace.facts(Some(worst)))
        }
    }
}

/// The model waits for a stage, or for two that are equally slow.
fn feed_bound(worst: &StageLoad, feed: &[StageLoad], pace: Pace, rules: &Rules) -> Verdict {
    let others: Vec<StageLoad> =
        feed.iter().filter(|load| load.stage != worst.stage).cloned().collect();
    let next = slowest_stage(&others);
    let as_slow = next.filter(|next| next.per_step >= rules.balance * worst.per_step);
    // A step cannot take less than its slowest stage: where the measured need is more, that is the
    // noise of the edges. Without the bottleneck the next stage sets the pace, and never less than the model.
    let whole = pace.step.max(worst.per_step);
    let cost = match (as_slow, next) {
        (None, Some(next)) => (1.0 - next.per_step / whole).min(pace.stall),
        _ => pace.stall,
    };
    let mut facts = pace.facts(Some(worst));
    facts.as_slow = as_slow.map(StageLoad::need);
    Verdict::new(Cause::Feed, Some(worst.stage.clone()), [Some(cost), Some(0.0)], facts)
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

impl StageLoad {
    /// Share of a step that it has to spare.
    fn slack(&self, step: f64) -> f64 {
        (1.0 - self.per_step / step).max(0.0)
    }

    pub(crate) fn need(&self) -> StageNeed {
        StageNeed { stage: self.stage.clone(), workers: self.workers, per_step: self.per_step }
    }
}
