//! The configuration file: TOML or YAML, of Tandem or of MyXTTS. An unknown key is an error with line,
//! column and the nearest known key.

mod format; // parses the text; errors with line and column
pub mod place; // line and column of a key
pub mod tree; // a file of Tandem or MyXTTS as it is written
pub mod set_keys; // which keys a file sets
pub mod nearest; // the nearest known name for a misspelt one
pub mod reference; // every key, generated from the code

use crate::corpus_args::LONGEST_STALL;
use crate::device_args::DeviceConfig;
use crate::failure::{Advised, Result};
use crate::printer::Printer;
use serde::{Deserialize, Serialize};
use set_keys::SetKeys;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tandem_audio::AudioConfig;
use tandem_audio::mel::MelConfig;
use tandem_data::batch::BatchConfig;
use tandem_data::corpus::CorpusConfig;
use tandem_text::TextConfig;
use tandem_train::DataSettings;
use tandem_train::train_settings::TrainSettings;
use tree::Written;

/// Longer files are refused.
const LONGEST: u64 = 1 << 20;

/// The keys of a configuration file. Absent keys keep their defaults.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileConfig {
    pub train_data: Option<PathBuf>,
    pub val_data: Option<PathBuf>,
    pub num_workers: Option<usize>,
    /// Batches that may be ready before the model needs them.
    pub prefetch_buffer_size: Option<usize>,
    /// Whether computed mel frames are cached on disk.
    pub cache_dataset: bool,
    pub cache_dir: Option<PathBuf>,
    /// Share of rejected rows above which preparing fails.
    pub max_rejected: Option<f64>,
    /// Whether workers and depth adapt during training.
    pub adapt: Option<bool>,
    /// Longest wait for the first batches, in seconds.
    pub model_start_delay: Option<f64>,
    /// How the pipeline runs.
    pub pipeline: PipelineConfig,
    pub corpus: CorpusConfig,
    pub text: TextConfig,
    pub mel: MelConfig,
    /// Limits of a recording, trimming and loudness.
    pub audio: AudioConfig,
    pub batch: BatchConfig,
    pub devices: DeviceConfig,
    pub train: TrainSettings,
    /// Which of these keys the file sets.
    #[serde(skip)]
    pub set_keys: SetKeys,
}

/// How the pipeline runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PipelineConfig {
    /// Seconds without progress after which a run ends with an error; 0: never.
    pub stall_timeout: u64,
}

impl Default for PipelineConfig {
    fn default() -> PipelineConfig {
        PipelineConfig { stall_timeout: 60 }
    }
}

impl FileConfig {
    /// Reads a file of Tandem or MyXTTS; `None` gives the defaults. What means something else here
    /// than in MyXTTS is printed, one line for each key.
    pub fn read(path: Option<&Path>, out: &mut Printer) -> Result<FileConfig> {
        let Some(path) = path else { return Ok(FileConfig::default()) };
        let written = Written::read(path)?;
        written.changed_meanings(path).iter().for_each(|line| out.note(line));
        Ok(written.config)
    }

    /// Reads settings that are a tree already: those of the Python package.
    pub fn of_tree(tree: serde_json::Value) -> Result<FileConfig, Advised> {
        let set_keys = SetKeys::of(&tree);
        let config = format::parse_tree::<FileConfig>(tree).and_then(FileConfig::checked)?;
        Ok(FileConfig { set_keys, ..config })
    }

    /// Refuses values that no later check would refuse.
    pub fn checked(self) -> Result<FileConfig, Advised> {
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
        let stall = self.pipeline.stall_timeout;
        if stall > LONGEST_STALL {
            let fact = format!("`pipeline.stall_timeout` is {stall}");
            return Err(Advised::new(fact, "write seconds from 1 to 86400, or 0 for no limit"));
        }
        if let Some((key, found, range)) = self.audio.fault() {
            let advice = format!("write a number from {} to {}", range.start(), range.end());
            return Err(Advised::new(format!("`{key}` is {found}"), advice));
        }
        if let Some((key, found, expected)) = self.devices.fault() {
            return Err(Advised::new(format!("`{key}` is {found}"), format!("write {expected}")));
        }
        let usual = TextConfig::default().max_symbols;
        if self.text.max_symbols != usual && self.text.max_symbols != self.batch.max_text_length {
            let fact = "`text.max_symbols` and `batch.max_text_length` differ";
            return Err(Advised::new(fact, "set only `batch.max_text_length`: it sets both"));
        }
        Ok(self)
    }

    /// The settings that change the data the model is trained on.
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

fn read_text(path: &Path) -> Result<String, Advised> {
    let unread = |error: std::io::Error| {
        Advised::new(error.to_string(), "check the path given to `--config`")
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > LONGEST {
        return Err(Advised::new("the file is longer than 1 MiB", "name another file"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        Advised::new(
            format!("line {line} is not UTF-8 text (byte {} of the file)", at + 1),
            "save the file as UTF-8: in an editor, or with `iconv -f ENCODING -t UTF-8`",
        )
    })
}

#[cfg(test)]
mod tests;
