//! The batch settings and their validation.
//!
//! In: settings from the user. Out: [`BatchConfig`], or a [`BatchError`] with a hint.

use serde::{Deserialize, Serialize};
use tandem_settings::{Range, settings};
use tandem_units::{Hint, Seed};

/// The most padded lengths a user may list: each one needs another set of compiled kernels.
pub(super) const MOST_EDGES: usize = 64;

settings! {
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct BatchConfig in "batch" {
        /// Utterances in a batch, at most
        batch_size: usize = 16, "--batch-size N" {
            range: Range::AtLeastOne,
            heading: BATCHES,
            myxtts: &["dt.batch_size"],
        }
        /// Padded mel frames in a batch, at most
        frame_budget: Option<usize> = None, "--frame-budget N" {
            default_in_words: "batch size times longest recording",
            heading: BATCHES,
        }
        /// Longest recording in mel frames
        max_mel_frames: usize = 800, "--max-mel-frames N" {
            range: Range::AtLeastOne,
            heading: CORPUS,
            myxtts: &["d.max_mel_frames"],
        }
        /// Longest text in symbols
        max_text_length: usize = 200, "--max-text-length N" {
            range: Range::AtLeastOne,
            heading: CORPUS,
            myxtts: &["dm.max_text_length"],
        }
        /// Maximum number of length buckets; their lengths are fitted to the corpus
        max_buckets: usize = 8, "" { range: Range::Between(1.0, MOST_EDGES as f64) }
        /// Bucket lengths in frames, ascending, ending at `max_mel_frames`
        bucket_edges: Option<Vec<usize>> = None, "" {}
        /// Random seed of the batch order; the flag sets `train.seed` too
        seed: Seed = Seed(0), "--seed N" { range: Range::FromZero, heading: BATCHES }
    }
}

/// Parts of the help.
const BATCHES: &str = "Batches";
const CORPUS: &str = "Corpus";

impl BatchConfig {
    /// Checks the settings before any work is done.
    pub fn validate(&self) -> Result<(), BatchError> {
        let sizes = [
            ("batch_size", self.batch_size),
            ("max_mel_frames", self.max_mel_frames),
            ("max_text_length", self.max_text_length),
            ("max_buckets", self.max_buckets),
        ];
        if let Some((key, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(BatchError::Zero { key });
        }
        let most = u32::MAX as usize;
        if let Some((key, size)) = sizes.into_iter().find(|(_, size)| *size > most) {
            return Err(BatchError::TooLarge { key, size, most });
        }
        if self.max_buckets > MOST_EDGES {
            let (key, size) = ("max_buckets", self.max_buckets);
            return Err(BatchError::TooLarge { key, size, most: MOST_EDGES });
        }
        if let Some(budget) = self.frame_budget
            && budget < self.max_mel_frames
        {
            return Err(BatchError::Budget { budget, frames: self.max_mel_frames });
        }
        self.bucket_edges.as_deref().map_or(Ok(()), |edges| self.validate_edges(edges))
    }

    /// Rows in a batch of this length: the batch size, or fewer if the frame budget requires it.
    pub fn rows_of(&self, frames: usize) -> usize {
        let fitting = self.frame_budget.map_or(self.batch_size, |budget| budget / frames.max(1));
        fitting.clamp(1, self.batch_size)
    }

    /// The same for a corpus with so many rows: a batch has no more rows than the corpus, since the rest would be padding.
    pub fn limited_to(&self, rows: usize) -> BatchConfig {
        BatchConfig { batch_size: self.batch_size.min(rows.max(1)), ..self.clone() }
    }

    fn validate_edges(&self, edges: &[usize]) -> Result<(), BatchError> {
        if edges.len() > MOST_EDGES {
            let (key, size) = ("bucket_edges", edges.len());
            return Err(BatchError::TooLarge { key, size, most: MOST_EDGES });
        }
        let rising = edges.first().is_some_and(|&first| first > 0)
            && edges.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising {
            return Err(BatchError::Edges);
        }
        let last = edges[edges.len() - 1];
        if last != self.max_mel_frames {
            return Err(BatchError::LastEdge { last, frames: self.max_mel_frames });
        }
        Ok(())
    }
}

/// The default number of prefetched batches: many small ones, few large ones.
pub fn auto_prefetch(batch_size: usize) -> usize {
    (64 / batch_size.max(1)).clamp(2, 8)
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    #[error("`{key}` is 0")]
    Zero { key: &'static str },
    #[error("`{key}` is {size}, the limit is {most}")]
    TooLarge { key: &'static str, size: usize, most: usize },
    #[error("`frame_budget` is {budget}, less than one utterance of `max_mel_frames` {frames}")]
    Budget { budget: usize, frames: usize },
    #[error("`bucket_edges` must be a list of increasing frame counts above 0")]
    Edges,
    /// Utterances between the last padded length and the longest allowed one have no bucket.
    #[error("`bucket_edges` ends at {last}, `max_mel_frames` is {frames}")]
    LastEdge { last: usize, frames: usize },
    #[error("{frames} frame counts, but {symbols} symbol counts")]
    Uneven { frames: usize, symbols: usize },
    #[error("none of {rows} utterances fits the limits")]
    Nothing { rows: usize },
}

impl Hint for BatchError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Zero { key } => format!("set `{key}` to 1 or more, or leave it out"),
            Self::TooLarge { key, most, .. } => format!("set `{key}` to {most} or less"),
            Self::Budget { frames, .. } => {
                format!("raise `frame_budget` to {frames} or more, or lower `max_mel_frames`")
            }
            Self::Edges => "leave `bucket_edges` out to have them fitted to the corpus".into(),
            Self::LastEdge { frames, .. } => format!("end `bucket_edges` with {frames}"),
            Self::Uneven { .. } => return None,
            Self::Nothing { rows: 0 } => "add utterances to the manifest".into(),
            Self::Nothing { .. } => "raise `max_mel_frames` or `max_text_length`".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(config: BatchConfig, line: &str) {
        assert_eq!(config.validate().unwrap_err().to_string(), line);
    }

    #[test]
    fn the_defaults_are_as_documented() {
        let config = BatchConfig::default();
        assert_eq!(config.validate(), Ok(()));
        let sizes = (config.batch_size, config.max_mel_frames, config.max_text_length);
        assert_eq!(sizes, (16, 800, 200));
        let parsed: BatchConfig = serde_json::from_str(r#"{"batch_size": 4}"#).unwrap();
        assert_eq!(parsed, BatchConfig { batch_size: 4, ..config });
        assert!(serde_json::from_str::<BatchConfig>(r#"{"batchsize": 4}"#).is_err());
    }

    #[test]
    fn settings_that_contradict_each_other_are_named() {
        let config = BatchConfig::default;
        check(BatchConfig { batch_size: 0, ..config() }, "`batch_size` is 0");
        check(
            BatchConfig { frame_budget: Some(799), ..config() },
            "`frame_budget` is 799, less than one utterance of `max_mel_frames` 800",
        );
        let edges = |list: &[usize]| BatchConfig { bucket_edges: Some(list.into()), ..config() };
        let rising = "`bucket_edges` must be a list of increasing frame counts above 0";
        check(edges(&[]), rising);
        check(edges(&[0, 800]), rising);
        check(edges(&[400, 400, 800]), rising);
        check(edges(&[400]), "`bucket_edges` ends at 400, `max_mel_frames` is 800");
        assert_eq!(edges(&[400, 800]).validate(), Ok(()));
    }

    #[test]
    fn the_default_prefetch_follows_its_formula() {
        let found = [1, 4, 8, 9, 16, 24, 32, 64, 1000].map(auto_prefetch);
        assert_eq!(found, [8, 8, 8, 7, 4, 2, 2, 2, 2]);
    }

    #[test]
    fn a_budget_lowers_the_rows_of_long_batches_only() {
        let config = BatchConfig { frame_budget: Some(3200), ..BatchConfig::default() };
        assert_eq!([100, 200, 400, 800].map(|frames| config.rows_of(frames)), [16, 16, 8, 4]);
        assert_eq!(BatchConfig::default().rows_of(800), 16);
    }
}
