//! How a voice is trained. All values are resolved: an `Option` never means "not specified".
//!
//! In: flags, environment and files, resolved by the program. Out: plain values for the trainer. A setting is declared
//! here alone: its flag, variable, key, help, range and documentation follow from the declaration.

use crate::TrainError;
use crate::judge::Judge;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tandem_device::backend::F32Products;
use tandem_model::Device;
use tandem_model::network::layers::Compute;
use tandem_model::network::size::ModelSize;
use tandem_settings::{OnResume, Range, SettingValue, ValueKind, settings};
use tandem_units::Seed;

settings! {
    /// Everything that decides how the model is trained. [`crate::DataSettings`] decides on the data.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct TrainSettings in "train" {
        /// Model size
        model_size: ModelSize = ModelSize::Tiny, "--model-size SIZE" {
            on_resume: OnResume::Compare,
            myxtts: &["tm.model_size"],
        }
        /// Optimizer steps to train; ends training before the epochs are over
        max_steps: Option<u64> = None, "--max-steps N" {
            range: Range::AtLeastOne,
            on_resume: OnResume::Reschedule,
            myxtts: &["t.max_steps"],
        }
        /// Epochs to train
        epochs: Option<u32> = None, "--epochs N" {
            range: Range::AtLeastOne,
            default_in_words: "100 without --max-steps",
            on_resume: OnResume::Reschedule,
            myxtts: &["t.epochs", "t.max_epochs"],
        }
        /// Batches whose gradients are accumulated for one optimizer step
        grad_accum: usize = 1, "--grad-accum N" {
            range: Range::AtLeastOne,
            on_resume: OnResume::Compare,
            myxtts: &["td.gradient_accumulation_steps", "t.accumulate_grad_batches"],
        }
        /// Random seed of the weights and the noise; the flag sets `batch.seed` too
        seed: Seed = Seed(0), "" {
            range: Range::FromZero,
            same_flag_as: "batch.seed",
            on_resume: OnResume::Compare,
        }
        /// Decay of the exponential moving average (EMA) of the weights; 0: off
        ema_decay: f64 = 0.999, "--ema-decay SHARE" {
            range: Range::BelowOne,
            on_resume: OnResume::Warn,
            heading: OPTIMIZER,
        }
        /// Validations without improvement after which training stops early; 0: never
        patience: Option<u32> = None, "--patience N" {
            range: Range::FromZero,
            default_in_words: "0",
            heading: RESULTS,
            myxtts: &["t.early_stopping_patience"],
        }
        /// Recogniser that listens to every validation: a command that gets WAV files and prints a line
        /// for each, or the address (http://) of an OpenAI-style transcription server. The best checkpoint
        /// and --patience then follow its character errors; `none`: nobody listens
        judge: Option<String> = None, "--judge COMMAND|URL" { default_in_words: "none", heading: RESULTS, }
        /// Consecutive steps with NaN or infinite gradients after which training fails
        nan_limit: u32 = 20, "--nan-limit N" { range: Range::AtLeastOne, heading: OPTIMIZER, }
        /// Mixed precision: off, tf32 (an NVIDIA card since Ampere), bf16 or f16; `off` is `f32` in a file
        precision: Precision = Precision::F32, "--mixed-precision KIND" {
            default_in_words: "off; without a value: bf16",
            without_value: Some("bf16"),
            on_resume: OnResume::Warn,
        }
        /// Launch every step of a CUDA card kernel by kernel, not as a CUDA graph; changes no bit
        no_graphs: bool = false, "--no-graphs BOOL" {}
        /// Steps between two validations
        validate_every: u64 = 500, "--validate-every N" {
            range: Range::AtLeastOne,
            heading: RESULTS,
            myxtts: &["t.val_step", "t.validation_interval"],
        }
        /// Steps between two audio samples
        sample_every: u64 = 1000, "--sample-every N" { range: Range::AtLeastOne, heading: RESULTS, }
        /// Steps between two checkpoints
        checkpoint_every: u64 = 500, "--checkpoint-every N" {
            range: Range::AtLeastOne,
            heading: RESULTS,
            myxtts: &["t.save_step", "t.checkpoint_interval", "t.save_interval"],
        }
        /// Checkpoints to keep, in addition to the best one
        keep: usize = 3, "--keep N" { range: Range::AtLeastOne, heading: RESULTS, }
        /// Run directory for checkpoints, audio samples and the run record
        checkpoint_dir: Option<PathBuf> = None, "--checkpoint-dir DIR" {
            default_in_words: "a new directory runs/NAME-N, with a name from corpus, model size and batch size",
            myxtts: &["tp.checkpoint_dir", "t.checkpoint_path"],
        }
        /// Voice to fine-tune: a run directory of `tandem train` (its best checkpoint is used), or a
        /// checkpoint; size, mel settings and symbols are those of the voice
        from_voice: Option<PathBuf> = None, "--from VOICE" { on_resume: OnResume::Compare, }
        table optimizer: OptimizerSettings;
        table alignment: AlignmentSettings;
    }
}

settings! {
    /// AdamW with linear warm-up, a hold at the peak if wanted, and cosine decay.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct OptimizerSettings in "train.optimizer" {
        /// Peak learning rate; for size tiny 0.002
        lr: f64 = 1e-3, "--lr RATE" {
            range: Range::AboveZero,
            fine_tuning: Some("0.0003"),
            on_resume: OnResume::Warn,
            heading: OPTIMIZER,
            myxtts: &["t.learning_rate"],
        }
        /// Final learning rate, as a share of the peak
        final_lr: f64 = 0.05, "--final-lr SHARE" {
            range: Range::Share,
            on_resume: OnResume::Warn,
            heading: OPTIMIZER,
            myxtts: &["t.min_learning_rate"],
        }
        /// Warm-up steps until the peak learning rate
        warmup_steps: u64 = 100, "--warmup-steps N" {
            range: Range::FromZero,
            fine_tuning: Some("50"),
            on_resume: OnResume::Warn,
            heading: OPTIMIZER,
            myxtts: &["t.warmup_steps"],
        }
        /// Steps at the peak learning rate between warm-up and decay
        hold_steps: u64 = 0, "--hold-steps N" {
            range: Range::FromZero,
            on_resume: OnResume::Warn,
            heading: OPTIMIZER,
        }
        /// Weight decay
        weight_decay: f64 = 0.01, "--weight-decay SHARE" {
            range: Range::FromZero,
            on_resume: OnResume::Warn,
            heading: OPTIMIZER,
            myxtts: &["t.weight_decay"],
        }
        /// AdamW decay rate of the mean gradient
        beta1: f64 = 0.9, "" {
            range: Range::BelowOne,
            on_resume: OnResume::Warn,
            myxtts: &["t.beta1"],
        }
        /// AdamW decay rate of the mean squared gradient
        beta2: f64 = 0.98, "" {
            range: Range::BelowOne,
            on_resume: OnResume::Warn,
            myxtts: &["t.beta2"],
        }
        /// AdamW epsilon, which avoids a division by zero
        epsilon: f64 = 1e-8, "" {
            range: Range::AboveZero,
            on_resume: OnResume::Warn,
            myxtts: &["t.eps"],
        }
        /// Gradient clipping: largest norm; 0: off
        clip: f64 = 1.0, "--clip NORM" {
            range: Range::FromZero,
            on_resume: OnResume::Warn,
            heading: OPTIMIZER,
            myxtts: &["t.gradient_clip_norm", "t.gradient_clip_val"],
        }
    }
}

settings! {
    /// Alignment runs ahead of the step, with the weights of a fixed earlier step.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct AlignmentSettings in "train.alignment" {
        /// Steps between two weight snapshots of the aligner
        every: u64 = 10, "--align-every N" {
            range: Range::AtLeastOne,
            on_resume: OnResume::Warn,
            heading: ALIGNMENT,
        }
        /// Steps between a snapshot and the first step that uses it
        lag: u64 = 10, "--align-lag N" {
            range: Range::FromZero,
            on_resume: OnResume::Warn,
            heading: ALIGNMENT,
        }
        /// Steps at the start that use flat-start alignments instead of the model's
        flat_start: u64 = 300, "--align-flat-start N" {
            range: Range::FromZero,
            fine_tuning: Some("0"),
            on_resume: OnResume::Warn,
            heading: ALIGNMENT,
        }
    }
}

/// Parts of the help of `tandem train`.
const OPTIMIZER: &str = "Optimizer";
const ALIGNMENT: &str = "Alignment";
const RESULTS: &str = "Validation and checkpoints";

/// The peak learning rate of a new voice of this size, where none is configured. That of `tiny` was chosen by word errors
/// (docs/training.md) and is a quarter of a rate that diverges. Larger voices were not measured.
pub fn usual_lr(size: ModelSize) -> f64 {
    match size {
        ModelSize::Tiny => 2e-3,
        _ => OptimizerSettings::default().lr,
    }
}

impl AlignmentSettings {
    /// Steps whose batches can be aligned before the first step of a run that continues after `step` steps. Later
    /// ones need weights that no step has made yet.
    pub fn steps_ahead(&self, step: u64) -> u64 {
        self.lag.max(self.flat_start.saturating_sub(step)).max(1)
    }

    /// The step of the snapshot that aligns the batch of `step`. Steps are counted from 0.
    pub fn snapshot_for(&self, step: u64) -> u64 {
        let every = self.every.max(1);
        step.saturating_sub(self.lag) / every * every
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

impl SettingValue for Precision {
    const KIND: ValueKind = ValueKind::Word;
    const WORDS: &'static [&'static str] = &["off", "tf32", "bf16", "f16"];
    const FILE_WORDS: &'static [&'static str] = &["f32", "tf32", "bf16", "f16"];

    fn parse(text: &str) -> Result<Precision, String> {
        match text {
            "off" => Ok(Precision::F32),
            "tf32" => Ok(Precision::Tf32),
            "bf16" => Ok(Precision::Bf16),
            "f16" => Ok(Precision::F16),
            _ => Err(format!("expected {}", Precision::WORDS.join(", "))),
        }
    }

    fn text(&self) -> String {
        format!("{self:?}").to_lowercase()
    }
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

/// Epochs where neither epochs nor steps are configured.
pub const USUAL_EPOCHS: u32 = 100;

impl TrainSettings {
    /// Fails where a value is out of range, before any work is done.
    pub fn validate(&self) -> Result<(), TrainError> {
        tandem_settings::check(self)?;
        self.judge.as_deref().map(Judge::parse).transpose()?;
        Ok(())
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
