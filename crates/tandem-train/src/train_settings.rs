//! How a voice is trained: what was decided, no `Option` that only means "not said".
//!
//! In: flags, environment and files, resolved by the program. Out: plain numbers for the trainer.

use crate::TrainError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tandem_model::Device;
use tandem_model::layers::Compute;
use tandem_model::size::ModelSize;
use tandem_units::Seed;

/// Everything that decides how the model learns. The data's settings stand beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    /// The size of the voice.
    pub model_size: ModelSize,
    /// Stop after so many steps; none: when the epochs are over.
    pub max_steps: Option<u64>,
    /// Stop after so many epochs; none: when the steps are over.
    pub epochs: Option<u32>,
    /// Batches whose gradients make one step.
    pub grad_accum: usize,
    /// What chance is drawn from.
    pub seed: Seed,
    /// How weights are changed.
    pub optimizer: OptimizerSettings,
    /// When texts are aligned to sound, and with which weights.
    pub alignment: AlignmentSettings,
    /// Weight of the past in the running mean of the weights; 0: no such mean.
    pub ema_decay: f64,
    /// Validations without progress after which the run stops; none: it goes on.
    pub patience: Option<u32>,
    /// Steps in a row with a loss or gradient that is no number, after which the run stops.
    pub nan_limit: u32,
    /// Numbers that the model computes with.
    pub precision: Precision,
    /// Steps between two validations.
    pub validate_every: u64,
    /// Steps between two sample syntheses.
    pub sample_every: u64,
    /// Steps between two checkpoints.
    pub checkpoint_every: u64,
    /// Checkpoints kept, besides the best one.
    pub keep: usize,
    /// Where checkpoints, samples and the record go.
    pub checkpoint_dir: PathBuf,
}

/// AdamW, warm-up and cosine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerSettings {
    /// The highest learning rate.
    pub lr: f64,
    /// The lowest, at the end of the cosine, as a share of the highest.
    pub final_lr: f64,
    /// Steps until the highest rate is reached.
    pub warmup_steps: u64,
    /// Pull of the weights towards zero.
    pub weight_decay: f64,
    /// Memory of the mean gradient.
    pub beta1: f64,
    /// Memory of the mean squared gradient.
    pub beta2: f64,
    /// Keeps the division away from zero.
    pub epsilon: f64,
    /// Longest gradient, over all weights; 0: any length.
    pub clip: f64,
}

/// Alignment ahead of the step, with weights of a fixed earlier step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AlignmentSettings {
    /// Steps between two snapshots of the weights that align.
    pub every: u64,
    /// Steps that a snapshot is older than the first step that uses it.
    pub lag: u64,
}

/// Numbers that the model computes with; weights are always kept in 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits throughout.
    #[default]
    F32,
    /// bfloat16 in the blocks.
    Bf16,
    /// Half floats in the blocks, losses scaled.
    F16,
}

impl Precision {
    /// As the model knows it.
    pub fn compute(self) -> Compute {
        match self {
            Precision::F32 => Compute::Full,
            Precision::Bf16 => Compute::Bf16,
            Precision::F16 => Compute::F16,
        }
    }

    /// Refuses what a device cannot compute with.
    pub fn check(self, device: &Device) -> Result<(), TrainError> {
        match self.compute().is_on(device) {
            true => Ok(()),
            false => Err(TrainError::Precision { asked: self }),
        }
    }
}

impl Default for TrainSettings {
    fn default() -> TrainSettings {
        TrainSettings {
            model_size: ModelSize::Tiny,
            max_steps: None,
            epochs: None,
            grad_accum: 1,
            seed: Seed(0),
            optimizer: OptimizerSettings::default(),
            alignment: AlignmentSettings::default(),
            ema_decay: 0.999,
            patience: None,
            nan_limit: 20,
            precision: Precision::F32,
            validate_every: 500,
            sample_every: 1000,
            checkpoint_every: 500,
            keep: 3,
            checkpoint_dir: PathBuf::from("run"),
        }
    }
}

impl Default for OptimizerSettings {
    fn default() -> OptimizerSettings {
        OptimizerSettings {
            lr: 1e-3,
            final_lr: 0.05,
            warmup_steps: 100,
            weight_decay: 0.01,
            beta1: 0.9,
            beta2: 0.98,
            epsilon: 1e-8,
            clip: 1.0,
        }
    }
}

impl Default for AlignmentSettings {
    fn default() -> AlignmentSettings {
        AlignmentSettings { every: 10, lag: 10 }
    }
}

impl AlignmentSettings {
    /// Steps done by the weights that align the batch of this step (steps are counted from 0).
    pub fn snapshot_for(&self, step: u64) -> u64 {
        let every = self.every.max(1);
        step.saturating_sub(self.lag) / every * every
    }
}
