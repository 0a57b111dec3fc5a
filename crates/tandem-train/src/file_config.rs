//! The keys of a configuration file, table by table.
//!
//! In: a file that is parsed, and what was typed. Out: [`FileConfig`], with the values that count. A key is declared in
//! the crate that uses it; the keys here are those outside of tables, and `[pipeline]`. Reads no file.

use crate::DataSettings;
use crate::train_settings::TrainSettings;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tandem_audio::AudioConfig;
use tandem_audio::mel::MelConfig;
use tandem_data::batch::BatchConfig;
use tandem_data::corpus::CorpusConfig;
use tandem_device::placement::{DeviceConfig, GpuIndexes};
use tandem_settings::{
    OutOfRange, Range, SetKeys, Setting, SettingTable, Start, Typed, check, resolve, settings,
};
use tandem_text::TextConfig;
use tandem_units::{Hint, Seconds};

settings! {
    /// Absent keys keep their defaults.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct FileConfig in "" {
        /// Corpus to train on: a directory, a manifest in one, or `demo`
        train_data: Option<PathBuf> = None, "--train-data CORPUS" { myxtts: &["d.dataset_path"] }
        /// Corpus to validate on
        val_data: Option<PathBuf> = None, "--val-data CORPUS" {
            default_in_words: "held-out rows of the training corpus",
        }
        /// Worker threads that load and prepare data
        num_workers: Option<usize> = None, "--num-workers N" {
            range: Range::AtLeastOne,
            default_in_words: "one per core",
            heading: CORPUS,
            myxtts: &["d.num_workers"],
        }
        /// Batches that may wait for the model, including the one in training
        prefetch_buffer_size: Option<usize> = None, "--prefetch-buffer-size N" {
            range: Range::AtLeastOne,
            alias: "pipeline-depth",
            default_in_words:
                "from --buffer-size if given, else max(2, min(8, 64 / batch size)), at least 3",
            heading: "Batches",
            myxtts: &["dt.prefetch_buffer_size"],
        }
        /// Cache mel frames on disk, so that later epochs do not compute them again
        cache_dataset: bool = false, "--cache-dataset BOOL" { heading: CORPUS }
        /// Cache directory
        cache_dir: Option<PathBuf> = None, "--cache-dir DIR" {
            default_in_words: "inside the corpus, or the user's cache directory",
            heading: CORPUS,
            myxtts: &["p.cache_dir"],
        }
        /// Largest share of rejected rows; above it the command fails
        max_rejected: f64 = 0.2, "--max-rejected SHARE" { range: Range::Share, heading: CORPUS }
        /// Adapt workers and pipeline depth during training
        adapt: bool = true, "--adapt BOOL" { myxtts: &["d.auto_tune_performance"] }
        /// Longest wait for the first batches before training starts, in seconds
        model_start_delay: Seconds = Seconds(2.0), "--model-start-delay SECONDS" {
            // Longer than any start, and within the range of `Duration`.
            range: Range::Between(0.0, 86_400.0),
            default_in_words: "2.0",
            myxtts: &["dt.model_start_delay"],
        }
        table pipeline: PipelineConfig;
        table corpus: CorpusConfig;
        table text: TextConfig;
        table mel: MelConfig;
        table audio: AudioConfig;
        table batch: BatchConfig;
        table devices: DeviceConfig;
        table train: TrainSettings;
        #[serde(skip)]
        no_setting set_keys: SetKeys;
    }
}

settings! {
    /// How the pipeline runs.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct PipelineConfig in "pipeline" {
        /// Seconds without any progress after which the command ends with an error that names the
        /// stage and the file; 0: never
        stall_timeout: u64 = 60, "--stall-timeout SECONDS" {
            // Longer than any stall that a user waits for.
            range: Range::Between(0.0, 86_400.0),
            heading: CORPUS,
        }
    }
}

/// The part of the help.
const CORPUS: &str = "Corpus";

/// All settings: those outside of tables, those of a table, those of the tables in it.
pub fn all_settings() -> Vec<&'static Setting> {
    let mut all = FileConfig::settings();
    all.sort_by_key(|setting| setting.key.matches('.').count());
    all
}

/// A setting by its key.
pub fn setting(key: &str) -> Option<&'static Setting> {
    all_settings().into_iter().find(|setting| setting.key == key)
}

/// A value that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileConfigError {
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    #[error("`text.max_symbols` and `batch.max_text_length` differ")]
    TwoTextLengths,
    /// A value that was accepted as a flag is refused here only if a declaration contradicts itself.
    #[error("{fact}")]
    Typed { fact: String },
}

impl Hint for FileConfigError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::OutOfRange(error) => error.hint(),
            Self::TwoTextLengths => Some("set only `batch.max_text_length`: it sets both".into()),
            Self::Typed { .. } => Some("`tandem reference` lists every key with its flag".into()),
        }
    }
}

impl FileConfig {
    /// The settings with what was typed as a flag or set as a variable.
    pub fn with_typed(
        mut self,
        typed: &Typed,
        start: Start,
    ) -> Result<FileConfig, FileConfigError> {
        // Both GPUs come from the same place: one from the file and one from a flag would be a pair that the user never
        // wrote.
        if ["devices.data_gpu", "devices.model_gpu"].iter().any(|key| typed.get(key).is_some()) {
            self.devices.data_gpu = GpuIndexes::default();
            self.devices.model_gpu = GpuIndexes::default();
        }
        let set_keys = std::mem::take(&mut self.set_keys);
        let resolved = resolve(self, &|key| set_keys.contains(key), typed, start)
            .map_err(|fact| FileConfigError::Typed { fact })?;
        FileConfig { set_keys, ..resolved }.checked()
    }

    /// Refuses values that no later check would refuse: `[mel]`, `[batch]` and `[train]` have their own.
    pub fn checked(self) -> Result<FileConfig, FileConfigError> {
        let checked_later = FileConfig {
            mel: MelConfig::default(),
            batch: BatchConfig::default(),
            train: TrainSettings::default(),
            ..self.clone()
        };
        check(&checked_later)?;
        let usual = TextConfig::default().max_symbols;
        if self.text.max_symbols != usual && self.text.max_symbols != self.batch.max_text_length {
            return Err(FileConfigError::TwoTextLengths);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(values: &[(&str, &str)]) -> Typed {
        values
            .iter()
            .fold(Typed::default(), |all, (key, text)| all.with(setting(key).expect(key), text))
    }

    fn with(file: FileConfig, values: &[(&str, &str)]) -> Result<FileConfig, FileConfigError> {
        file.with_typed(&typed(values), Start::NewWeights)
    }

    #[test]
    fn a_pair_of_gpus_is_never_half_from_a_flag_and_half_from_the_file() {
        let mut file = FileConfig::default();
        (file.devices.data_gpu, file.devices.model_gpu) =
            (GpuIndexes(vec![0]), GpuIndexes(vec![1]));
        let both = with(file.clone(), &[]).unwrap().devices;
        assert_eq!((both.data_gpu.0, both.model_gpu.0), (vec![0], vec![1]));
        let one = with(file, &[("devices.data_gpu", "3")]).unwrap().devices;
        assert_eq!((one.data_gpu.0, one.model_gpu.0), (vec![3], vec![]), "an error further on");
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_its_key_and_flag() {
        for (key, text, fact) in [
            ("num_workers", "0", "`num_workers` is 0, expected 1 or more"),
            ("max_rejected", "3", "`max_rejected` is 3, expected a share from 0 to 1"),
            ("model_start_delay", "-1", "`model_start_delay` is -1, expected 0 to 86400"),
            ("audio.loudness", "-80", "`audio.loudness` is -80, expected -70 to -5"),
            (
                "pipeline.stall_timeout",
                "86401",
                "`pipeline.stall_timeout` is 86401, expected 0 to 86400",
            ),
        ] {
            let refused = with(FileConfig::default(), &[(key, text)]).unwrap_err();
            assert_eq!(refused.to_string(), fact);
            let flag = setting(key).unwrap().long_flag().unwrap();
            assert!(refused.hint().unwrap().contains(flag), "{refused:?}");
        }
    }

    #[test]
    fn one_flag_sets_the_seeds_of_batches_and_weights() {
        let seeds = with(FileConfig::default(), &[("batch.seed", "7")]).unwrap();
        assert_eq!((seeds.batch.seed.0, seeds.train.seed.0), (7, 7));
    }
}
