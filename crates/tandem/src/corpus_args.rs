//! Flags that several commands share: the corpus, how it is read, how it is batched.
//!
//! In: flags, environment, configuration file and defaults. Out: [`CorpusSettings`] and [`BatchSettings`], in which
//! nothing is left open.

use crate::config;
use crate::demo_files;
use crate::failure::Result;
use crate::printer::Printer;
use crate::setting_flags::{
    OfAudio, OfBatches, OfCorpus, OfLengths, OfPrefetch, OfPreparing, OfText, SettingFlags,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tandem_data::batch::BatchConfig;
use tandem_settings::{Start, Typed};
use tandem_train::feed::buffers::{BufferRequest, Buffers};
use tandem_train::file_config::FileConfig;
use tandem_train::prepare::check_workers;
use tandem_train::prepare::row::{ChangeCheck, Features};
use tandem_train::{DataSettings, PrepareOptions};

#[derive(Clone, Debug, Default, clap::Args)]
pub struct CorpusArgs {
    /// Configuration file of Tandem or MyXTTS in TOML or YAML; flags and environment variables
    /// override it
    #[arg(long, value_name = "FILE", env = "TANDEM_CONFIG")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub text: SettingFlags<OfText>,
    #[command(flatten)]
    pub layout: SettingFlags<OfCorpus>,
    #[command(flatten)]
    pub lengths: SettingFlags<OfLengths>,
    #[command(flatten)]
    pub audio: SettingFlags<OfAudio>,
    #[command(flatten)]
    pub preparing: SettingFlags<OfPreparing>,
}

#[derive(Clone, Debug, Default, clap::Args)]
pub struct BatchArgs {
    #[command(flatten)]
    pub settings: SettingFlags<OfBatches>,
    #[command(flatten)]
    pub prefetch: SettingFlags<OfPrefetch>,
}

impl BatchSettings {
    /// From a file with what was typed.
    pub fn of(file: &FileConfig, workers: usize) -> Result<BatchSettings> {
        let batch = file.batch.clone();
        batch.validate()?;
        let buffers = Buffers::decide(&BufferRequest {
            prefetch: file.prefetch_buffer_size,
            samples: file.devices.buffer_size,
            batch_size: batch.batch_size,
            workers,
        })?;
        Ok(BatchSettings { batch, buffers })
    }

    /// The same for a corpus with so many rows, and a sentence where that changes the batch size.
    pub fn limited_to(self, rows: usize) -> Result<(BatchSettings, Option<String>)> {
        let typed = self.batch.batch_size;
        let batch = self.batch.limited_to(rows);
        if batch.batch_size == typed {
            return Ok((self, None));
        }
        let note = format!(
            "batch size {typed} is more than the corpus has: every batch has at most its {rows} rows"
        );
        let buffers = self.buffers.with_batch_size(batch.batch_size)?;
        Ok((BatchSettings { batch, buffers }, Some(note)))
    }
}

/// The corpus and all settings of how it is read.
#[derive(Clone, Debug)]
pub struct CorpusSettings {
    pub corpus: PathBuf,
    /// Settings that change the result.
    pub data: DataSettings,
    /// Settings that do not change the result.
    pub prepare: PrepareOptions,
    /// The configuration file, for keys that only some commands use.
    pub file: FileConfig,
}

#[derive(Clone, Debug)]
pub struct BatchSettings {
    pub batch: BatchConfig,
    /// Batches that may wait, on the host and for the model.
    pub buffers: Buffers,
}

impl CorpusArgs {
    pub fn resolve(&self, corpus: &Path, out: &mut Printer) -> Result<CorpusSettings> {
        self.resolve_over(config::read(self.config.as_deref(), out)?, corpus)
    }

    /// The same with a configuration file that is already read.
    pub fn resolve_over(&self, file: FileConfig, corpus: &Path) -> Result<CorpusSettings> {
        CorpusSettings::of(file.with_typed(&self.typed(), Start::NewWeights)?, corpus)
    }

    pub fn typed(&self) -> Typed {
        let CorpusArgs { config: _, text, layout, lengths, audio, preparing } = self.clone();
        text.typed.and(layout.typed).and(lengths.typed).and(audio.typed).and(preparing.typed)
    }
}

impl CorpusSettings {
    /// From a file with what was typed.
    pub fn of(file: FileConfig, corpus: &Path) -> Result<CorpusSettings> {
        let prepare = PrepareOptions {
            workers: file.num_workers.unwrap_or(PrepareOptions::default().workers),
            features: if file.cache_dataset { Features::Cached } else { Features::OnTheFly },
            change_check: ChangeCheck::Stamps,
            cache_dir: file.cache_dir.clone(),
            max_rejected: file.max_rejected,
            stall_timeout: match file.pipeline.stall_timeout {
                0 => None,
                seconds => Some(Duration::from_secs(seconds)),
            },
            cluster: None,
        };
        check_workers(prepare.workers)?;
        let (corpus, data) = (demo_files::corpus(corpus)?, file.data_settings());
        Ok(CorpusSettings { corpus, data, prepare, file })
    }
}

impl BatchArgs {
    pub fn resolve(&self, corpus: &CorpusSettings) -> Result<BatchSettings> {
        let file = corpus.file.clone().with_typed(&self.typed(), Start::NewWeights)?;
        BatchSettings::of(&file, corpus.prepare.workers)
    }

    pub fn typed(&self) -> Typed {
        self.settings.typed.clone().and(self.prefetch.typed.clone())
    }
}

pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("expected a whole number, 1 or more".into()),
    }
}
