//! The resolved settings of a training run.
//!
//! In: the settings from [`crate::train_args`]. Out: settings for the parts of the trainer, and the
//! effective configuration, which resolves to the same plan.

use crate::failure::{Context, Failure, Result};
use crate::length_report::BatchFacts;
use crate::printer::Printer;
use crate::run_directory::{RUNS, RunDirectory, RunName};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tandem_data::batch::BatchConfig;
use tandem_device::placement::{DeviceConfig, DeviceSettings, OpenDevices};
use tandem_model::device_mel::MelPlace;
use tandem_pipeline::Adapt;
use tandem_pipeline::adapt::Limits;
use tandem_settings::SetKeys;
use tandem_train::feed::buffers::Buffers;
use tandem_train::feed::mel_placement::decide_mel_place;
use tandem_train::file_config::{FileConfig, PipelineConfig};
use tandem_train::prepare::row::Features;
use tandem_train::train_settings::TrainSettings;
use tandem_train::{DataSettings, FeedSettings, PrepareOptions, Prepared};
use tandem_units::Seconds;

/// Frames of the reference segment of each row: 1.5 seconds.
const REFERENCE_FRAMES: usize = 128;

/// All settings of a training run.
#[derive(Clone, Debug)]
pub struct TrainPlan {
    /// The corpus as the user named it: `demo` stays `demo`.
    pub train_data: PathBuf,
    /// The validation corpus as the user named it; `None`: the held-out rows.
    pub val_data: Option<PathBuf>,
    /// The corpus directory or manifest.
    pub corpus: PathBuf,
    /// How manifests, text and audio are read.
    pub data: DataSettings,
    /// Workers, cache and limits of preparing.
    pub prepare: PrepareOptions,
    pub batch: BatchConfig,
    /// Batches that may wait, on the host and for the model.
    pub buffers: Buffers,
    /// Whether workers and depth adapt during training.
    pub adapt: bool,
    /// Longest wait for the first batches.
    pub start_delay: Seconds,
    pub train: TrainSettings,
    pub devices: DeviceSettings,
    /// Whether to resume from the latest checkpoint.
    pub resume: bool,
    /// Notes about defaults that were chosen, for the user.
    pub notes: Vec<String>,
}

impl TrainPlan {
    /// The directory of the run: typed, the newest, or a new one.
    pub fn run_directory(&self) -> Result<RunDirectory> {
        if let Some(typed) = &self.train.checkpoint_dir {
            return Ok(RunDirectory::typed(typed));
        }
        let size = self.train.model_size.name();
        let name = RunName::of(&self.train_data, size, self.batch.batch_size);
        match self.resume {
            true => RunDirectory::newest(Path::new(RUNS), &name),
            false => RunDirectory::create(Path::new(RUNS), &name),
        }
    }

    /// What decides the size of the largest batch.
    pub fn batch_facts(&self) -> BatchFacts<'_> {
        let (model_size, bands) = (self.train.model_size, self.data.mel.bands);
        BatchFacts { batch: &self.batch, model_size, bands }
    }

    /// Settings of the data pipeline, from the first batch on.
    pub fn feed_settings(&self) -> FeedSettings {
        let usual = FeedSettings::new(self.batch.clone());
        let workers = self.prepare.workers;
        let limits = Limits::default();
        let most_workers = usual.most_workers.max(workers);
        let limits =
            Limits { depth: limits.depth.max(self.buffers.depth), workers: most_workers, ..limits };
        FeedSettings {
            shapes: self.devices.shapes,
            epochs: self.train.epochs,
            workers,
            most_workers,
            depth: self.buffers.depth,
            host: Some(self.buffers.host),
            stall_timeout: self.prepare.stall_timeout,
            adapt: if self.adapt { Adapt::On(limits) } else { Adapt::Off },
            ..usual
        }
    }

    /// The same with a reference segment for each row.
    pub fn train_feed(&self) -> FeedSettings {
        FeedSettings { reference_frames: REFERENCE_FRAMES, ..self.feed_settings() }
    }

    /// The same with the place where mel frames are computed, which is printed.
    pub fn with_mel_place(
        &self,
        feed: FeedSettings,
        prepared: &Arc<Prepared>,
        devices: &OpenDevices,
        out: &mut Printer,
    ) -> Result<FeedSettings> {
        let decided = decide_mel_place(self.devices.mel_on, prepared, &feed, devices)
            .context("cannot decide where mel frames are computed")?;
        out.note(&decided.to_string());
        let on_device = decided.place() == MelPlace::Device;
        Ok(FeedSettings { mel_device: on_device.then(|| devices.data.clone()), ..feed })
    }

    /// All settings as a configuration file.
    pub fn to_file(&self) -> FileConfig {
        FileConfig {
            train_data: Some(self.train_data.clone()),
            val_data: self.val_data.clone(),
            num_workers: Some(self.prepare.workers),
            prefetch_buffer_size: Some(self.buffers.depth),
            cache_dataset: self.prepare.features == Features::Cached,
            cache_dir: self.prepare.cache_dir.clone(),
            max_rejected: self.prepare.max_rejected,
            adapt: self.adapt,
            model_start_delay: self.start_delay,
            pipeline: PipelineConfig {
                stall_timeout: self.prepare.stall_timeout.map_or(0, |timeout| timeout.as_secs()),
            },
            corpus: self.data.corpus.clone(),
            text: self.data.text.clone(),
            mel: self.data.mel.clone(),
            audio: self.data.audio,
            batch: self.batch.clone(),
            train: self.train.clone(),
            devices: DeviceConfig {
                buffer_size: self.buffers.samples,
                ..DeviceConfig::of(&self.devices)
            },
            set_keys: SetKeys::default(),
        }
    }
}

/// The plan as TOML: given back with `--config`, it resolves to the same plan.
pub fn effective_config(plan: &TrainPlan) -> Result<String> {
    let text = toml::to_string(&plan.to_file())
        .map_err(Failure::foreign)
        .context("cannot write the settings as a configuration file")?;
    let Buffers { depth, host, workers, .. } = plan.buffers;
    Ok(format!(
        "# The settings of this run. To run with the same settings:\n\
         # tandem train --config THIS_FILE\n\
         # Buffers, in batches: {depth} for the model, {host} on the host; {workers} workers.\n\n{text}"
    ))
}
