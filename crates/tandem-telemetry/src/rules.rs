//! Every threshold of reports, in one place.
//!
//! In: nothing. Out: [`Rules`], with the promised values as defaults. Values marked "promised"
//! are part of the contract; the others are chosen so that noise does not cause a verdict.

use serde::{Deserialize, Serialize};

/// Thresholds of the periodic line, the verdict and the grade.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Steps between two periodic lines; promised: 100.
    pub every: u64,
    /// Variation of the step time above which a warning is given; promised: 30 %.
    pub variation: f64,
    /// Share of time the model may wait before a bottleneck is reported.
    pub stall: f64,
    /// A stage that needs this share of the step time, or more, is a bottleneck.
    pub full: f64,
    /// Two stages whose times differ by less than this factor are balanced.
    pub balance: f64,
    /// Targets of the grade.
    pub targets: Targets,
}

/// The three grades that can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Targets {
    pub excellent: Target,
    pub good: Target,
    pub minimum: Target,
}

/// Requirements of one grade.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Mean utilisation of the data GPU, at least.
    pub data_gpu: f64,
    /// Mean utilisation of the model GPU, at least.
    pub model_gpu: f64,
    /// Variation of the step time, below.
    pub variation: f64,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            every: 100,
            variation: 0.30,
            stall: 0.02,
            full: 0.85,
            balance: 0.90,
            targets: Targets::default(),
        }
    }
}

/// The promised values.
impl Default for Targets {
    fn default() -> Targets {
        Targets {
            excellent: Target { data_gpu: 0.60, model_gpu: 0.90, variation: 0.20 },
            good: Target { data_gpu: 0.50, model_gpu: 0.80, variation: 0.30 },
            minimum: Target { data_gpu: 0.40, model_gpu: 0.70, variation: 0.40 },
        }
    }
}
