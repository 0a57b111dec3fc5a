//! Flags that several commands share: the corpus, how it is read, how it is batched.
//!
//! In: flags, environment, configuration file and defaults, in that order. Out: [`CorpusSettings`] and
//! [`BatchSettings`], in which nothing is left open.

use crate::config::FileConfig;
use crate::demo_files;
use crate::failure::Result;
use crate::printer::Printer;
use crate::setting_flags::{OfBatches, OfLengths, SettingFlags, resolved};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tandem_audio::AudioConfig;
use tandem_audio::config::{LOUDNESSES, TRIM_LEVELS, TRIM_MARGINS};
use tandem_data::batch::BatchConfig;
use tandem_data::corpus::{CorpusConfig, Layout};
use tandem_text::{DiacriticsPolicy, Language, Pronunciation};
use tandem_train::feed::buffers::{BufferRequest, Buffers};
use tandem_train::prepare::check_workers;
use tandem_train::prepare::row::{ChangeCheck, Features};
use tandem_train::{DataSettings, PrepareOptions};

#[derive(Clone, Debug, Default, clap::Args)]
pub struct CorpusArgs {
    /// Configuration file of Tandem or MyXTTS in TOML or YAML; flags and environment variables
    /// override it
    #[arg(long, value_name = "FILE", env = "TANDEM_CONFIG")]
    pub config: Option<PathBuf>,
    /// Languages of the corpus, such as en,fa
    #[arg(long, value_name = "TAGS", value_delimiter = ',', env = "TANDEM_LANGUAGES")]
    pub languages: Vec<Language>,
    /// Symbols of the model: `auto` (built-in phonemes where a language has them, else characters),
    /// `characters`, `built-in`, `built-in-english` (English only, else characters), or `espeak`
    /// (phonemes of the program espeak-ng) [default: auto]
    #[arg(
        long,
        value_name = "SOURCE",
        env = "TANDEM_PRONUNCIATION",
        value_parser = pronunciation(),
        hide_possible_values = true
    )]
    pub pronunciation: Option<Pronunciation>,
    /// Pronunciation lexicon: lines of `word<TAB>spelling`
    #[arg(long, value_name = "FILE", env = "TANDEM_LEXICON")]
    pub lexicon: Option<PathBuf>,
    /// Keep vowel marks of Persian and Arabic text
    #[arg(
        long,
        value_name = "BOOL",
        env = "TANDEM_KEEP_DIACRITICS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = switch()
    )]
    pub keep_diacritics: Option<bool>,
    #[command(flatten)]
    pub layout: LayoutArgs,
    #[command(flatten)]
    pub lengths: SettingFlags<OfLengths>,
    #[command(flatten)]
    pub audio: AudioArgs,
    /// Worker threads that load and prepare data [default: one per core]
    #[arg(long, value_name = "N", env = "TANDEM_NUM_WORKERS", value_parser = at_least_one)]
    pub num_workers: Option<usize>,
    /// Cache mel frames on disk, so that later epochs do not compute them again
    #[arg(
        long,
        value_name = "BOOL",
        env = "TANDEM_CACHE_DATASET",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = switch()
    )]
    pub cache_dataset: Option<bool>,
    /// Cache directory [default: inside the corpus, or the user's cache directory]
    #[arg(long, value_name = "DIR", env = "TANDEM_CACHE_DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Largest share of rejected rows; above it the command fails [default: 0.2]
    #[arg(long, value_name = "SHARE", env = "TANDEM_MAX_REJECTED", value_parser = share)]
    pub max_rejected: Option<f64>,
    /// Seconds without any progress after which the command ends with an error that names the
    /// stage and the file; 0: never [default: 60]
    #[arg(long, value_name = "SECONDS", env = "TANDEM_STALL_TIMEOUT", value_parser = stall_timeout())]
    pub stall_timeout: Option<u64>,
}

/// How the files of a corpus are read.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct LayoutArgs {
    /// Layout of the corpus, where it is recognised wrongly [default: recognised]
    #[arg(long, value_name = "NAME", env = "TANDEM_LAYOUT", value_parser = layout())]
    pub layout: Option<Layout>,
    /// Directory outside the corpus that absolute paths of a manifest may lead to
    #[arg(long, value_name = "DIR", env = "TANDEM_RECORDINGS_DIR")]
    pub recordings_dir: Option<PathBuf>,
    /// Column separator of the manifest, `tab` for a tab [default: |]
    #[arg(long, value_name = "CHAR", env = "TANDEM_SEPARATOR", value_parser = separator)]
    pub separator: Option<char>,
}

impl LayoutArgs {
    /// The settings of the file with what was typed.
    pub fn resolve_over(&self, file: CorpusConfig) -> CorpusConfig {
        CorpusConfig {
            layout: self.layout.or(file.layout),
            recordings_dir: self.recordings_dir.clone().or(file.recordings_dir),
            separator: self.separator.unwrap_or(file.separator),
            ..file
        }
    }
}

/// How a recording is prepared for the features. Both are off unless asked for.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AudioArgs {
    /// Cut silence at both ends of each recording: what is DB below its loudest 20 ms, from -100 to
    /// -1, such as -40 [default: off]
    #[arg(
        long,
        value_name = "DB",
        env = "TANDEM_TRIM_SILENCE",
        allow_negative_numbers = true,
        value_parser = trim_level
    )]
    pub trim_silence: Option<f32>,
    /// Silence that trimming leaves at each end, in milliseconds [default: 50]
    #[arg(long, value_name = "MS", env = "TANDEM_TRIM_MARGIN", value_parser = trim_margin)]
    pub trim_margin: Option<f32>,
    /// Bring each recording to this loudness by EBU R128, from -70 to -5 LUFS, such as -23
    /// [default: off]
    #[arg(
        long,
        value_name = "LUFS",
        env = "TANDEM_LOUDNESS",
        allow_negative_numbers = true,
        value_parser = loudness
    )]
    pub loudness: Option<f32>,
}

impl AudioArgs {
    /// The settings of the file with what was typed.
    pub fn resolve_over(&self, file: AudioConfig) -> AudioConfig {
        AudioConfig {
            trim_silence: self.trim_silence.or(file.trim_silence),
            trim_margin: self.trim_margin.unwrap_or(file.trim_margin),
            loudness: self.loudness.or(file.loudness),
            ..file
        }
    }
}

/// A source of symbols by its name.
pub fn pronunciation() -> impl clap::builder::TypedValueParser<Value = Pronunciation> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(Pronunciation::ALL.map(Pronunciation::name)).try_map(|name| {
        let known = Pronunciation::ALL.into_iter().find(|source| source.name() == name);
        known.ok_or("unknown source")
    })
}

/// A layout by its name.
fn layout() -> impl clap::builder::TypedValueParser<Value = Layout> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(Layout::ALL.map(Layout::name)).try_map(|name| {
        let known = Layout::ALL.into_iter().find(|layout| layout.name() == name);
        known.ok_or("unknown layout")
    })
}

/// A switch as people write it in the environment; `--flag` alone is `true`.
pub fn switch() -> impl clap::builder::TypedValueParser<Value = bool> {
    clap::builder::BoolishValueParser::new()
}

/// One character; a tab may be typed as `tab` or `\\t`, which a shell passes on.
fn separator(text: &str) -> Result<char, String> {
    let mut letters = text.chars();
    match (text, letters.next(), letters.next()) {
        ("tab" | "\\t", ..) => Ok('\t'),
        (_, Some(one), None) => Ok(one),
        _ => Err("expected one character, or `tab`".into()),
    }
}

fn trim_level(text: &str) -> Result<f32, String> {
    within(text, TRIM_LEVELS, "dB")
}

fn trim_margin(text: &str) -> Result<f32, String> {
    within(text, TRIM_MARGINS, "milliseconds")
}

fn loudness(text: &str) -> Result<f32, String> {
    within(text, LOUDNESSES, "LUFS")
}

fn within(text: &str, range: RangeInclusive<f32>, unit: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if range.contains(&value) => Ok(value),
        _ => Err(format!("expected {} to {} {unit}", range.start(), range.end())),
    }
}

/// Longer than any stall that a user waits for.
pub const LONGEST_STALL: u64 = 86_400;

fn stall_timeout() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(0..=LONGEST_STALL)
}

#[derive(Clone, Debug, Default, clap::Args)]
pub struct BatchArgs {
    #[command(flatten)]
    pub settings: SettingFlags<OfBatches>,
    /// Batches that may wait for the model, including the one in training [default: from
    /// --buffer-size if given, else max(2, min(8, 64 / batch size)), at least 3]
    #[arg(
        long,
        visible_alias = "pipeline-depth",
        value_name = "N",
        env = "TANDEM_PREFETCH_BUFFER_SIZE",
        value_parser = at_least_one
    )]
    pub prefetch_buffer_size: Option<usize>,
}

impl BatchSettings {
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
        self.resolve_over(FileConfig::read(self.config.as_deref(), out)?, corpus)
    }

    /// The same with a configuration file that is already read.
    pub fn resolve_over(&self, file: FileConfig, corpus: &Path) -> Result<CorpusSettings> {
        let batch = resolved(file.batch, &file.set_keys, &self.lengths.typed)?;
        let file = FileConfig { batch, ..file };
        let mut data = file.data_settings();
        if !self.languages.is_empty() {
            data.text.languages = self.languages.clone();
        }
        data.text.pronunciation = self.pronunciation.unwrap_or(data.text.pronunciation);
        data.text.diacritics = match self.keep_diacritics {
            Some(true) => DiacriticsPolicy::Keep,
            // Only what the flag can turn on is turned off.
            Some(false) if data.text.diacritics == DiacriticsPolicy::Keep => Default::default(),
            _ => data.text.diacritics,
        };
        data.text.lexicon = self.lexicon.clone().or(data.text.lexicon);
        data.audio = self.audio.resolve_over(data.audio);
        data.corpus = self.layout.resolve_over(data.corpus);
        let defaults = PrepareOptions::default();
        let cached = self.cache_dataset.unwrap_or(file.cache_dataset);
        let prepare = PrepareOptions {
            workers: self.num_workers.or(file.num_workers).unwrap_or(defaults.workers),
            features: if cached { Features::Cached } else { Features::OnTheFly },
            change_check: ChangeCheck::Stamps,
            cache_dir: self.cache_dir.clone().or(file.cache_dir.clone()),
            max_rejected: self.max_rejected.or(file.max_rejected).unwrap_or(defaults.max_rejected),
            stall_timeout: match self.stall_timeout.unwrap_or(file.pipeline.stall_timeout) {
                0 => None,
                seconds => Some(Duration::from_secs(seconds)),
            },
            cluster: None,
        };
        check_workers(prepare.workers)?;
        let corpus = demo_files::corpus(corpus)?;
        Ok(CorpusSettings { corpus, data, prepare, file })
    }
}

impl BatchArgs {
    /// `samples` is `--buffer-size`, of commands that have it.
    pub fn resolve(
        &self,
        corpus: &CorpusSettings,
        samples: Option<usize>,
    ) -> Result<BatchSettings> {
        let file = &corpus.file;
        let batch = resolved(file.batch.clone(), &file.set_keys, &self.settings.typed)?;
        batch.validate()?;
        let buffers = Buffers::decide(&BufferRequest {
            prefetch: self.prefetch_buffer_size.or(file.prefetch_buffer_size),
            samples: samples.or(file.devices.buffer_size),
            batch_size: batch.batch_size,
            workers: corpus.prepare.workers,
        })?;
        Ok(BatchSettings { batch, buffers })
    }
}

pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("expected a whole number, 1 or more".into()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".into()),
    }
}
