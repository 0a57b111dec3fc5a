//! What the user decides about batches, and which decisions cannot be carried out.

use serde::{Deserialize, Serialize};
use tandem_units::{Hint, Seed};

/// The most padded lengths a user may list: each is one more set of kernels to compile.
pub(super) const MOST_EDGES: usize = 64;

/// How batches are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchConfig {
    /// Utterances in a batch, at most.
    pub batch_size: usize,
    /// Frames in a batch, at most, padding included. Unset: `batch_size * max_mel_frames`, so
    /// that the batch size alone decides.
    pub frame_budget: Option<usize>,
    /// Utterances with more mel frames are left out.
    pub max_mel_frames: usize,
    /// Utterances with more symbols are left out.
    pub max_text_length: usize,
    /// Padded lengths, at most. The lengths themselves are fitted to the corpus.
    pub max_buckets: usize,
    /// Padded lengths by hand, rising, ending at `max_mel_frames`. Unset: fitted.
    pub bucket_edges: Option<Vec<usize>>,
    /// What the order of every epoch is drawn from.
    pub seed: Seed,
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self {
            batch_size: 16,
            frame_budget: None,
            max_mel_frames: 800,
            max_text_length: 200,
            max_buckets: 8,
            bucket_edges: None,
            seed: Seed(0),
        }
    }
}

impl BatchConfig {
    /// Refuses what cannot be carried out, before any work is done.
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

    /// Rows in a batch whose rows are this long: the batch size, or what the budget allows.
    pub fn rows_of(&self, frames: usize) -> usize {
        let fitting = self.frame_budget.map_or(self.batch_size, |budget| budget / frames.max(1));
        fitting.clamp(1, self.batch_size)
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

/// Batches kept ready where the user says nothing: many small ones, few large ones.
pub fn auto_prefetch(batch_size: usize) -> usize {
    (64 / batch_size.max(1)).clamp(2, 8)
}

/// Why no batches can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// A size of zero.
    #[error("`{key}` is 0")]
    Zero {
        /// Which setting.
        key: &'static str,
    },
    /// A size past what makes sense.
    #[error("`{key}` is {size}, the limit is {most}")]
    TooLarge {
        /// Which setting.
        key: &'static str,
        /// What it is.
        size: usize,
        /// What it may be.
        most: usize,
    },
    /// Not even one of the longest utterances fits.
    #[error("`frame_budget` is {budget}, less than one utterance of `max_mel_frames` {frames}")]
    Budget {
        /// What was asked for.
        budget: usize,
        /// The longest utterance.
        frames: usize,
    },
    /// The padded lengths are not a rising list.
    #[error("`bucket_edges` must be a list of rising frame counts above 0")]
    Edges,
    /// Utterances between the last padded length and the longest allowed have no place.
    #[error("`bucket_edges` ends at {last}, `max_mel_frames` is {frames}")]
    LastEdge {
        /// Where the list ends.
        last: usize,
        /// Where it must end.
        frames: usize,
    },
    /// The two lists of lengths are not of one corpus.
    #[error("{frames} frame counts, but {symbols} symbol counts")]
    Uneven {
        /// How many frame counts.
        frames: usize,
        /// How many symbol counts.
        symbols: usize,
    },
    /// There is nothing to make batches of.
    #[error("none of {rows} utterances fits the limits")]
    Nothing {
        /// How many were looked at.
        rows: usize,
    },
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
    fn the_defaults_are_the_promised_ones() {
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
        let rising = "`bucket_edges` must be a list of rising frame counts above 0";
        check(edges(&[]), rising);
        check(edges(&[0, 800]), rising);
        check(edges(&[400, 400, 800]), rising);
        check(edges(&[400]), "`bucket_edges` ends at 400, `max_mel_frames` is 800");
        assert_eq!(edges(&[400, 800]).validate(), Ok(()));
    }

    #[test]
    fn prefetch_follows_its_rule() {
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
