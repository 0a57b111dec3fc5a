//! The measured cause of varying step times.
//!
//! In: steps. Out: [`VariationCause`]: where their differences to the expected time of their shape
//! come from, with the share of them that it explains. A difference is time without a batch, or
//! time in the step itself, each compared with what is expected for the shape. The first goes to
//! the stage that worked longer on just those batches. The second goes to other programs where the
//! system took the CPU away in just those steps, to the run's own CPU work where that rose, and else
//! to the model. A name is given only where the measurements go along with the differences.

use crate::event::Name;
use crate::expected_time::expected;
use crate::rules::{AGREES, LESS_CPU, MORE_OFTEN};
use crate::step_sample::{StepSize, StepTime};
use crate::variation::mean;
use crate::verdict::TRAIN;
use serde::{Deserialize, Serialize};
use tandem_units::{median, percent};

/// What slow steps have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariationCause {
    pub source: VariationSource,
    /// The stage, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Name>,
    /// Share of the differences that lies in waiting, or in the step itself, whichever was found.
    pub share: f64,
    /// How closely the named measurement follows the differences: a correlation, 0 to 1.
    pub agreement: f64,
    /// The measurement in usual steps and in slow ones, for people.
    pub evidence: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariationSource {
    /// A stage before the model was slow on some batches.
    Stage,
    /// The model waited, and no stage was slower on just those batches.
    Waiting,
    /// Other programs took CPU time.
    OtherPrograms,
    /// The run itself needed more CPU time in these steps.
    OwnWork,
    /// The step itself, on its device.
    Model,
}

pub(crate) fn cause(steps: &[StepTime]) -> Option<VariationCause> {
    let found = Slow { steps, sizes: steps.iter().map(|step| step.size).collect() };
    let waits: Vec<f64> = steps.iter().map(|step| step.waited).collect();
    // Each part has its own expected time, so that the parts add up to the difference. A time
    // expected for the whole step contains a wait where most steps of its size waited. The steps
    // that did not wait would then differ, without a wait of their own to explain it.
    let late = found.more_than_usual(&waits)?;
    let itself = found.more_than_usual(&found.own_times())?;
    let differences: Vec<f64> = late.iter().zip(&itself).map(|(late, own)| late + own).collect();
    let squares: f64 = differences.iter().map(|difference| difference * difference).sum();
    if squares <= 0.0 {
        return None;
    }
    let along: f64 = differences.iter().zip(&late).map(|(all, late)| all * late).sum();
    let waiting = (along / squares).clamp(0.0, 1.0);
    Some(if waiting >= 0.5 {
        let usual = median(&mut waits.clone())?;
        let waited: Vec<f64> = waits.iter().map(|wait| wait - usual).collect();
        VariationCause { share: waiting, ..found.late_stage(&late, &waited) }
    } else {
        VariationCause { share: 1.0 - waiting, ..found.slow_step(&itself) }
    })
}

struct Slow<'a> {
    steps: &'a [StepTime],
    sizes: Vec<Option<StepSize>>,
}

impl Slow<'_> {
    /// The stage whose work on a batch was long where the model waited for that batch. `late` is
    /// the wait beyond that of the size, `waited` the wait beyond that of the run.
    fn late_stage(&self, late: &[f64], waited: &[f64]) -> VariationCause {
        let mut names: Vec<&Name> = Vec::new();
        for (name, _) in self.steps.iter().flat_map(|step| &step.work) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let best = names
            .into_iter()
            .filter_map(|name| {
                let times: Vec<f64> = self.steps.iter().map(|step| time_of(step, name)).collect();
                let more = self.more_than_usual(&times)?;
                // Of two stages that were both late, the one with more time explains more.
                let weight: f64 = late.iter().zip(&more).map(|(one, other)| one * other).sum();
                Some((name, weight, correlation(late, &more), times))
            })
            .filter(|(_, weight, agreement, _)| *weight > 0.0 && *agreement >= AGREES)
            .max_by(|one, other| one.1.total_cmp(&other.1));
        let Some((name, _, agreement, times)) = best else {
            return self.late_without_stage(late, waited);
        };
        let [usual, slow] = usual_and_slow(&times, waited);
        VariationCause {
            source: VariationSource::Stage,
            stage: Some(name.clone()),
            share: 0.0,
            agreement,
            evidence: format!(
                "`{name}` took {} for a usual batch and {} for the late ones",
                tandem_units::Seconds(usual),
                tandem_units::Seconds(slow)
            ),
        }
    }

    /// No stage was slower on just those batches: other programs may have slowed all of them.
    fn late_without_stage(&self, late: &[f64], waited: &[f64]) -> VariationCause {
        self.other_programs(late, waited).unwrap_or_else(|| {
            let evidence = "no stage was slower on the batches that came late".into();
            without_stage(VariationSource::Waiting, 0.0, evidence)
        })
    }

    /// Other programs, where the system took the CPU away in just those steps and the run got less of it.
    /// Steps are slow by `slowness`; the agreement is with the `differences` within a size.
    fn other_programs(&self, differences: &[f64], slowness: &[f64]) -> Option<VariationCause> {
        let preempted: Vec<f64> =
            self.steps.iter().map(|step| step.preempted).collect::<Option<_>>()?;
        let [usual, slow] = usual_and_slow(&self.cpu_rates()?, slowness);
        let [few, many] = usual_and_slow(&preempted, slowness);
        let per_second =
            |(count, step): (&f64, &StepTime)| count / step.took.max(f64::MIN_POSITIVE);
        let rates: Vec<f64> = preempted.iter().zip(self.steps).map(per_second).collect();
        let [seldom, often] = usual_and_slow(&rates, slowness);
        let agreement = self.agreement(&preempted, differences);
        let taken = often > MORE_OFTEN * seldom && slow <= LESS_CPU * usual;
        (agreement >= AGREES && taken).then(|| {
            let evidence = format!(
                "the system took a CPU from this run {few:.0} times in a usual step and \
                 {many:.0} times in a slow one, which had {} of the usual CPU time",
                percent(slow / usual.max(f64::MIN_POSITIVE))
            );
            without_stage(VariationSource::OtherPrograms, agreement, evidence)
        })
    }

    /// CPU seconds of the process per second of each step.
    fn cpu_rates(&self) -> Option<Vec<f64>> {
        let rate = |step: &StepTime| Some(step.cpu? / step.took.max(f64::MIN_POSITIVE));
        self.steps.iter().map(rate).collect()
    }

    fn slow_step(&self, itself: &[f64]) -> VariationCause {
        if let Some(found) = self.other_programs(itself, itself) {
            return found;
        }
        let cpu: Option<Vec<f64>> = self.steps.iter().map(|step| step.cpu).collect();
        if let (Some(cpu), Some(rates)) = (cpu, self.cpu_rates()) {
            let [usual, slow] = usual_and_slow(&rates, itself);
            let agreement = self.agreement(&cpu, itself);
            if agreement >= AGREES && slow > LESS_CPU * usual {
                let [usual, slow] = usual_and_slow(&cpu, itself);
                let evidence = format!(
                    "this run used {} of CPU time in a usual step and {} in a slow one",
                    tandem_units::Seconds(usual),
                    tandem_units::Seconds(slow)
                );
                return without_stage(VariationSource::OwnWork, agreement, evidence);
            }
        }
        let [usual, slow] = usual_and_slow(&self.own_times(), itself);
        VariationCause {
            source: VariationSource::Model,
            stage: Some(TRAIN.into()),
            share: 0.0,
            agreement: 1.0,
            evidence: format!(
                "the step itself took {} usually and {} where it was slow",
                tandem_units::Seconds(usual),
                tandem_units::Seconds(slow)
            ),
        }
    }

    /// Seconds of each step without waiting.
    fn own_times(&self) -> Vec<f64> {
        self.steps.iter().map(|step| step.took - step.waited).collect()
    }

    fn agreement(&self, figures: &[f64], differences: &[f64]) -> f64 {
        self.more_than_usual(figures).map_or(0.0, |more| correlation(&more, differences))
    }

    /// By how much each figure exceeds what its size makes expected.
    fn more_than_usual(&self, figures: &[f64]) -> Option<Vec<f64>> {
        let usual = expected(figures, &self.sizes)?;
        Some(figures.iter().zip(&usual.values).map(|(one, usual)| one - usual).collect())
    }
}

fn without_stage(source: VariationSource, agreement: f64, evidence: String) -> VariationCause {
    VariationCause { source, stage: None, share: 0.0, agreement, evidence }
}

fn time_of(step: &StepTime, name: &Name) -> f64 {
    step.work.iter().filter(|(stage, _)| stage == name).map(|(_, time)| time).sum()
}

/// The median of a figure, and its mean in slow steps, weighted by how slow they were.
fn usual_and_slow(figures: &[f64], differences: &[f64]) -> [f64; 2] {
    let usual = median(&mut figures.to_vec()).unwrap_or_default();
    let weight = |difference: &f64| difference.max(0.0);
    let weights: f64 = differences.iter().map(weight).sum();
    let sum: f64 = figures.iter().zip(differences).map(|(one, d)| one * weight(d)).sum();
    [usual, if weights > 0.0 { sum / weights } else { usual }]
}

fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let (a, b) = (mean(one), mean(other));
    let pairs = || one.iter().zip(other).map(|(x, y)| (x - a, y - b));
    let both: f64 = pairs().map(|(x, y)| x * y).sum();
    let (xx, yy) = pairs().fold((0.0, 0.0), |(xx, yy), (x, y)| (xx + x * x, yy + y * y));
    if xx <= 0.0 || yy <= 0.0 { 0.0 } else { both / (xx * yy).sqrt() }
}
