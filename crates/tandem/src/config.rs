//! The configuration file: TOML, every key known, a wrong one named with its place.

use crate::device_args::DeviceConfig;
use crate::failure::Advised;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tandem_data::audio::AudioLimits;
use tandem_data::audio::mel::MelConfig;
use tandem_data::batch::BatchConfig;
use tandem_data::corpus::CorpusConfig;
use tandem_data::text::TextConfig;
use tandem_train::DataSettings;

/// What a configuration file may hold. Absent keys keep their defaults.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileConfig {
    /// Threads that read the corpus.
    pub num_workers: Option<usize>,
    /// Batches that may wait for the consumer.
    pub prefetch_buffer_size: Option<usize>,
    /// Whether finished mel frames are kept on disk.
    pub cache_dataset: bool,
    /// Where the cache is.
    pub cache_dir: Option<PathBuf>,
    /// Share of unusable rows above which nothing is done.
    pub max_rejected: Option<f64>,
    /// How manifests are read.
    pub corpus: CorpusConfig,
    /// How text becomes symbols.
    pub text: TextConfig,
    /// How sound becomes mel frames.
    pub mel: MelConfig,
    /// What a recording may be.
    pub audio: AudioLimits,
    /// How rows become batches.
    pub batch: BatchConfig,
    /// Where the work happens.
    pub devices: DeviceConfig,
}

impl FileConfig {
    /// Reads a file; none gives the defaults.
    pub fn read(path: Option<&Path>) -> anyhow::Result<FileConfig> {
        let Some(path) = path else { return Ok(FileConfig::default()) };
        let named = || format!("cannot use configuration `{}`", path.display());
        let text = std::fs::read_to_string(path)
            .map_err(|error| Advised::new(error.to_string(), "check the path given to `--config`"))
            .with_context(named)?;
        // The parser's own message shows line, column and the keys it knows.
        let parsed = toml::from_str(&text).map_err(|error| {
            Advised::new(
                error.to_string().trim_end(),
                "mend that line, or remove it for the default",
            )
        });
        parsed.and_then(FileConfig::checked).with_context(named)
    }

    /// Refuses values that no later step would.
    fn checked(self) -> Result<FileConfig, Advised> {
        let counts = [
            ("num_workers", self.num_workers),
            ("prefetch_buffer_size", self.prefetch_buffer_size),
        ];
        if let Some((key, _)) = counts.iter().find(|(_, count)| *count == Some(0)) {
            let advice = "write 1 or more, or remove the line for the default";
            return Err(Advised::new(format!("`{key}` is 0"), advice));
        }
        if let Some(share) = self.max_rejected.filter(|share| !(0.0..=1.0).contains(share)) {
            let fact = format!("`max_rejected` is {share}");
            return Err(Advised::new(fact, "write a share of the rows, from 0 to 1"));
        }
        if let Some((key, expected)) = self.devices.fault() {
            return Err(Advised::new(format!("`{key}` is 0"), format!("write {expected}")));
        }
        let usual = TextConfig::default().max_symbols;
        if self.text.max_symbols != usual && self.text.max_symbols != self.batch.max_text_length {
            let fact = "`text.max_symbols` and `batch.max_text_length` differ";
            return Err(Advised::new(fact, "set `batch.max_text_length` alone: it is both"));
        }
        Ok(self)
    }

    /// The part that changes what the model sees.
    pub fn data_settings(&self) -> DataSettings {
        DataSettings {
            corpus: self.corpus.clone(),
            text: TextConfig { max_symbols: self.batch.max_text_length, ..self.text.clone() },
            mel: self.mel.clone(),
            audio: self.audio,
            max_mel_frames: self.batch.max_mel_frames,
        }
    }
}
