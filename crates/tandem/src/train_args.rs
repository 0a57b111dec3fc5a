//! Flags of a training run and how they are resolved.
//!
//! In: [`TrainArgs`], which clap fills from flags and environment. Out: [`TrainPlan`], in which nothing is left open.
//! Settings are declared where they are used; which value counts is decided by `FileConfig::with_typed`. Devices are
//! checked later, by `Placement::decide`.

use crate::config;
use crate::corpus_args::{BatchArgs, BatchSettings, CorpusArgs, CorpusSettings};
use crate::failure::{Advised, Context, Result};
use crate::printer::Printer;
use crate::setting_flags::{OfData, OfDevices, OfStart, OfTraining, SettingFlags, typed};
use crate::train_plan::TrainPlan;
use std::path::PathBuf;
use tandem_device::inventory::Inventory;
use tandem_device::placement::{DeviceSettings, Placement};
use tandem_settings::{Start, Typed};
use tandem_train::file_config::FileConfig;
use tandem_train::run::fine_tune::SourceVoice;
use tandem_train::train_settings::{TrainSettings, USUAL_EPOCHS, usual_lr};

/// Flags of a training run.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Training")]
pub struct TrainArgs {
    #[command(flatten)]
    pub data: SettingFlags<OfData>,
    #[command(flatten)]
    pub settings: SettingFlags<OfTraining>,
    /// Resume from the latest checkpoint in the run directory [without --checkpoint-dir: in the
    /// newest one below runs]
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    pub start: SettingFlags<OfStart>,
    /// Do not adapt workers and pipeline depth
    #[arg(long, overrides_with = "adapt")]
    pub no_adapt: bool,
    #[command(flatten, next_help_heading = "Corpus")]
    pub corpus: CorpusArgs,
    #[command(flatten, next_help_heading = "Batches")]
    pub batch: BatchArgs,
    #[command(flatten)]
    pub devices: SettingFlags<OfDevices>,
}

impl TrainArgs {
    /// Resolves all settings. Does not read the corpus.
    pub fn resolve(&self, out: &mut Printer) -> Result<TrainPlan> {
        self.resolve_over(config::read(self.corpus.config.as_deref(), out)?)
    }

    /// The same with a configuration file that is already read.
    pub fn resolve_over(&self, file: FileConfig) -> Result<TrainPlan> {
        plan_of(file, &self.typed(), self.resume)
    }

    fn typed(&self) -> Typed {
        let TrainArgs { data, settings, resume: _, start, no_adapt, corpus, batch, devices } =
            self.clone();
        let adapt = if no_adapt { typed("adapt", "false") } else { Typed::default() };
        let run = data.typed.and(settings.typed).and(start.typed).and(adapt);
        run.and(corpus.typed()).and(batch.typed()).and(devices.typed)
    }
}

/// The plan of a run with the settings of a file and what was typed.
pub fn plan_of(mut file: FileConfig, typed: &Typed, resume: bool) -> Result<TrainPlan> {
    // First, since it decides on other defaults.
    file.train.from_voice =
        typed.get("train.from_voice").map(PathBuf::from).or(file.train.from_voice);
    let start = match file.train.from_voice.is_some() {
        true => Start::FineTuning,
        false => Start::NewWeights,
    };
    let mut file = with_voice_settings(file)?.with_typed(typed, start)?;
    let has_lr = file.set_keys.contains(LR) || typed.get(LR).is_some();
    if start == Start::NewWeights && !has_lr {
        file.train.optimizer.lr = usual_lr(file.train.model_size);
    }
    let devices = file.devices.settings()?;
    let Some(train_data) = file.train_data.clone() else {
        // Devices first, as in a run: without them a corpus does not help.
        if devices.data_gpu.or(devices.model_gpu).is_some() {
            Placement::decide(&devices, &Inventory::detect())
                .context("the requested devices cannot be used, and no training corpus is given")?;
        }
        let advice = "name one with `--train-data`; `demo` is the built-in corpus";
        return Err(Advised::new("no training corpus is given", advice).into());
    };
    if file.val_data.is_some() {
        // With a validation corpus, held-out rows would be used for nothing.
        file.corpus.eval_share = 0.0;
    }
    let CorpusSettings { corpus, data, prepare, file } = CorpusSettings::of(file, &train_data)?;
    let batches = BatchSettings::of(&file, prepare.workers)?;
    data.mel.validate()?;
    let (train, notes) = decided(file.train);
    train.validate()?;
    Ok(TrainPlan {
        train_data,
        val_data: file.val_data,
        batch: batches.batch,
        buffers: batches.buffers,
        adapt: file.adapt,
        start_delay: file.model_start_delay,
        devices: DeviceSettings { products: train.precision.products(), ..devices },
        train,
        resume,
        notes,
        corpus,
        data,
        prepare,
    })
}

const LR: &str = "train.optimizer.lr";

/// The training settings without what means "none", and notes about defaults that were chosen.
fn decided(mut train: TrainSettings) -> (TrainSettings, Vec<String>) {
    train.patience = train.patience.filter(|count| *count > 0);
    train.judge = train.judge.filter(|judge| judge != "none");
    let mut notes = Vec::new();
    if train.epochs.is_none() && train.max_steps.is_none() {
        train.epochs = Some(USUAL_EPOCHS);
        notes.push(format!(
            "neither `--epochs` nor `--max-steps` is given: training for {USUAL_EPOCHS} epochs"
        ));
    }
    (train, notes)
}

/// The file with the settings of the voice to fine-tune, where it does not set them. A file that names the voice and
/// its size is the `config.toml` of a run: it has all of them, and the voice may have been moved away since.
fn with_voice_settings(mut file: FileConfig) -> Result<FileConfig> {
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

#[cfg(test)]
pub mod tests;
