//! Reads a corpus in any of the known layouts into a list of utterances.
//!
//! In: a directory, such as one with `metadata.csv` and `wavs/`, or its manifest. Out: [`Corpus`],
//! with one [`Utterance`] per usable row and one [`RejectedRow`] per other row. Opens no
//! recording, changes no text, and never leaves the corpus directory and its linked folders.
//! Next on the path: `tandem-text` for the texts, `tandem-audio` for the recordings.

mod lines; // bytes to lines, with a limit on their length
mod encoding; // what a manifest is that is not UTF-8
mod columns; // the role of each column
mod layout; // LJSpeech, VCTK, ...: how each is recognised and read
mod rows; // rows of the layouts without columns
mod recordings; // ids to files, inside the corpus only
mod outside; // absolute paths of manifests that have such
mod manifest; // manifests to rows
mod decisions; // what a listener decided about rows
mod long_recordings; // recordings of a book, with their texts
mod split; // which rows are held out
mod rejected; // why a row is rejected

pub use decisions::{DECISIONS, Decision, Decisions};
pub use layout::Layout;
pub use long_recordings::{LongRecording, LongRecordings, is_recording};
pub use manifest::{CorpusRow, CorpusRows};
pub use rejected::{RejectReason, RejectedRow};

use crate::DataError;
use crate::cache::Stamp;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tandem_settings::{Range, SettingValue, ValueKind, settings};
use tandem_units::Seed;

/// Incremented when a manifest is interpreted differently than before: old caches are then rebuilt.
pub const CORPUS_VERSION: u32 = 3;

settings! {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct CorpusConfig in "corpus" {
        /// Column separator of the manifest, `tab` for a tab
        separator: char = '|', "--separator CHAR" { heading: CORPUS }
        /// Column with the spoken text, if a row has both
        text_column: TextColumn = TextColumn::Normalised, "" {}
        /// Share of rows, below 1, held out for validation if no manifest names them
        eval_share: f64 = 0.05, "" { myxtts: &["d.val_split"] }
        /// Seed that chooses, together with the row id, which rows are held out
        seed: Seed = Seed(0), "" { range: Range::FromZero }
        /// Language of rows without one, such as `fa`
        default_language: Option<String> = None, "" { myxtts: &["d.language"] }
        /// Layout of the corpus, where it is recognised wrongly
        // Left out of what is written where it is not set: the caches of earlier versions stay valid.
        #[serde(skip_serializing_if = "Option::is_none")]
        layout: Option<Layout> = None, "--layout NAME" {
            default_in_words: "recognised",
            heading: CORPUS,
        }
        /// Directory outside the corpus that absolute paths of a manifest may lead to
        #[serde(skip_serializing_if = "Option::is_none")]
        recordings_dir: Option<PathBuf> = None, "--recordings-dir DIR" { heading: CORPUS }
    }
}

/// The part of the help.
const CORPUS: &str = "Corpus";

/// The column that the text is taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextColumn {
    /// The normalised text; the raw text if there is none or it is empty.
    #[default]
    Normalised,
    /// Always the raw text: the text front end normalises it.
    Text,
}

impl SettingValue for TextColumn {
    const KIND: ValueKind = ValueKind::Word;
    const WORDS: &'static [&'static str] = &["normalised", "text"];

    fn parse(text: &str) -> Result<TextColumn, String> {
        match text {
            "normalised" => Ok(TextColumn::Normalised),
            "text" => Ok(TextColumn::Text),
            _ => Err(format!("expected {}", TextColumn::WORDS.join(", "))),
        }
    }

    fn text(&self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// The rows of a corpus, with every recording found.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// The corpus directory, with symbolic links resolved; all paths are relative to it.
    pub root: PathBuf,
    /// The manifests that were read, relative to [`Corpus::root`].
    pub manifests: Vec<PathBuf>,
    /// Usable rows, in the order of the manifests.
    pub utterances: Vec<Utterance>,
    /// The other rows, with reason and fix.
    pub rejected: Vec<RejectedRow>,
}

/// One usable row: a text and its recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Utterance {
    /// Name of the clip: unique in the corpus, `/` between folders, no extension.
    pub id: String,
    /// Which of [`Corpus::manifests`] it is from.
    pub manifest: u16,
    /// Line in that manifest, counted from one.
    pub line: u32,
    /// The text as written in the manifest.
    pub text: String,
    /// The recording, relative to [`Corpus::root`]. It is inside the corpus or a linked folder of
    /// recordings.
    pub audio: PathBuf,
    pub speaker: Option<String>,
    /// The language from its column or from the configuration.
    pub language: Option<String>,
    /// The phonemes from their column.
    pub phonemes: Option<String>,
    pub split: Split,
    /// The part of the recording that belongs to the text; none: all of it. Only [`Corpus::rows_with_parts`] gives rows
    /// with a part.
    #[serde(default)]
    pub part: Option<Part>,
}

/// A part of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub start: Duration,
    /// None: to the end.
    pub length: Option<Duration>,
}

/// What a corpus was recognised as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedCorpus {
    /// The corpus directory, with symbolic links resolved.
    pub root: PathBuf,
    pub layout: Layout,
    /// The files that hold the rows, then those that add to them, relative to the root. A folder stands for all text
    /// files in it.
    pub files: Vec<PathBuf>,
    /// The layout in one clause: its name, its columns, and what was decided by content.
    pub description: String,
    /// Rows that `decisions.tsv` leaves out, and rows whose text it replaces.
    pub dropped: usize,
    pub fixed: usize,
}

/// Whether a row is for training or validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    Train,
    /// Held out for validation.
    Eval,
}

impl Corpus {
    /// Reads the manifests of a corpus and finds its recordings.
    ///
    /// `root` is a corpus directory or a manifest in one. In a directory, `metadata_train.csv` and
    /// `metadata_eval.csv` (or `metadata_val.csv`) are used as they are. With an eval manifest and
    /// `metadata.csv`, the eval rows are excluded from the latter. Without an eval manifest a share
    /// is held out by a hash of the id, so that a row keeps its split when others are added or
    /// removed.
    pub fn read(root: &Path, config: &CorpusConfig) -> Result<Corpus, DataError> {
        let rows = Corpus::rows(root, config)?;
        let mut corpus = Corpus {
            root: rows.root().to_path_buf(),
            manifests: rows.manifests(),
            utterances: Vec::new(),
            rejected: Vec::new(),
        };
        for row in rows {
            match row? {
                CorpusRow::Usable(row) => corpus.utterances.push(row),
                CorpusRow::Rejected(row) => corpus.rejected.push(row),
            }
        }
        Ok(corpus)
    }

    /// The same rows one after the other, without a list of them in memory.
    pub fn rows(root: &Path, config: &CorpusConfig) -> Result<CorpusRows, DataError> {
        check(config)?;
        CorpusRows::open(layout::find(root, config)?, config, manifest::Parts::Rejected)
    }

    /// The same with rows that are a part of a longer recording.
    pub fn rows_with_parts(root: &Path, config: &CorpusConfig) -> Result<CorpusRows, DataError> {
        check(config)?;
        CorpusRows::open(layout::find(root, config)?, config, manifest::Parts::Given)
    }

    /// The layout, the root and the files of a corpus; reads the first lines of a manifest only.
    pub fn locate(path: &Path, config: &CorpusConfig) -> Result<LocatedCorpus, DataError> {
        check(config)?;
        let found = layout::find(path, config)?;
        let (layout, description) = manifest::describe(&found, config)?;
        let sources = found.sources.into_iter().map(|source| source.file);
        let files = sources.chain(found.companions).collect();
        let (dropped, fixed) = Decisions::read(&found.root)?.counts();
        Ok(LocatedCorpus { root: found.root, layout, files, description, dropped, fixed })
    }

    /// The stamp of a file of [`LocatedCorpus::files`]; of a folder, that of all text files in it.
    pub fn stamp(file: &Path) -> Result<Stamp, DataError> {
        match file.is_dir() {
            true => layout::walk::stamp_of_texts(file),
            false => Stamp::of(file),
        }
    }

    pub fn audio_path(&self, utterance: &Utterance) -> PathBuf {
        self.root.join(&utterance.audio)
    }

    /// The utterances of one split, in order.
    pub fn of(&self, split: Split) -> impl Iterator<Item = &Utterance> {
        self.utterances.iter().filter(move |utterance| utterance.split == split)
    }

    /// The entry for a row that a later step cannot use.
    pub fn reject(
        &self,
        utterance: &Utterance,
        reason: RejectReason,
        message: String,
        fix: String,
    ) -> RejectedRow {
        let manifest = &self.manifests[usize::from(utterance.manifest)];
        RejectedRow {
            manifest: manifest.display().to_string(),
            line: utterance.line,
            id: utterance.id.clone(),
            reason,
            message,
            fix,
        }
    }
}

fn check(config: &CorpusConfig) -> Result<(), DataError> {
    if !(0.0..1.0).contains(&config.eval_share) {
        return Err(DataError::CorpusSetting {
            key: "eval_share",
            value: config.eval_share.to_string(),
            expected: "a number from 0 to below 1",
        });
    }
    if let Some(outside) = config.recordings_dir.as_deref().filter(|outside| !outside.is_dir()) {
        return Err(DataError::CorpusSetting {
            key: "recordings_dir",
            value: format!("`{}`", outside.display()),
            expected: "a directory",
        });
    }
    if config.separator.is_alphanumeric() || matches!(config.separator, '\n' | '\r') {
        return Err(DataError::CorpusSetting {
            key: "separator",
            value: format!("{:?}", config.separator),
            expected: "one character other than a letter, digit or line end",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod layout_tests;
