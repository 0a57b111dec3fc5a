//! The thresholds of a profile, and which of them a run violates.
//!
//! In: phases and devices of the run as it is. Out: one [`RuleResult`] for each promised rule;
//! what was not measured is neither met nor violated. The promised values are the defaults.

use crate::measured::Measured;
use crate::profile::PhaseFigures;
use serde::{Deserialize, Serialize};
use tandem_telemetry::event::DeviceRole;

/// Thresholds of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileRules {
    /// The model waits this share of its time for loading: a bottleneck. Promised: 20 %.
    pub load: f64,
    /// The same for the copy to its device. Promised: 15 %.
    pub transfer: f64,
    /// The model works less than this share: under-used. Promised: 50 %.
    pub training: f64,
    /// Step times vary by more than this: oscillation. Promised: 30 %.
    pub variation: f64,
    /// The model's GPU is busy less than this. Promised: 70 %.
    pub model_gpu: f64,
    /// The data's GPU is busy more than this. Promised: 80 %.
    pub data_gpu: f64,
    /// Two stages whose times differ by less than this factor are balanced.
    pub balance: f64,
    /// The model may wait this share of its time before varying times are named as the cause.
    pub uneven: f64,
    /// The least predicted gain that is worth a recommendation.
    pub gain: f64,
}

impl Default for ProfileRules {
    fn default() -> ProfileRules {
        ProfileRules {
            load: 0.20,
            transfer: 0.15,
            training: 0.50,
            variation: 0.30,
            model_gpu: 0.70,
            data_gpu: 0.80,
            balance: 0.90,
            uneven: 0.10,
            gain: 0.02,
        }
    }
}

/// One rule and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleResult {
    /// What it is about.
    pub name: String,
    /// The measured share; none where it was not measured.
    pub measured: Option<f64>,
    pub limit: f64,
    /// Whether it must stay above or below.
    pub kind: RuleKind,
    /// Whether it is broken; none where it was not measured.
    pub broken: Option<bool>,
    pub means: String,
}

/// Which side of the threshold is the bad one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    /// More than the limit breaks it.
    AtMost,
    /// Less than the limit breaks it.
    AtLeast,
}

impl ProfileRules {
    pub(crate) fn check(&self, phases: &[PhaseFigures], run: &Measured) -> Vec<RuleResult> {
        let share = |name: &str| phases.iter().find(|p| p.phase == name).map(|p| p.share);
        let variation = run.variation.as_ref().map(|found| found.by_shape);
        let gpu = |role| run.utilisation(role);
        let at_most = RuleKind::AtMost;
        let at_least = RuleKind::AtLeast;
        [
            ("load", share("load"), self.load, at_most, "the model waits for data: a bottleneck"),
            (
                "transfer",
                share("transfer"),
                self.transfer,
                at_most,
                "the copy to the model's device is a bottleneck",
            ),
            ("training", share("train"), self.training, at_least, "the model is under-used"),
            (
                "variation",
                variation,
                self.variation,
                at_most,
                "steps of the same shape differ: they oscillate",
            ),
            (
                "model GPU",
                gpu(DeviceRole::Model),
                self.model_gpu,
                at_least,
                "the model's GPU is under-used",
            ),
            (
                "data GPU",
                gpu(DeviceRole::Data),
                self.data_gpu,
                at_most,
                "the data's GPU is at its limit",
            ),
        ]
        .map(|(name, measured, limit, kind, means)| {
            let broken = measured.map(|value| match kind {
                RuleKind::AtMost => value > limit,
                RuleKind::AtLeast => value < limit,
            });
            RuleResult { name: name.into(), measured, limit, kind, broken, means: means.into() }
        })
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promised_thresholds_are_the_defaults() {
        let rules = ProfileRules::default();
        let promised = [rules.load, rules.transfer, rules.training, rules.variation];
        assert_eq!(promised, [0.20, 0.15, 0.50, 0.30]);
        assert_eq!([rules.model_gpu, rules.data_gpu], [0.70, 0.80]);
    }
}
