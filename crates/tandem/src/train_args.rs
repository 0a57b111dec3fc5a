//! Flags of a training run and how they are resolved: flag, then environment, then configuration
//! file, then default.
//!
//! In: [`TrainArgs`], which clap fills from flags and environment. Out: [`TrainPlan`], in which
//! nothing is left open. Devices are checked later, by `Placement::decide`.

use crate::config::FileConfig;
use crate::corpus_args::{BatchArgs, CorpusArgs, switch};
use crate::device_args::DeviceArgs;
use crate::failure::{Advised, Context, Result};
use crate::printer::Printer;
use crate::train_plan::TrainPlan;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use tandem_device::placement::DeviceSettings;
use tandem_model::network::size::ModelSize;
use tandem_train::run::fine_tune::SourceVoice;
use tandem_train::train_settings::{Precision, TrainSettings, USUAL_EPOCHS, fine_tuning, usual_lr};
use tandem_units::{Seconds, Seed};

/// Default of the longest wait for the first batches.
const START_DELAY: Seconds = Seconds(2.0);

/// Flags of every command that runs the trainer.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct VoiceArgs {
    /// Model size [default: tiny]
    #[arg(long, value_name = "SIZE", env = "TANDEM_MODEL_SIZE", value_parser = model_size())]
    pub model_size: Option<ModelSize>,
    /// Batches whose gradients are accumulated for one optimizer step [default: 1]
    #[arg(long, value_name = "N", env = "TANDEM_GRAD_ACCUM")]
    pub grad_accum: Option<usize>,
    /// Mixed precision: off, tf32, bf16 or f16 [default: off; without a value: bf16]
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
    /// Corpus to validate on [default: held-out rows of the training corpus]
    #[arg(long, value_name = "CORPUS", env = "TANDEM_VAL_DATA")]
    pub val_data: Option<PathBuf>,
    #[command(flatten)]
    pub voice: VoiceArgs,
    /// Epochs to train [default: 100 without --max-steps]
    #[arg(long, value_name = "N", env = "TANDEM_EPOCHS")]
    pub epochs: Option<u32>,
    /// Optimizer steps to train; ends training before the epochs are over
    #[arg(long, value_name = "N", env = "TANDEM_MAX_STEPS")]
    pub max_steps: Option<u64>,
    /// Peak learning rate; for size tiny 0.002, with --from 0.0003 [default: 0.001]
    #[arg(long, value_name = "RATE", env = "TANDEM_LR", allow_hyphen_values = true)]
    pub lr: Option<f64>,
    /// Final learning rate, as a share of the peak [default: 0.05]
    #[arg(long, value_name = "SHARE", env = "TANDEM_FINAL_LR", allow_hyphen_values = true)]
    pub final_lr: Option<f64>,
    /// Warm-up steps until the peak learning rate; with --from 50 [default: 100]
    #[arg(long, value_name = "N", env = "TANDEM_WARMUP_STEPS")]
    pub warmup_steps: Option<u64>,
    /// Weight decay [default: 0.01]
    #[arg(long, value_name = "SHARE", env = "TANDEM_WEIGHT_DECAY", allow_hyphen_values = true)]
    pub weight_decay: Option<f64>,
    /// Gradient clipping: largest norm; 0: off [default: 1]
    #[arg(long, value_name = "NORM", env = "TANDEM_CLIP", allow_hyphen_values = true)]
    pub clip: Option<f64>,
    /// Decay of the exponential moving average (EMA) of the weights; 0: off [default: 0.999]
    #[arg(long, value_name = "SHARE", env = "TANDEM_EMA_DECAY", allow_hyphen_values = true)]
    pub ema_decay: Option<f64>,
    /// Validations without improvement after which training stops early; 0: never [default: 0]
    #[arg(long, value_name = "N", env = "TANDEM_PATIENCE")]
    pub patience: Option<u32>,
    /// Recogniser that listens to every validation: a command that gets WAV files and prints a line
    /// for each, or the address (http://) of an OpenAI-style transcription server. The best checkpoint
    /// and --patience then follow its character errors; `none`: nobody listens [default: none]
    #[arg(long, value_name = "COMMAND|URL", env = "TANDEM_JUDGE")]
    pub judge: Option<String>,
    /// Consecutive steps with NaN or infinite gradients after which training fails [default: 20]
    #[arg(long, value_name = "N", env = "TANDEM_NAN_LIMIT")]
    pub nan_limit: Option<u32>,
    /// Steps between two weight snapshots of the aligner [default: 10]
    #[arg(long, value_name = "N", env = "TANDEM_ALIGN_EVERY")]
    pub align_every: Option<u64>,
    /// Steps between a snapshot and the first step that uses it [default: 10]
    #[arg(long, value_name = "N", env = "TANDEM_ALIGN_LAG")]
    pub align_lag: Option<u64>,
    /// Steps at the start that use flat-start alignments instead of the model's; with --from 0
    /// [default: 300]
    #[arg(long, value_name = "N", env = "TANDEM_ALIGN_FLAT_START")]
    pub align_flat_start: Option<u64>,
    /// Steps between two validations [default: 500]
    #[arg(long, value_name = "N", env = "TANDEM_VALIDATE_EVERY")]
    pub validate_every: Option<u64>,
    /// Steps between two audio samples [default: 1000]
    #[arg(long, value_name = "N", env = "TANDEM_SAMPLE_EVERY")]
    pub sample_every: Option<u64>,
    /// Steps between two checkpoints [default: 500]
    #[arg(long, value_name = "N", env = "TANDEM_CHECKPOINT_EVERY")]
    pub checkpoint_every: Option<u64>,
    /// Checkpoints to keep, in addition to the best one [default: 3]
    #[arg(long, value_name = "N", env = "TANDEM_KEEP")]
    pub keep: Option<usize>,
    /// Run directory for checkpoints, audio samples and the run record [default: a new directory
    /// runs/NAME-N, with a name from corpus, model size and batch size]
    #[arg(long, value_name = "DIR", env = "TANDEM_CHECKPOINT_DIR")]
    pub checkpoint_dir: Option<PathBuf>,
    /// Voice to fine-tune: a run directory of `tandem train` (its best checkpoint is used), or a
    /// checkpoint; size, mel settings and symbols are those of the voice
    #[arg(long, value_name = "VOICE", env = "TANDEM_FROM")]
    pub from: Option<PathBuf>,
    /// Resume from the latest checkpoint in the run directory [without --checkpoint-dir: in the
    /// newest one below runs]
    #[arg(long)]
    pub resume: bool,
    /// Longest wait for the first batches before training starts, in seconds [default: 2.0]
    #[arg(
        long,
        value_name = "SECONDS",
        env = "TANDEM_MODEL_START_DELAY",
        allow_hyphen_values = true
    )]
    pub model_start_delay: Option<f64>,
    /// Adapt workers and pipeline depth during training [default: true]
    #[arg(
        long,
        value_name = "BOOL",
        env = "TANDEM_ADAPT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = switch(),
        overrides_with = "no_adapt"
    )]
    pub adapt: Option<bool>,
    /// Do not adapt workers and pipeline depth
    #[arg(long, overrides_with = "adapt")]
    pub no_adapt: bool,
    #[command(flatten, next_help_heading = "Corpus")]
    pub corpus: CorpusArgs,
    #[command(flatten, next_help_heading = "Batches")]
    pub batch: BatchArgs,
    #[command(flatten)]
    pub devices: DeviceArgs,
}

impl TrainArgs {
    /// Resolves all settings. Does not read the corpus.
    pub fn resolve(&self, out: &mut Printer) -> Result<TrainPlan> {
        self.resolve_over(FileConfig::read(self.corpus.config.as_deref(), out)?)
    }

    /// The same with a configuration file that is already read.
    pub fn resolve_over(&self, file: FileConfig) -> Result<TrainPlan> {
        let file = self.with_voice_settings(file)?;
        let Some(train_data) = self.train_data.clone().or_else(|| file.train_data.clone()) else {
            let advice = "name one with `--train-data`; `demo` is the built-in corpus";
            return Err(Advised::new("no training corpus is given", advice).into());
        };
        let val_data = self.val_data.clone().or_else(|| file.val_data.clone());
        let mut corpus = self.corpus.resolve_over(file, &train_data)?;
        if val_data.is_some() {
            // With a validation corpus, held-out rows would be used for nothing.
            corpus.data.corpus.eval_share = 0.0;
        }
        let file = &corpus.file;
        let batches = self.batch.resolve(&corpus, self.devices.buffer_size)?;
        corpus.data.mel.validate()?;
        let (train, notes) = self.train_settings(&file.train);
        train.validate()?;
        let devices = self.devices.resolve(&file.devices)?;
        let devices = DeviceSettings { products: train.precision.products(), ..devices };
        Ok(TrainPlan {
            train_data,
            val_data,
            batch: batches.batch,
            buffers: batches.buffers,
            adapt: !self.no_adapt && self.adapt.or(file.adapt).unwrap_or(true),
            start_delay: self.start_delay(file.model_start_delay)?,
            train,
            devices,
            resume: self.resume,
            notes,
            corpus: corpus.corpus,
            data: corpus.data,
            prepare: corpus.prepare,
        })
    }

    /// Settings of the voice to fine-tune, where the file does not set them. A file that names the voice and its size is
    /// the `config.toml` of a run: it has all of them, and the voice may have been moved away since.
    fn with_voice_settings(&self, mut file: FileConfig) -> Result<FileConfig> {
        file.train.from_voice = self.from.clone().or(file.train.from_voice);
        let set = file.set_keys.clone();
        let train = &mut file.train;
        let Some(from) = train.from_voice.clone() else {
            if !set.contains("train.optimizer.lr") {
                train.optimizer.lr = usual_lr(self.voice.model_size.unwrap_or(train.model_size));
            }
            return Ok(file);
        };
        if !set.contains("train.optimizer.lr") {
            train.optimizer.lr = fine_tuning::LR;
        }
        if !set.contains("train.optimizer.warmup_steps") {
            train.optimizer.warmup_steps = fine_tuning::WARMUP_STEPS;
        }
        if !set.contains("train.alignment.flat_start") {
            train.alignment.flat_start = fine_tuning::FLAT_START;
        }
        if set.contains("train.from_voice") && set.contains("train.model_size") {
            return Ok(file);
        }
        let voice = SourceVoice::read_document(&from)
            .with_context(|| format!("cannot fine-tune `{}`", from.display()))?;
        if !set.contains("train.model_size") {
            file.train.model_size = voice.size;
        }
        if !set.contains_any_of("mel") {
            file.mel = voice.mel;
        }
        if !set.contains_any_of("audio") {
            file.audio = voice.audio;
        }
        // `text.symbols` is the earlier name of the key.
        if !set.contains("text.pronunciation") && !set.contains("text.symbols") {
            file.text.pronunciation = voice.text.pronunciation;
        }
        if !set.contains("text.diacritics") {
            file.text.diacritics = voice.text.diacritics;
        }
        Ok(file)
    }

    /// The training settings, and notes about defaults that were chosen.
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
        train.judge = self.judge.clone().or(train.judge).filter(|judge| judge != "none");
        set(&mut train.nan_limit, self.nan_limit);
        set(&mut train.precision, self.voice.mixed_precision);
        set(&mut train.alignment.every, self.align_every);
        set(&mut train.alignment.lag, self.align_lag);
        set(&mut train.alignment.flat_start, self.align_flat_start);
        set(&mut train.validate_every, self.validate_every);
        set(&mut train.sample_every, self.sample_every);
        set(&mut train.checkpoint_every, self.checkpoint_every);
        set(&mut train.keep, self.keep);
        train.checkpoint_dir = self.checkpoint_dir.clone().or(train.checkpoint_dir);
        let mut notes = Vec::new();
        if train.epochs.is_none() && train.max_steps.is_none() {
            train.epochs = Some(USUAL_EPOCHS);
            notes.push(format!(
                "neither `--epochs` nor `--max-steps` is given: training for {USUAL_EPOCHS} epochs"
            ));
        }
        (train, notes)
    }

    fn start_delay(&self, file: Option<f64>) -> Result<Seconds, Advised> {
        let delay = self.model_start_delay.or(file).map_or(START_DELAY, Seconds);
        // Longer than any start, and within the range of `Duration`.
        if (0.0..=86_400.0).contains(&delay.0) {
            return Ok(delay);
        }
        let fact = format!("`model_start_delay` is {} s, expected 0 to 86400", delay.0);
        Err(Advised::new(
            fact,
            "correct `--model-start-delay`, or remove it for the default of 2 s",
        ))
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
    PossibleValuesParser::new(["off", "tf32", "bf16", "f16"]).map(|name| match name.as_str() {
        "tf32" => Precision::Tf32,
        "bf16" => Precision::Bf16,
        "f16" => Precision::F16,
        _ => Precision::F32,
    })
}

#[cfg(test)]
pub mod tests;
