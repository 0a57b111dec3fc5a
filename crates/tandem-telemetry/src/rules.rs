//! Every threshold of verdicts, advice, checks and grades, in one place.
//!
//! In: nothing. Out: tables with the promised values as defaults, and constants. Values marked
//! "promised" are part of the contract; the others are chosen so that noise does not cause a verdict.

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

/// The smallest settings that `tandem validate` accepts without a warning; promised: 8, 8, 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReadyRules {
    /// Workers that read the corpus.
    pub workers: usize,
    /// Batches that may wait for the model.
    pub prefetch: usize,
    pub batch: usize,
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
            gain: LEAST_GAIN,
        }
    }
}

impl Default for ReadyRules {
    fn default() -> ReadyRules {
        ReadyRules { workers: 8, prefetch: 8, batch: 16 }
    }
}

/// Gains below this share of a step are noise: no advice is given for less.
pub const LEAST_GAIN: f64 = 0.02;
/// Deeper buffers than this only cost memory.
pub const DEEPEST: u64 = 16;
/// Share of the time above which communication between ranks, or one slow rank, is the bottleneck.
pub const TOO_MUCH_FOR_RANKS: f64 = 0.10;
/// Data work that slows the model by less than this share of a step is not mentioned.
pub const CONTENTION: f64 = 0.10;

/// A machine busier than this is fully loaded.
pub const FULL_MACHINE: f64 = 0.9;
/// A run with less than this share of a fully loaded machine shares it with other programs.
pub const WHOLE_MACHINE: f64 = 0.75;

/// A measurement goes along with the differences of step times from this correlation on.
pub const AGREES: f64 = 0.4;
/// In steps that other programs slow down, the run gets at most this share of its usual CPU time
/// per second.
pub const LESS_CPU: f64 = 0.9;
/// Other programs take a CPU away more often per second than usual, by this factor. Measured on two cores: 1.8 with other
/// programs, 0.8 in steps that only take longer, in which the run's own threads still take turns.
pub const MORE_OFTEN: f64 = 1.3;

/// `tandem analyze`: loading is uneven above this coefficient of variation; promised: 0.3.
pub const UNEVEN_LOADING: f64 = 0.3;
/// `tandem plan`: a second GPU is worthwhile from this gain.
pub const WORTH_A_SECOND_GPU: f64 = 0.10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promised_thresholds_are_the_defaults() {
        let rules = ProfileRules::default();
        let promised = [rules.load, rules.transfer, rules.training, rules.variation];
        assert_eq!(promised, [0.20, 0.15, 0.50, 0.30]);
        assert_eq!([rules.model_gpu, rules.data_gpu], [0.70, 0.80]);
        assert_eq!((Rules::default().every, Rules::default().variation), (100, 0.30));
        assert_eq!(ReadyRules::default(), ReadyRules { workers: 8, prefetch: 8, batch: 16 });
    }
}
