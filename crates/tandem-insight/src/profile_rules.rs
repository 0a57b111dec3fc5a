//! Which of the promised thresholds of a profile a run violates.
//!
//! In: phases and devices of the run as it is. Out: one [`RuleResult`] for each promised rule;
//! what was not measured is neither met nor violated. The promised values are the defaults.

use crate::measured::Measured;
use crate::profile::PhaseFigures;
use serde::{Deserialize, Serialize};
use tandem_telemetry::event::DeviceRole;
use tandem_telemetry::rules::ProfileRules;

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

impl RuleResult {
    /// Every promised rule, against the run as it is.
    pub(crate) fn all(
        rules: &ProfileRules,
        phases: &[PhaseFigures],
        run: &Measured,
    ) -> Vec<RuleResult> {
        let share = |name: &str| phases.iter().find(|p| p.phase == name).map(|p| p.share);
        let variation = run.variation.as_ref().map(|found| found.by_shape);
        let gpu = |role| run.utilisation(role);
        let at_most = RuleKind::AtMost;
        let at_least = RuleKind::AtLeast;
        [
            ("load", share("load"), rules.load, at_most, "the model waits for data: a bottleneck"),
            (
                "transfer",
                share("transfer"),
                rules.transfer,
                at_most,
                "the copy to the model's device is a bottleneck",
            ),
            ("training", share("train"), rules.training, at_least, "the model is under-used"),
            (
                "variation",
                variation,
                rules.variation,
                at_most,
                "steps of the same shape differ: they oscillate",
            ),
            (
                "model GPU",
                gpu(DeviceRole::Model),
                rules.model_gpu,
                at_least,
                "the model's GPU is under-used",
            ),
            (
                "data GPU",
                gpu(DeviceRole::Data),
                rules.data_gpu,
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
