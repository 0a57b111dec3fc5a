//! The peak of memory of a run, computed from settings and corpus before anything large is allocated.
//!
//! In: [`MemoryPlan`]. Out: [`MemoryEstimate`], or the error that names the largest batch that fits. The figures are
//! fitted to measured peaks on the CPU by `xtask/measurements/memory_grid.py`, which prints predicted and measured peaks.

use crate::TrainError;
use crate::feed::buffers::Buffers;
use crate::feed::train_route::ALIGNED;
use crate::feed::{FeedSettings, Rows};
use std::fmt;
use tandem_data::batch::BatchShape;
use tandem_device::memory::{FreeMemory, MemoryError, Side};
use tandem_device::placement::MemoryLimits;
use tandem_model::network::size::VoiceConfig;
use tandem_units::Bytes;

/// The program with its tables, libraries, threads and validation set.
const PROGRAM: Bytes = Bytes::mib(212);
/// Copies of the weights while training: weights, gradients, two moments, average, and that of a validation.
const TRAINED_COPIES: u64 = 6;
/// Copies in the snapshots of checkpoints that are written during training: those that training has replaced since, the
/// values read from them, and the bytes of the files.
const SNAPSHOT_COPIES: u64 = 10;
/// Those of them that are on the model's device.
const SNAPSHOT_COPIES_ON_DEVICE: u64 = 4;
/// What validations and samples compute beside a step: floats for each channel of each block of the decoder.
const BACKGROUND: u64 = 50_000;
/// Stack, decoder and heap of a worker, without its batch.
const WORKER: Bytes = Bytes::mib(10);
/// Pages that the allocator cannot use again, in percent.
const FRAGMENTATION: u64 = 6;

/// What decides the peak.
#[derive(Clone)]
pub struct MemoryPlan<'a> {
    pub rows: &'a Rows,
    pub feed: FeedSettings,
    pub buffers: Buffers,
    /// Mel bands.
    pub bands: usize,
    /// The voice and where it is trained; `None` for a command that only loads batches.
    pub model: Option<ModelPlan>,
}

/// The voice and its device.
#[derive(Clone)]
pub struct ModelPlan {
    pub config: VoiceConfig,
    /// Checkpoints or validations before the last step.
    pub snapshots: bool,
    pub limits: Option<MemoryLimits>,
    /// Memory of the model's card; `None`: the host.
    pub card: Option<Bytes>,
    pub on_host: bool,
}

/// The parts of the peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEstimate {
    pub batch_size: usize,
    pub shape: BatchShape,
    /// Batches on the way to the model, and the workers that load them.
    pub loading: Bytes,
    /// Batches on the model's device.
    pub batches: Bytes,
    /// Weights, optimizer, validation and checkpoints in flight.
    pub model: Bytes,
    /// The part of it that is on the model's device.
    model_on_device: Bytes,
    pub activations: Bytes,
    on_host: bool,
}

impl MemoryEstimate {
    /// The peak in host memory.
    pub fn host(&self) -> Bytes {
        let model = match self.on_host {
            true => self.batches + self.model + self.activations,
            false => Bytes(self.model.0 - self.model_on_device.0),
        };
        let parts = self.loading + model;
        PROGRAM + Bytes(parts.0 + parts.0 * FRAGMENTATION / 100)
    }
}

impl fmt::Display for MemoryEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BatchShape { rows, frames, symbols } = self.shape;
        write!(
            f,
            "batch size {} (largest batch {rows} x {frames} frames, {symbols} symbols) needs about {} of memory: \
             activations {}, weights and optimizer {}, batches {}, loading {}",
            self.batch_size,
            self.host(),
            self.activations,
            self.model,
            self.batches,
            self.loading
        )
    }
}

impl MemoryPlan<'_> {
    /// The peak of the largest batch.
    pub fn estimate(&self) -> Result<MemoryEstimate, TrainError> {
        let shapes = self.feed.batches(self.rows)?;
        let largest = shapes.shapes().max_by_key(|shape| shape.rows * shape.frames);
        let shape = largest.unwrap_or_default();
        let floats = |count: usize| Bytes(4 * count as u64);
        let mel = floats(shape.rows * shape.frames * self.bands);
        let reference = floats(shape.rows * self.feed.reference_frames * self.bands);
        let limited = |count: usize, size: Bytes| {
            Bytes((count as u64 * size.0).min(self.feed.memory.0.max(size.0)))
        };
        let (aligned, on_device) = (mel + reference, mel + mel + reference);
        let workers = self.buffers.workers as u64;
        let loading = limited(self.buffers.host, aligned)
            + Bytes(workers * (WORKER + aligned).0)
            + limited(ALIGNED, aligned);
        let mut estimate = MemoryEstimate {
            batch_size: self.feed.batch.batch_size,
            shape,
            loading,
            batches: Bytes(0),
            model: Bytes(0),
            model_on_device: Bytes(0),
            activations: Bytes(0),
            on_host: true,
        };
        if let Some(model) = &self.model {
            let VoiceConfig { decoder_blocks, decoder_width, .. } = model.config;
            let copies = |count: u64| Bytes(count * 4 * model.config.parameters() as u64);
            let background = Bytes(4 * BACKGROUND * (decoder_blocks * decoder_width) as u64);
            let snapshots = |count: u64| copies(if model.snapshots { count } else { 0 });
            let trained = copies(TRAINED_COPIES);
            estimate.batches = limited(self.buffers.depth, on_device);
            estimate.model = trained + snapshots(SNAPSHOT_COPIES) + background;
            estimate.model_on_device = trained + snapshots(SNAPSHOT_COPIES_ON_DEVICE);
            estimate.activations =
                model.config.activations(shape.rows, shape.frames, shape.symbols);
            estimate.on_host = model.on_host;
        }
        Ok(estimate)
    }

    /// The same, refused where it is above what is free or above a budget.
    pub fn check(&self, free: Option<FreeMemory>) -> Result<MemoryEstimate, TrainError> {
        let estimate = self.estimate()?;
        let Some(lack) = self.lack(&estimate, free) else { return Ok(estimate) };
        let (mut fits, mut too_large) = (0, self.feed.batch.batch_size);
        while too_large - fits > 1 {
            let half = fits + (too_large - fits) / 2;
            let smaller = self.with_batch_size(half)?;
            match smaller.lack(&smaller.estimate()?, free) {
                None => fits = half,
                Some(_) => too_large = half,
            }
        }
        Err(MemoryError::PeakTooLarge {
            peak: estimate.to_string(),
            needed: lack.needed,
            most: lack.most,
            available: lack.available,
            largest: (fits > 0).then_some(fits),
            flag: lack.flag,
        }
        .into())
    }

    fn with_batch_size(&self, batch_size: usize) -> Result<Self, TrainError> {
        let mut smaller = self.clone();
        smaller.feed.batch.batch_size = batch_size;
        smaller.buffers = self.buffers.with_batch_size(batch_size)?;
        Ok(smaller)
    }

    fn lack(&self, estimate: &MemoryEstimate, free: Option<FreeMemory>) -> Option<Lack> {
        let side = |side: Side, needed: Bytes, budget: Bytes| {
            let available = format!("the budget of the {} device", side.name());
            let lack = Lack { needed, most: budget, available, flag: Some(side.flag()) };
            (needed > budget).then_some(lack)
        };
        let model = self.model.as_ref();
        let one_batch = Bytes(estimate.batches.0 / self.buffers.depth.max(1) as u64);
        let training = estimate.model_on_device + estimate.activations;
        let budgets = model.and_then(|model| model.limits).and_then(|limits| {
            side(Side::Data, one_batch, limits.data).or(side(Side::Model, training, limits.model))
        });
        let card = model.and_then(|model| model.card).and_then(|card| {
            let needed = training + estimate.batches;
            let available = "the memory of the model's card".to_string();
            (needed > card).then_some(Lack { needed, most: card, available, flag: None })
        });
        let host = free.and_then(|free| {
            let (needed, most) = (estimate.host(), free.most);
            let lack = Lack { needed, most, available: free.source.name().into(), flag: None };
            (needed > most).then_some(lack)
        });
        budgets.or(card).or(host)
    }
}

struct Lack {
    needed: Bytes,
    most: Bytes,
    available: String,
    flag: Option<&'static str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::buffers::BufferRequest;
    use tandem_data::batch::BatchConfig;
    use tandem_device::memory::MemorySource;
    use tandem_model::network::size::ModelSize;
    use tandem_units::Hint;

    fn checked(
        batch_size: usize,
        free: u64,
        limits: Option<MemoryLimits>,
    ) -> Result<MemoryEstimate, TrainError> {
        let rows = Rows { frames: vec![390; 1000], symbols: vec![70; 1000], ..Rows::default() };
        let request = BufferRequest { prefetch: None, samples: None, batch_size, workers: 2 };
        let config = VoiceConfig::of(ModelSize::Tiny, 200, 2, 80);
        let plan = MemoryPlan {
            rows: &rows,
            feed: FeedSettings::new(BatchConfig { batch_size, ..BatchConfig::default() }),
            buffers: Buffers::decide(&request).unwrap(),
            bands: 80,
            model: Some(ModelPlan { config, snapshots: true, limits, card: None, on_host: true }),
        };
        plan.check(Some(FreeMemory { most: Bytes::mib(free), source: MemorySource::AddressSpace }))
    }

    #[test]
    fn a_refusal_names_the_largest_batch_that_fits() {
        let error = checked(3000, 2000, None).unwrap_err();
        let hint = error.hint().unwrap();
        let typed = hint.strip_prefix("use `--batch-size ").and_then(|rest| rest.split('`').next());
        let largest: usize = typed.expect(&hint).parse().unwrap();
        assert!(checked(largest, 2000, None).is_ok(), "{hint}");
        assert!(checked(largest + 1, 2000, None).is_err(), "{hint}");
        assert!(error.to_string().contains("ulimit -v"), "{error}");
    }

    #[test]
    fn a_budget_is_compared_before_anything_is_allocated() {
        let limits = MemoryLimits { data: Bytes::mib(100), model: Bytes::mib(100) };
        let hint = checked(1000, 1 << 20, Some(limits)).unwrap_err().hint().unwrap();
        assert!(hint.contains("or set --data-gpu-memory"), "{hint}");
    }

    #[test]
    fn not_even_one_row_may_fit() {
        let hint = checked(8, 50, None).unwrap_err().hint().unwrap();
        assert!(hint.starts_with("not even one row fits"), "{hint}");
    }
}
