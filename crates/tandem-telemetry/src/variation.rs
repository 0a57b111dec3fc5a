//! How much step times vary beyond what the shapes of their batches explain.
//!
//! In: [`StepTime`]s. Out: [`Variation`], a pure function of them: the raw figure (standard
//! deviation over mean), and the same after the expected time of each step's shape was subtracted
//! ([`crate::expected_time`]). Warnings, grades, reports, profiles and comparisons all use this
//! function. Its cause is found in [`crate::variation_cause`].

use crate::crowd::Crowd;
use crate::expected_time::{Expected, expected};
use crate::step_sample::{StepSize, StepTime};
use crate::summary::Summary;
use crate::variation_cause::{VariationCause, VariationSource, cause};
use serde::{Deserialize, Serialize};
use std::fmt;
use tandem_units::{Lang, percent};

/// How much steps of the same shape differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variation {
    /// Steps that were judged.
    pub steps: u64,
    /// Standard deviation over mean of the step time, mixed shapes included.
    pub raw: f64,
    /// Standard deviation of the difference to the expected time of the shape, over the mean step.
    /// The largest difference in every hundred steps is left out: one pause is no instability.
    pub by_shape: f64,
    /// Distinct shapes.
    pub shapes: u64,
    /// Steps of rare shapes, whose expected time follows a curve over the padded size.
    pub on_curve: u64,
    /// Share of all time by which steps exceeded the expected time of their shape.
    pub excess: f64,
    /// What the differences go along with; none where there are none.
    pub cause: Option<VariationCause>,
}

/// The variation of these steps. `None` where it cannot be judged: fewer than two steps, or too few
/// for the number of shapes.
pub fn variation(steps: &[StepTime]) -> Option<Variation> {
    if steps.len() < 2 {
        return None;
    }
    let times: Vec<f64> = steps.iter().map(|step| step.took).collect();
    let sizes: Vec<Option<StepSize>> = steps.iter().map(|step| step.size).collect();
    let usual = expected(&times, &sizes)?;
    let differences = differences(&times, &usual);
    let mean = mean(&times);
    let over = |deviation: f64| if mean > 0.0 { deviation / mean } else { 0.0 };
    let total: f64 = times.iter().sum();
    let excess: f64 = differences.iter().map(|difference| difference.max(0.0)).sum();
    Some(Variation {
        steps: steps.len() as u64,
        raw: over(deviation(&times)),
        by_shape: over(deviation(&without_pauses(&differences))),
        shapes: usual.sizes as u64,
        on_curve: usual.on_curve as u64,
        excess: if total > 0.0 { excess / total } else { 0.0 },
        cause: cause(steps),
    })
}

impl Summary {
    /// The variation of the steps of a run. An uneven step on a machine that other programs fill is theirs.
    pub fn variation(&self) -> Option<Variation> {
        let mut found = variation(self.steps.sample.steps())?;
        if let (Some(cause), Some(crowd)) = (&mut found.cause, Crowd::of(self))
            && cause.source == VariationSource::Model
        {
            cause.source = VariationSource::OtherPrograms;
            cause.stage = None;
            cause.evidence = crowd.words(Lang::En);
        }
        Some(found)
    }
}

/// By how much each step exceeds the expected time of its shape; `None` where that is unknown.
pub fn beyond_shape(times: &[f64], sizes: &[Option<StepSize>]) -> Option<Vec<f64>> {
    Some(differences(times, &expected(times, sizes)?))
}

fn differences(times: &[f64], usual: &Expected) -> Vec<f64> {
    times.iter().zip(&usual.values).map(|(time, expected)| time - expected).collect()
}

/// The differences without the largest one of every hundred.
fn without_pauses(differences: &[f64]) -> Vec<f64> {
    let mut sorted = differences.to_vec();
    sorted.sort_by(|one, other| one.abs().total_cmp(&other.abs()));
    sorted.truncate(differences.len() - (differences.len() + 50) / 100);
    sorted
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (squares / values.len().max(1) as f64).sqrt()
}

impl fmt::Display for Variation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "variation {} by shape, {} raw", percent(self.by_shape), percent(self.raw))
    }
}

#[cfg(test)]
mod tests;
