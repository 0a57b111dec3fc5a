//! The runs of a profile, and what was profiled.
//!
//! In: measured runs. Out: [`ProfileRuns`], with what they say of each other. Next: [`super::ProfileAnswer::judge`].

use crate::measured::{Measured, Phase};
use crate::predict::Setting;
use serde::{Deserialize, Serialize};
use tandem_units::Seconds;

/// Which of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// The run with the given settings.
    AsIs,
    /// The same with mel frames read from the cache.
    Cached,
    /// The same training batches from memory: no data work in the loop.
    ModelAlone,
    /// The same batches without training.
    DataAlone,
}

impl RunKind {
    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            RunKind::AsIs => "as is",
            RunKind::Cached => "features cached",
            RunKind::ModelAlone => "model alone",
            RunKind::DataAlone => "data alone",
        }
    }
}

/// How data work and training share devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Both on the CPU.
    Cpu,
    /// Both on one GPU.
    OneGpu,
    /// One GPU each.
    TwoGpus,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The corpus, as it was named.
    pub corpus: String,
    pub model_size: String,
    /// Parameters of the model.
    pub parameters: u64,
    /// Most utterances of a batch.
    pub batch_size: usize,
    /// Batches of one step.
    pub grad_accum: usize,
    /// Workers and depth.
    #[serde(flatten)]
    pub setting: Setting,
    /// Whether mel frames came from the cache already.
    pub cached: bool,
    /// How devices are shared.
    pub sharing: Sharing,
    /// Where data work happens.
    pub data_device: String,
    /// Where the model is.
    pub model_device: String,
    /// CPU cores this process may use.
    pub cores: usize,
    /// Steps left out at the beginning of each run.
    pub warmup: u64,
    /// Stages that were slowed on purpose, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowed: Vec<String>,
}

/// The runs. `cached` is absent where the run as it is was cached already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileRuns {
    /// The run with the given settings.
    pub as_is: Measured,
    /// With mel frames from the cache.
    pub cached: Option<Measured>,
    /// Training batches from memory.
    pub model_alone: Measured,
    /// Without training.
    pub data_alone: Measured,
}

impl ProfileRuns {
    /// All that there are, with their kinds.
    pub fn list(&self) -> Vec<(RunKind, &Measured)> {
        let cached = self.cached.as_ref().map(|run| (RunKind::Cached, run));
        [(RunKind::AsIs, &self.as_is)]
            .into_iter()
            .chain(cached)
            .chain([
                (RunKind::ModelAlone, &self.model_alone),
                (RunKind::DataAlone, &self.data_alone),
            ])
            .collect()
    }

    /// Measurements that contradict each other: nothing is slower alone than in the whole run.
    pub fn doubts(&self) -> Vec<String> {
        let mut found = Vec::new();
        let (whole, alone) = (self.as_is.usual(Phase::Train), self.model_alone_step());
        if alone > IMPOSSIBLE * whole {
            found.push(contradiction("training", whole, alone));
        }
        let feeding = |run: &Measured| {
            let before = [Phase::Load, Phase::Preprocess, Phase::Align, Phase::Transfer];
            before.into_iter().map(|phase| run.usual(phase)).sum::<f64>()
        };
        let (whole, alone) = (feeding(&self.as_is), feeding(&self.data_alone));
        if alone > IMPOSSIBLE * whole {
            found.push(contradiction("data work", whole, alone));
        }
        found
    }

    /// What the model alone takes for batches as large as those of the run as it is: a replay
    /// that repeats its batches may have other sizes.
    pub fn model_alone_step(&self) -> f64 {
        let ratio = match (self.as_is.padded(), self.model_alone.padded()) {
            (Some(here), Some(there)) if there > 0.0 => here / there,
            _ => 1.0,
        };
        self.model_alone.usual(Phase::Train) * ratio
    }
}

/// On an idle machine, noise is below this factor.
const IMPOSSIBLE: f64 = 1.25;

fn contradiction(what: &str, whole: f64, alone: f64) -> String {
    format!(
        "{what} took {} alone and {} in the whole run: other programs used the machine meanwhile; \
         profile again when it is idle",
        Seconds(alone),
        Seconds(whole)
    )
}
