//! How a voice is trained: what was decided, no `Option` that only means "not said".
//!
//! In: flags, environment and files, resolved by the program. Out: plain numbers for the trainer.

use crate::TrainError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tandem_model::Device;
use tandem_model::network::layers::Compute;
use tandem_model::network::size::ModelSize;
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
    /// Steps at the start that are aligned without the voice: see `tandem_model::alignment::flat_start`.
    pub flat_start: u64,
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
        match self.compute().is_supported_by(device) {
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

/// Epochs where neither epochs nor steps are given.
pub const USUAL_EPOCHS: u32 = 100;

impl TrainSettings {
    /// Refuses what cannot be carried out, before any work is done.
    pub fn validate(&self) -> Result<(), TrainError> {
        let counts = [
            ("train.epochs", "--epochs", self.epochs.map_or(1, u64::from)),
            ("train.max_steps", "--max-steps", self.max_steps.unwrap_or(1)),
            ("train.grad_accum", "--grad-accum", self.grad_accum as u64),
            ("train.patience", "--patience", self.patience.map_or(1, u64::from)),
            ("train.nan_limit", "--nan-limit", u64::from(self.nan_limit)),
            ("train.validate_every", "--validate-every", self.validate_every),
            ("train.sample_every", "--sample-every", self.sample_every),
            ("train.checkpoint_every", "--checkpoint-every", self.checkpoint_every),
            ("train.keep", "--keep", self.keep as u64),
            ("train.alignment.every", "--align-every", self.alignment.every),
        ];
        for (key, flag, count) in counts {
            Range::AtLeastOne.check(key, Some(flag), count as f64)?;
        }
        let rates = &self.optimizer;
        let numbers = [
            ("train.ema_decay", Some("--ema-decay"), self.ema_decay, Range::BelowOne),
            ("train.optimizer.lr", Some("--lr"), rates.lr, Range::AboveZero),
            ("train.optimizer.final_lr", Some("--final-lr"), rates.final_lr, Range::Share),
            (
                "train.optimizer.weight_decay",
                Some("--weight-decay"),
                rates.weight_decay,
                Range::FromZero,
            ),
            ("train.optimizer.clip", Some("--clip"), rates.clip, Range::FromZero),
            ("train.optimizer.beta1", None, rates.beta1, Range::BelowOne),
            ("train.optimizer.beta2", None, rates.beta2, Range::BelowOne),
            ("train.optimizer.epsilon", None, rates.epsilon, Range::AboveZero),
        ];
        numbers.into_iter().try_for_each(|(key, flag, value, range)| range.check(key, flag, value))
    }
}

/// What a number may be.
#[derive(Clone, Copy)]
enum Range {
    AtLeastOne,
    AboveZero,
    FromZero,
    Share,
    BelowOne,
}

impl Range {
    fn check(
        self,
        key: &'static str,
        flag: Option<&'static str>,
        value: f64,
    ) -> Result<(), TrainError> {
        // NaN is in no range, infinity in none of ours.
        let (holds, expected) = match self {
            Range::AtLeastOne => (value >= 1.0, "1 or more"),
            Range::AboveZero => (value > 0.0, "a number above 0"),
            Range::FromZero => (value >= 0.0, "0 or more"),
            Range::Share => ((0.0..=1.0).contains(&value), "a share from 0 to 1"),
            Range::BelowOne => ((0.0..1.0).contains(&value), "0 or more, and less than 1"),
        };
        if holds && value.is_finite() {
            return Ok(());
        }
        Err(TrainError::BadSetting { key, flag, value: value.to_string(), expected })
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
        AlignmentSettings { every: 10, lag: 10, flat_start: 300 }
    }
}

impl AlignmentSettings {
    /// Steps done by the weights that align the batch of this step (steps are counted from 0).
    pub fn snapshot_for(&self, step: u64) -> u64 {
        let every = self.every.max(1);
        step.saturating_sub(self.lag) / every * every
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut TrainSettings), line: &str) {
        let mut settings = TrainSettings::default();
        change(&mut settings);
        assert_eq!(settings.validate().unwrap_err().to_string(), line);
    }

    #[test]
    fn settings_that_cannot_be_carried_out_are_named() {
        assert!(TrainSettings::default().validate().is_ok());
        check(|s| s.grad_accum = 0, "`train.grad_accum` is 0, expected 1 or more");
        check(|s| s.max_steps = Some(0), "`train.max_steps` is 0, expected 1 or more");
        check(|s| s.epochs = Some(0), "`train.epochs` is 0, expected 1 or more");
        check(|s| s.keep = 0, "`train.keep` is 0, expected 1 or more");
        let lr = |value| move |s: &mut TrainSettings| s.optimizer.lr = value;
        check(lr(0.0), "`train.optimizer.lr` is 0, expected a number above 0");
        check(lr(-1e-4), "`train.optimizer.lr` is -0.0001, expected a number above 0");
        check(lr(f64::NAN), "`train.optimizer.lr` is NaN, expected a number above 0");
        check(lr(f64::INFINITY), "`train.optimizer.lr` is inf, expected a number above 0");
        check(|s| s.ema_decay = 1.0, "`train.ema_decay` is 1, expected 0 or more, and less than 1");
    }

    #[test]
    fn a_snapshot_is_a_pure_function_of_the_step() {
        let every_ten = AlignmentSettings { every: 10, lag: 10, flat_start: 0 };
        let used: Vec<u64> = [0, 9, 10, 19, 20, 29, 30].map(|s| every_ten.snapshot_for(s)).into();
        assert_eq!(used, [0, 0, 0, 0, 10, 10, 20]);
        let at_once = AlignmentSettings { every: 1, lag: 0, flat_start: 0 };
        assert_eq!([0, 1, 7].map(|step| at_once.snapshot_for(step)), [0, 1, 7]);
    }
}
