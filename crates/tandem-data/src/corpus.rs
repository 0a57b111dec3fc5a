//! Who said what, in which file: a corpus in LJSpeech layout becomes a list of utterances.
//!
//! In: a directory with `metadata.csv` and `wavs/` (or the manifest itself). Out: [`Corpus`],
//! with one [`Utterance`] per usable row and one [`RejectedRow`] per other row. Opens no
//! recording, changes no text, and never leaves the corpus directory.
//! Next on the path: [`crate::text`] for the words, [`crate::audio`] for the recordings.

mod lines; // bytes to lines, however long and broken
mod columns; // which column is what
mod layout; // where manifests are, and near misses
mod recordings; // where recordings are, and what leaves the corpus
mod manifest; // one manifest to utterances
mod split; // which rows are held out
mod rejected; // why a row is not used

pub use rejected::{RejectReason, RejectedRow};

use crate::DataError;
use manifest::Reading;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tandem_units::Seed;

/// Raised whenever some manifest is read in another way than before: old caches are then rebuilt.
pub const CORPUS_VERSION: u32 = 1;

/// How a corpus is to be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CorpusConfig {
    /// What stands between two columns of a manifest.
    pub separator: char,
    /// Which column is spoken where a row has both.
    pub text_column: TextColumn,
    /// Share of the rows that is held out where no manifest says which; 0 holds out none.
    pub eval_share: f64,
    /// Decides, with the id alone, which rows are held out.
    pub seed: Seed,
    /// Language of rows that name none; without it, it is found from the text.
    pub default_language: Option<String>,
}

impl Default for CorpusConfig {
    fn default() -> Self {
        Self {
            separator: '|',
            text_column: TextColumn::Normalised,
            eval_share: 0.05,
            seed: Seed::default(),
            default_language: None,
        }
    }
}

/// The column the words are taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextColumn {
    /// The normalised reading; the raw text where there is none or it is empty.
    #[default]
    Normalised,
    /// The raw text, always: our own front end does the normalising.
    Text,
}

/// A corpus as its manifests describe it, with every recording found.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// The directory everything else is relative to, without symbolic links.
    pub root: PathBuf,
    /// The manifests that were read, relative to [`Corpus::root`].
    pub manifests: Vec<PathBuf>,
    /// Usable rows, in the order of the manifests.
    pub utterances: Vec<Utterance>,
    /// The other rows, with reason and fix.
    pub rejected: Vec<RejectedRow>,
}

/// One usable row: words, and the recording they are spoken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Utterance {
    /// Name of the clip, unique in the corpus, `/` between folders, without extension.
    pub id: String,
    /// Which of [`Corpus::manifests`] it is from.
    pub manifest: u16,
    /// Line in that manifest, counted from one.
    pub line: u32,
    /// The words, as they stand in the manifest.
    pub text: String,
    /// The recording, relative to [`Corpus::root`] and known to lie inside it.
    pub audio: PathBuf,
    /// Who speaks, where a column says so.
    pub speaker: Option<String>,
    /// The language a column or the configuration names.
    pub language: Option<String>,
    /// What the row is used for.
    pub split: Split,
}

/// What a row is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Learned from.
    Train,
    /// Held out, to see what was learned.
    Eval,
}

impl Corpus {
    /// Reads the manifests of a corpus and finds its recordings.
    ///
    /// `root` is a corpus directory or a manifest in one. In a directory,
    /// `metadata_train.csv` and `metadata_eval.csv` (or `metadata_val.csv`) are taken at
    /// their word; an eval manifest beside `metadata.csv` alone is taken out of the latter;
    /// without an eval manifest a share is held out by a hash of the id, so that a row
    /// stays where it is when others come or go.
    pub fn read(root: &Path, config: &CorpusConfig) -> Result<Corpus, DataError> {
        check(config)?;
        let place = layout::find(root)?;
        let mut reading = Reading::start(&place.root, config);
        for source in &place.sources {
            reading.read(source)?;
        }
        let mut corpus = reading.finish()?;
        if place.splits_itself() {
            split::hold_out(&mut corpus.utterances, config.seed, config.eval_share);
        }
        Ok(corpus)
    }

    /// Where a corpus is and which manifests it has, relative to that, without reading them.
    pub fn locate(path: &Path) -> Result<(PathBuf, Vec<PathBuf>), DataError> {
        let place = layout::find(path)?;
        Ok((place.root, place.sources.into_iter().map(|source| source.file).collect()))
    }

    /// Where the recording of an utterance lies.
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
    if config.separator.is_alphanumeric() || matches!(config.separator, '\n' | '\r') {
        return Err(DataError::CorpusSetting {
            key: "separator",
            value: format!("{:?}", config.separator),
            expected: "one character that is no letter, digit or line end",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
