//! How a voice is trained. All values are resolved: an `Option` never means "not specified".
//!
//! In: flags, environment and files, resolved by the program. Out: plain values for the trainer.

use crate::TrainError;
use crate::judge::Judge;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tandem_device::backend::F32Products;
use tandem_model::Device;
use tandem_model::network::layers::Compute;
use tandem_model::network::size::ModelSize;
use tandem_units::Seed;

/// Everything that decides how the model is trained. [`crate::DataSettings`] decides on the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    pub model_size: ModelSize,
    /// Stop after this many steps; none: after `epochs`.
    pub max_steps: Option<u64>,
    /// Stop after this many epochs; none: after `max_steps`.
    pub epochs: Option<u32>,
    /// Batches whose gradients are accumulated for one step.
    pub grad_accum: usize,
    pub seed: Seed,
    pub optimizer: OptimizerSettings,
    pub alignment: AlignmentSettings,
    /// Decay of the exponential moving average of the weights; 0: no average.
    pub ema_decay: f64,
    /// Validations without improvement after which the run stops; none: never.
    pub patience: Option<u32>,
    /// A recogniser that listens to validations, as a command or an address; none: nobody listens.
    pub judge: Option<String>,
    /// Consecutive steps with NaN or infinite gradients after which the run stops.
    pub nan_limit: u32,
    pub precision: Precision,
    /// Steps between two validations.
    pub validate_every: u64,
    /// Steps between two syntheses of samples.
    pub sample_every: u64,
    /// Steps between two checkpoints.
    pub checkpoint_every: u64,
    /// Checkpoints that are retained, besides the best one.
    pub keep: usize,
    /// Directory of checkpoints, samples and the run record; none: a new one for each run.
    pub checkpoint_dir: Option<PathBuf>,
    /// The voice to fine-tune; none: new weights.
    pub from_voice: Option<PathBuf>,
}

/// Defaults of a run that starts from a trained voice. Its weights are good already: a high rate would destroy them, and
/// they align the corpus better than a flat start.
pub mod fine_tuning {
    pub const LR: f64 = 3e-4;
    pub const WARMUP_STEPS: u64 = 50;
    pub const FLAT_START: u64 = 0;
}

/// The peak learning rate of a new voice of this size, where none is configured. That of `tiny` was chosen by word errors
/// (docs/training.md) and is a quarter of a rate that diverges. Larger voices were not measured.
pub fn usual_lr(size: ModelSize) -> f64 {
    match size {
        ModelSize::Tiny => 2e-3,
        _ => OptimizerSettings::default().lr,
    }
}

/// AdamW with linear warm-up and cosine decay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerSettings {
    /// Peak learning rate.
    pub lr: f64,
    /// Final learning rate, as a share of the peak.
    pub final_lr: f64,
    /// Steps until the peak learning rate.
    pub warmup_steps: u64,
    pub weight_decay: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    pub epsilon: f64,
    /// Maximum norm of the gradient over all weights; 0: no clipping.
    pub clip: f64,
}

/// Alignment runs ahead of the step, with the weights of a fixed earlier step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AlignmentSettings {
    /// Steps between two snapshots of the text encoder.
    pub every: u64,
    /// Age of a snapshot, in steps, at the first step that uses it.
    pub lag: u64,
    /// Steps at the start that are aligned by the flat start: see `tandem_model::alignment::flat_start`.
    pub flat_start: u64,
}

impl AlignmentSettings {
    /// Steps whose batches can be aligned before the first step of a run that continues after `step` steps. Later
    /// ones need weights that no step has made yet.
    pub fn steps_ahead(&self, step: u64) -> u64 {
        self.lag.max(self.flat_start.saturating_sub(step)).max(1)
    }
}

/// Float type of the model's computation. The optimizer's weights are always 32-bit floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits throughout.
    #[default]
    F32,
    /// 32 bits, with matrix products of the model device in TF32.
    Tf32,
    /// bfloat16 in the blocks.
    Bf16,
    /// Half floats in the blocks, losses scaled dynamically.
    F16,
}

impl Precision {
    pub fn compute(self) -> Compute {
        match self {
            Precision::F32 | Precision::Tf32 => Compute::Full,
            Precision::Bf16 => Compute::Bf16,
            Precision::F16 => Compute::F16,
        }
    }

    /// What the model device must be opened with.
    pub fn products(self) -> F32Products {
        match self {
            Precision::Tf32 => F32Products::Tf32,
            _ => F32Products::Full,
        }
    }

    /// Fails where the device does not support this float type.
    pub fn check(self, device: &Device) -> Result<(), TrainError> {
        match self.compute().is_supported_by(device) {
            true => Ok(()),
            false => Err(TrainError::Precision { requested: self }),
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
            judge: None,
            nan_limit: 20,
            precision: Precision::F32,
            validate_every: 500,
            sample_every: 1000,
            checkpoint_every: 500,
            keep: 3,
            checkpoint_dir: None,
            from_voice: None,
        }
    }
}

/// Epochs where neither epochs nor steps are configured.
pub const USUAL_EPOCHS: u32 = 100;

impl TrainSettings {
    /// Fails where a value is out of range, before any work is done.
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
        if let Some(judge) = &self.judge {
            Judge::parse(judge)?;
        }
        let rates = &self.optimizer;
        let values = [
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
        values.into_iter().try_for_each(|(key, flag, value, range)| range.check(key, flag, value))
    }
}

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
        // NaN and infinity are outside every range.
        let (is_in_range, expected) = match self {
            Range::AtLeastOne => (value >= 1.0, "1 or more"),
            Range::AboveZero => (value > 0.0, "a number above 0"),
            Range::FromZero => (value >= 0.0, "0 or more"),
            Range::Share => ((0.0..=1.0).contains(&value), "a share from 0 to 1"),
            Range::BelowOne => ((0.0..1.0).contains(&value), "0 or more, and less than 1"),
        };
        if is_in_range && value.is_finite() {
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
    /// The step of the snapshot that aligns the batch of `step`. Steps are counted from 0.
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
    fn alignment_runs_ahead_by_the_lag_or_the_rest_of_the_flat_start() {
        let settings = |lag, flat_start| AlignmentSettings { every: 10, lag, flat_start };
        assert_eq!(settings(10, 300).steps_ahead(0), 300);
        assert_eq!(settings(10, 300).steps_ahead(295), 10);
        assert_eq!(settings(0, 0).steps_ahead(7), 1);
    }

    #[test]
    fn a_value_out_of_range_is_named() {
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
    fn only_the_measured_size_has_a_rate_of_its_own() {
        assert_eq!(usual_lr(ModelSize::Tiny), 2e-3);
        let usual = OptimizerSettings::default().lr;
        for size in [ModelSize::Small, ModelSize::Normal, ModelSize::Big, ModelSize::Micro] {
            assert_eq!(usual_lr(size), usual);
        }
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
