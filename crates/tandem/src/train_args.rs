//! Flags of a training run and how they are resolved.
//!
//! In: [`TrainArgs`], which clap fills from flags and environment. Out: [`TrainPlan`], in which
//! nothing is left open. Training settings are declared in `tandem_train::train_settings`; which value counts is decided
//! by `tandem_settings::resolve`. Devices are checked later, by `Placement::decide`.

use crate::config::FileConfig;
use crate::corpus_args::{BatchArgs, CorpusArgs, switch};
use crate::device_args::DeviceArgs;
use crate::failure::{Advised, Context, Result};
use crate::printer::Printer;
use crate::setting_flags::{OfTraining, SettingFlags, refused};
use crate::train_plan::TrainPlan;
use std::path::PathBuf;
use tandem_device::inventory::Inventory;
use tandem_device::placement::{DeviceSettings, Placement};
use tandem_settings::{SettingTable, Start, resolve};
use tandem_train::run::fine_tune::SourceVoice;
use tandem_train::train_settings::{TrainSettings, USUAL_EPOCHS, usual_lr};
use tandem_units::Seconds;

/// Default of the longest wait for the first batches.
const START_DELAY: Seconds = Seconds(2.0);

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
    pub settings: SettingFlags<OfTraining>,
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
            // Devices first, as in a run: without them a corpus does not help.
            let devices = self.devices.resolve(&file.devices)?;
            if devices.data_gpu.or(devices.model_gpu).is_some() {
                Placement::decide(&devices, &Inventory::detect()).context(
                    "the requested devices cannot be used, and no training corpus is given",
                )?;
            }
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
        let (train, notes) = self.train_settings(file)?;
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

    /// The training settings, and notes about defaults that were chosen. The file has those of the voice to fine-tune.
    fn train_settings(&self, file: &FileConfig) -> Result<(TrainSettings, Vec<String>)> {
        let typed = &self.settings.typed;
        let start = match file.train.from_voice.is_some() {
            true => Start::FineTuning,
            false => Start::NewWeights,
        };
        let is_in_file = |key: &str| file.set_keys.contains(key);
        let mut train = resolve(file.train.clone(), &is_in_file, typed, start).map_err(refused)?;
        const LR: &str = "train.optimizer.lr";
        if start == Start::NewWeights && typed.get(LR).is_none() && !is_in_file(LR) {
            train.optimizer.lr = usual_lr(train.model_size);
        }
        // One flag for the seeds of both tables.
        if let Some(seed) = self.batch.settings.typed.get("batch.seed") {
            train.set("train.seed", seed).map_err(refused)?;
        }
        train.patience = train.patience.filter(|count| *count > 0);
        train.judge = train.judge.filter(|judge| judge != "none");
        let mut notes = Vec::new();
        if train.epochs.is_none() && train.max_steps.is_none() {
            train.epochs = Some(USUAL_EPOCHS);
            notes.push(format!(
                "neither `--epochs` nor `--max-steps` is given: training for {USUAL_EPOCHS} epochs"
            ));
        }
        Ok((train, notes))
    }

    /// The file with the settings of the voice to fine-tune, where it does not set them. A file that names the voice and
    /// its size is the `config.toml` of a run: it has all of them, and the voice may have been moved away since.
    fn with_voice_settings(&self, mut file: FileConfig) -> Result<FileConfig> {
        let typed = self.settings.typed.get("train.from_voice").map(PathBuf::from);
        file.train.from_voice = typed.or(file.train.from_voice);
        let Some(from) = &file.train.from_voice else { return Ok(file) };
        let set = &file.set_keys;
        if set.contains("train.from_voice") && set.contains("train.model_size") {
            return Ok(file);
        }
        let voice = SourceVoice::read_document(from)
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

#[cfg(test)]
pub mod tests;
