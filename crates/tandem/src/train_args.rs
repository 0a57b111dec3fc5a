//! What was typed for a training run, and what was decided: flag, then environment, then
//! configuration file, then default.
//!
//! In: [`TrainArgs`], which clap fills from flags and environment. Out: [`TrainPlan`], in which
//! nothing is open. What the machine has is looked at later, when devices are settled.

use crate::config::FileConfig;
use crate::corpus_args::{BatchArgs, CorpusArgs};
use crate::device_args::DeviceArgs;
use crate::failure::{Advised, Result};
use crate::train_plan::TrainPlan;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use tandem_model::network::size::ModelSize;
use tandem_train::train_settings::{Precision, TrainSettings, USUAL_EPOCHS};
use tandem_units::{Seconds, Seed};

/// The longest wait for the first batches, where nothing is said.
const START_DELAY: Seconds = Seconds(2.0);

/// Flags of every command that runs the trainer: which voice, and how a step computes.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct VoiceArgs {
    /// Size of the voice [default: tiny]
    #[arg(long, value_name = "SIZE", env = "TANDEM_MODEL_SIZE", value_parser = model_size())]
    pub model_size: Option<ModelSize>,
    /// Batches whose gradients make one step [default: 1]
    #[arg(long, value_name = "N", env = "TANDEM_GRAD_ACCUM")]
    pub grad_accum: Option<usize>,
    /// Compute in 16 bits where that is enough: off, bf16 or f16 [default: off; alone: bf16]
    #[arg(
        long,
        value_name = "KIND",
        env = "TANDEM_MIXED_PRECISION",
        num_args = 0..=1,
        default_missing_value = "bf16",
        value_parser = precision()
    )]
    pub mixed_precision: Option<Precision>,
}

/// Flags of a training run.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Training")]
pub struct TrainArgs {
    /// Corpus to train on: a directory, a manifest in one, or `demo`
    #[arg(long, value_name = "CORPUS", env = "TANDEM_TRAIN_DATA")]
    pub train_data: Option<PathBuf>,
    /// Corpus to validate on [default: the rows of the training corpus that are held out]
    #[arg(long, value_name = "CORPUS", env = "TANDEM_VAL_DATA")]
    pub val_data: Option<PathBuf>,
    /// Which voice, and how a step computes.
    #[command(flatten)]
    pub voice: VoiceArgs,
    /// Passes over the corpus [default: 100 without --max-steps]
    #[arg(long, value_name = "N", env = "TANDEM_EPOCHS")]
    pub epochs: Option<u32>,
    /// Steps after which training ends, whatever is left of the epochs
    #[arg(long, value_name = "N", env = "TANDEM_MAX_STEPS")]
    pub max_steps: Option<u64>,
    /// Highest learning rate [default: 0.001]
    #[arg(long, value_name = "RATE", env = "TANDEM_LR", allow_hyphen_values = true)]
    pub lr: Option<f64>,
    /// Learning rate at the end, as a share of the highest [default: 0.05]
    #[arg(long, value_name = "SHARE", env = "TANDEM_FINAL_LR", allow_hyphen_values = true)]
    pub final_lr: Option<f64>,
    /// Steps until the highest learning rate is reached [default: 100]
    #[arg(long, value_name = "N", env = "TANDEM_WARMUP_STEPS")]
    pub warmup_steps: Option<u64>,
    /// Pull of the weights towards zero [default: 0.01]
    #[arg(long, value_name = "SHARE", env = "TANDEM_WEIGHT_DECAY", allow_hyphen_values = true)]
    pub weight_decay: Option<f64>,
    /// Longest gradient; 0: any length [default: 1]
    #[arg(long, value_name = "NORM", env = "TANDEM_CLIP", allow_hyphen_values = true)]
    pub clip: Option<f64>,
    /// Weight of the past in the mean of the weights; 0: no such mean [default: 0.999]
    #[arg(long, value_name = "SHARE", env = "TANDEM_EMA_DECAY", allow_hyphen_values = true)]
    pub ema_decay: Option<f64>,
    /// Validations without progress after which training ends; 0: never [default: 0]
    #[arg(long, value_name = "N", env = "TANDEM_PATIENCE")]
    pub patience: Option<u32>,
    /// Steps in a row without a usable number after which training ends [default: 20]
    #[arg(long, value_name = "N", env = "TANDEM_NAN_LIMIT")]
    pub nan_limit: Option<u32>,
    /// Steps between two snapshots of the weights that align text to sound [default: 10]
    #[arg(long, value_name = "N", env = "TANDEM_ALIGN_EVERY")]
    pub align_every: Option<u64>,
    /// Steps that a snapshot is older than the first step that uses it [default: 10]
    #[arg(long, value_name = "N", env = "TANDEM_ALIGN_LAG")]
    pub align_lag: Option<u64>,
    /// Steps at the start that are aligned by mean sounds, before the voice knows anything
    /// [default: 300]
    #[arg(long, value_name = "N", env = "TANDEM_ALIGN_FLAT_START")]
    pub align_flat_start: Option<u64>,
    /// Steps between two validations [default: 500]
    #[arg(long, value_name = "N", env = "TANDEM_VALIDATE_EVERY")]
    pub validate_every: Option<u64>,
    /// Steps between two samples to listen to [default: 1000]
    #[arg(long, value_name = "N", env = "TANDEM_SAMPLE_EVERY")]
    pub sample_every: Option<u64>,
    /// Steps between two checkpoints [default: 500]
    #[arg(long, value_name = "N", env = "TANDEM_CHECKPOINT_EVERY")]
    pub checkpoint_every: Option<u64>,
    /// Checkpoints kept besides the best one [default: 3]
    #[arg(long, value_name = "N", env = "TANDEM_KEEP")]
    pub keep: Option<usize>,
    /// Where checkpoints, samples and the record go [default: run]
    #[arg(long, value_name = "DIR", env = "TANDEM_CHECKPOINT_DIR")]
    pub checkpoint_dir: Option<PathBuf>,
    /// Go on from the newest checkpoint in that directory
    #[arg(long)]
    pub resume: bool,
    /// Longest wait for the first batches, in seconds [default: 2.0]
    #[arg(
        long,
        value_name = "SECONDS",
        env = "TANDEM_MODEL_START_DELAY",
        allow_hyphen_values = true
    )]
    pub model_start_delay: Option<f64>,
    /// Let workers and depth rise where that pays [default: true]
    #[arg(
        long,
        value_name = "BOOL",
        env = "TANDEM_ADAPT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        overrides_with = "no_adapt"
    )]
    pub adapt: Option<bool>,
    /// Keep workers and depth as they are
    #[arg(long, overrides_with = "adapt")]
    pub no_adapt: bool,
    /// Which corpus, and how it is read.
    #[command(flatten, next_help_heading = "Corpus")]
    pub corpus: CorpusArgs,
    /// How rows become batches.
    #[command(flatten, next_help_heading = "Batches")]
    pub batch: BatchArgs,
    /// Where the work happens.
    #[command(flatten)]
    pub devices: DeviceArgs,
}

impl TrainArgs {
    /// Decides everything. Nothing of the corpus is read yet.
    pub fn resolve(&self) -> Result<TrainPlan> {
        self.resolve_over(FileConfig::read(self.corpus.config.as_deref())?)
    }

    /// Decides everything, over a configuration that was read before.
    pub fn resolve_over(&self, file: FileConfig) -> Result<TrainPlan> {
        let Some(train_data) = self.train_data.clone().or_else(|| file.train_data.clone()) else {
            let advice = "name one with `--train-data`; `demo` is the built-in one";
            return Err(Advised::new("there is no corpus to train on", advice).into());
        };
        let val_data = self.val_data.clone().or_else(|| file.val_data.clone());
        let mut corpus = self.corpus.resolve_over(file, &train_data)?;
        if val_data.is_some() {
            // Rows that nobody would be asked about are better learned from.
            corpus.data.corpus.eval_share = 0.0;
        }
        let file = &corpus.file;
        let batches = self.batch.resolve(&corpus);
        batches.batch.validate()?;
        corpus.data.mel.validate()?;
        let (train, said) = self.train_settings(&file.train);
        train.validate()?;
        Ok(TrainPlan {
            train_data,
            val_data,
            batch: batches.batch,
            depth: batches.depth,
            adapt: !self.no_adapt && self.adapt.or(file.adapt).unwrap_or(true),
            start_delay: self.start_delay(file.model_start_delay)?,
            train,
            devices: self.devices.resolve(&file.devices)?,
            resume: self.resume,
            said,
            corpus: corpus.corpus,
            data: corpus.data,
            prepare: corpus.prepare,
        })
    }

    /// What decides how the model learns, and what was chosen because nothing was said.
    fn train_settings(&self, file: &TrainSettings) -> (TrainSettings, Vec<String>) {
        let mut train = file.clone();
        set(&mut train.model_size, self.voice.model_size);
        train.epochs = self.epochs.or(train.epochs);
        train.max_steps = self.max_steps.or(train.max_steps);
        set(&mut train.grad_accum, self.voice.grad_accum);
        set(&mut train.seed, self.batch.seed.map(Seed));
        set(&mut train.optimizer.lr, self.lr);
        set(&mut train.optimizer.final_lr, self.final_lr);
        set(&mut train.optimizer.warmup_steps, self.warmup_steps);
        set(&mut train.optimizer.weight_decay, self.weight_decay);
        set(&mut train.optimizer.clip, self.clip);
        set(&mut train.ema_decay, self.ema_decay);
        train.patience = self.patience.or(train.patience).filter(|count| *count > 0);
        set(&mut train.nan_limit, self.nan_limit);
        set(&mut train.precision, self.voice.mixed_precision);
        set(&mut train.alignment.every, self.align_every);
        set(&mut train.alignment.lag, self.align_lag);
        set(&mut train.alignment.flat_start, self.align_flat_start);
        set(&mut train.validate_every, self.validate_every);
        set(&mut train.sample_every, self.sample_every);
        set(&mut train.checkpoint_every, self.checkpoint_every);
        set(&mut train.keep, self.keep);
        set(&mut train.checkpoint_dir, self.checkpoint_dir.clone());
        let mut said = Vec::new();
        if train.epochs.is_none() && train.max_steps.is_none() {
            train.epochs = Some(USUAL_EPOCHS);
            said.push(format!(
                "neither `--epochs` nor `--max-steps` is given: training for {USUAL_EPOCHS} epochs"
            ));
        }
        (train, said)
    }

    fn start_delay(&self, file: Option<f64>) -> Result<Seconds, Advised> {
        let delay = self.model_start_delay.or(file).map_or(START_DELAY, Seconds);
        // Longer than any start, and within what a clock can count.
        if (0.0..=86_400.0).contains(&delay.0) {
            return Ok(delay);
        }
        let fact = format!("`model_start_delay` is {} s, expected 0 to 86400", delay.0);
        Err(Advised::new(fact, "correct `--model-start-delay`, or leave it out for 2 s"))
    }
}

fn set<T>(setting: &mut T, typed: Option<T>) {
    if let Some(typed) = typed {
        *setting = typed;
    }
}

pub(crate) fn model_size() -> impl TypedValueParser<Value = ModelSize> {
    let shown = ModelSize::ALL.map(|size| PossibleValue::new(size.name()));
    let hidden = PossibleValue::new(ModelSize::Micro.name()).hide(true);
    PossibleValuesParser::new(shown.into_iter().chain([hidden])).map(|name| {
        let of_name = |size: &ModelSize| size.name() == name;
        let mut sizes = ModelSize::ALL.into_iter().chain([ModelSize::Micro]);
        sizes.find(of_name).unwrap_or_default()
    })
}

fn precision() -> impl TypedValueParser<Value = Precision> {
    PossibleValuesParser::new(["off", "bf16", "f16"]).map(|name| match name.as_str() {
        "bf16" => Precision::Bf16,
        "f16" => Precision::F16,
        _ => Precision::F32,
    })
}

#[cfg(test)]
pub mod tests;
