//! Plans which utterances share a batch, and the order of the batches.
//!
//! In: lengths, configuration, epoch. Out: an [`EpochPlan`] with every usable row exactly once; each
//! batch has one of a few fixed shapes, or the smallest shape that fits. A pure function without state
//! between epochs, so that a run can resume from its [`Position`] alone. Next on the path:
//! [`super::HostBatch`].

use super::length_buckets::edges;
use super::order::Shuffler;
use super::{BatchConfig, BatchError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tandem_text::Transcript;
use tandem_units::{Epoch, Seed};

/// The lengths of all utterances in corpus order: row `i` is entry `i` of both lists.
#[derive(Clone, Copy, Debug)]
pub struct Lengths<'a> {
    pub frames: &'a [u32],
    pub symbols: &'a [u32],
}

/// The padded size of one batch: `[rows, frames]` for mel, `[rows, symbols]` for text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BatchShape {
    /// Utterances at most; the last batch of a bucket may have fewer.
    pub rows: usize,
    pub frames: usize,
    pub symbols: usize,
}

/// An utterance that is in no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub row: u32,
    pub why: Unfit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("no mel frames")]
    NoFrames,
    #[error("no symbols")]
    NoSymbols,
    #[error("{0} mel frames, more than `max_mel_frames`")]
    TooManyFrames(u32),
    #[error("{0} symbols, more than `max_text_length`")]
    TooManySymbols(u32),
}

impl tandem_units::Hint for Unfit {}

/// A corpus sorted into buckets once; every epoch is planned from it.
#[derive(Clone, Debug)]
pub struct Batches {
    seed: Seed,
    /// One per bucket, in increasing order of frames.
    shapes: Vec<BatchShape>,
    /// The bucket of each row; [`NO_BUCKET`] for a row that is left out.
    bucket_of: Vec<u8>,
    /// Rows in each bucket.
    counts: Vec<u32>,
    left_out: Vec<LeftOut>,
    real_frames: u64,
    /// Frames and symbols of each row, if every batch gets the smallest shape that fits.
    tight: Option<Arc<[(u32, u32)]>>,
}

const NO_BUCKET: u8 = u8::MAX;

impl Batches {
    /// Sorts the corpus into buckets.
    pub fn new(lengths: Lengths<'_>, config: &BatchConfig) -> Result<Self, BatchError> {
        config.validate()?;
        let (frames, symbols) = (lengths.frames.len(), lengths.symbols.len());
        if frames != symbols {
            return Err(BatchError::Uneven { frames, symbols });
        }
        if frames >= u32::MAX as usize {
            let most = u32::MAX as usize - 1;
            return Err(BatchError::TooLarge { key: "rows", size: frames, most });
        }
        let fits = |row: &usize| unfit(lengths, *row, config).is_none();
        let config = &config.limited_to((0..frames).filter(fits).count());
        let fits = |row: &usize| unfit(lengths, *row, config).is_none();
        let edges = edges((0..frames).filter(fits).map(|row| lengths.frames[row]), config);
        let mut batches = Self {
            seed: config.seed,
            shapes: edges.iter().map(|&frames| shape_of(frames, config)).collect(),
            bucket_of: Vec::with_capacity(frames),
            counts: vec![0; edges.len()],
            left_out: Vec::new(),
            real_frames: 0,
            tight: None,
        };
        for row in 0..frames {
            batches.assign_bucket(lengths, row, config);
        }
        if batches.counts.iter().all(|&count| count == 0) {
            return Err(BatchError::Nothing { rows: frames });
        }
        Ok(batches)
    }

    /// The same batches, each padded to its own longest utterance instead of to a fixed shape.
    pub fn tight(self, lengths: Lengths<'_>) -> Self {
        let pairs = lengths.frames.iter().copied().zip(lengths.symbols.iter().copied());
        Self { tight: Some(pairs.collect()), ..self }
    }

    /// The batches of one epoch, in order.
    pub fn epoch(&self, epoch: Epoch) -> EpochPlan {
        let mut shuffler = Shuffler::new(self.seed, epoch);
        let mut permuted: Vec<u32> = (0..self.bucket_of.len() as u32)
            .filter(|&row| self.bucket_of[row as usize] != NO_BUCKET)
            .collect();
        shuffler.shuffle(&mut permuted);
        // Counting sort by bucket: it is stable, so each bucket keeps the shuffled order.
        let mut next: Vec<u32> = Vec::with_capacity(self.counts.len());
        let mut total = 0;
        for &count in &self.counts {
            next.push(total);
            total += count;
        }
        let starts = next.clone();
        let mut rows = vec![0; permuted.len()];
        for row in permuted {
            let place = &mut next[usize::from(self.bucket_of[row as usize])];
            rows[*place as usize] = row;
            *place += 1;
        }
        let mut batches = self.split(&starts);
        shuffler.shuffle(&mut batches);
        EpochPlan {
            epoch,
            shapes: self.shapes.clone(),
            rows,
            batches,
            real_frames: self.real_frames,
            tight: self.tight.clone(),
        }
    }

    /// The shapes of the buckets in use, shortest first. With [`Self::tight`], these are upper bounds.
    pub fn shapes(&self) -> impl Iterator<Item = BatchShape> {
        let used = self.shapes.iter().zip(&self.counts).filter(|(_, count)| **count > 0);
        used.map(|(shape, _)| *shape)
    }

    /// The utterances that are in no batch.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    fn assign_bucket(&mut self, lengths: Lengths<'_>, row: usize, config: &BatchConfig) {
        if let Some(why) = unfit(lengths, row, config) {
            self.left_out.push(LeftOut { row: row as u32, why });
            self.bucket_of.push(NO_BUCKET);
            return;
        }
        let (frames, symbols) = (lengths.frames[row] as usize, lengths.symbols[row] as usize);
        let bucket = self.shapes.partition_point(|shape| shape.frames < frames);
        let shape = &mut self.shapes[bucket];
        // One width per bucket, that of its longest text: a second shape would be compiled as well.
        let width = symbols.next_multiple_of(8).min(most_symbols(config));
        shape.symbols = shape.symbols.max(width);
        self.counts[bucket] += 1;
        self.bucket_of.push(bucket as u8);
        self.real_frames += frames as u64;
    }

    /// Splits every bucket into batches of its capacity; the last batch of each takes the rest.
    fn split(&self, starts: &[u32]) -> Vec<BatchSpan> {
        let mut spans = Vec::new();
        for (bucket, (&start, &count)) in starts.iter().zip(&self.counts).enumerate() {
            let capacity = self.shapes[bucket].rows as u32;
            for taken in (0..count).step_by(capacity as usize) {
                let length = capacity.min(count - taken);
                spans.push(BatchSpan { start: start + taken, length, bucket: bucket as u8 });
            }
        }
        spans
    }
}

/// The limit counts characters; the silence symbols at both ends are added to it.
fn most_symbols(config: &BatchConfig) -> usize {
    config.max_text_length + Transcript::EDGES
}

fn unfit(lengths: Lengths<'_>, row: usize, config: &BatchConfig) -> Option<Unfit> {
    let (frames, symbols) = (lengths.frames[row], lengths.symbols[row]);
    if frames == 0 {
        Some(Unfit::NoFrames)
    } else if symbols == 0 {
        Some(Unfit::NoSymbols)
    } else if frames as usize > config.max_mel_frames {
        Some(Unfit::TooManyFrames(frames))
    } else if symbols as usize > most_symbols(config) {
        Some(Unfit::TooManySymbols(symbols))
    } else {
        None
    }
}

fn shape_of(frames: usize, config: &BatchConfig) -> BatchShape {
    BatchShape { rows: config.rows_of(frames), frames, symbols: 0 }
}

/// The rows of a batch in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BatchSpan {
    start: u32,
    length: u32,
    bucket: u8,
}

/// The batches of one epoch: every usable row exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochPlan {
    epoch: Epoch,
    shapes: Vec<BatchShape>,
    rows: Vec<u32>,
    batches: Vec<BatchSpan>,
    real_frames: u64,
    tight: Option<Arc<[(u32, u32)]>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedBatch<'a> {
    /// The padded size; `rows.len()` may be less than `shape.rows`.
    pub shape: BatchShape,
    /// The utterances in it, in order.
    pub rows: &'a [u32],
}

/// The cost of padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Padding {
    /// Real frames in an epoch.
    pub real_frames: u64,
    /// Frames computed in an epoch, with padding and empty rows.
    pub padded_frames: u64,
}

impl EpochPlan {
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Number of batches; never zero.
    #[expect(clippy::len_without_is_empty, reason = "a plan without batches is an error")]
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    pub fn utterances(&self) -> usize {
        self.rows.len()
    }

    /// The batch at this index, or `None` past the end.
    pub fn batch(&self, index: usize) -> Option<PlannedBatch<'_>> {
        let span = self.batches.get(index)?;
        let (start, length) = (span.start as usize, span.length as usize);
        let rows = &self.rows[start..start + length];
        let shape = match &self.tight {
            Some(lengths) => tight_shape(rows, lengths),
            None => self.shapes[usize::from(span.bucket)],
        };
        Some(PlannedBatch { shape, rows })
    }

    /// The batches from this index to the end.
    pub fn batches_from(&self, index: usize) -> impl Iterator<Item = PlannedBatch<'_>> {
        (index..self.len()).filter_map(|at| self.batch(at))
    }

    pub fn padding(&self) -> Padding {
        let frames = |batch: PlannedBatch<'_>| (batch.shape.rows * batch.shape.frames) as u64;
        let padded_frames = self.batches_from(0).map(frames).sum();
        Padding { real_frames: self.real_frames, padded_frames }
    }
}

/// The smallest shape that fits these rows.
fn tight_shape(rows: &[u32], lengths: &[(u32, u32)]) -> BatchShape {
    let lengths = || rows.iter().map(|&row| lengths[row as usize]);
    BatchShape {
        rows: rows.len(),
        frames: lengths().map(|(frames, _)| frames).max().unwrap_or(0) as usize,
        symbols: lengths().map(|(_, symbols)| symbols).max().unwrap_or(0) as usize,
    }
}

impl Padding {
    /// The share of padding in all computed frames, from 0 to 1.
    pub fn waste(&self) -> f64 {
        1.0 - self.real_frames as f64 / self.padded_frames.max(1) as f64
    }
}

/// The position of a run. With the same corpus and configuration, it is enough to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// The seed of the order.
    pub seed: Seed,
    /// The current epoch.
    pub epoch: Epoch,
    /// The next batch of that epoch.
    pub batch: u64,
}

impl Position {
    /// Before the first batch of a run.
    pub fn start(seed: Seed) -> Self {
        Self { seed, epoch: Epoch(0), batch: 0 }
    }

    /// The position after one more batch: the start of the next epoch after the last one.
    pub fn after_batch(self, plan: &EpochPlan) -> Self {
        let batch = self.batch + 1;
        if batch < plan.len() as u64 {
            Self { batch, ..self }
        } else {
            Self { epoch: Epoch(self.epoch.0 + 1), batch: 0, ..self }
        }
    }
}
