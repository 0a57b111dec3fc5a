//! The path of a batch, from the plan to the consumer, as one expression. Start reading here.
//!
//! In: a [`Prepared`] corpus and [`FeedSettings`]. Out: a feed of [`Ready`] batches, in an order
//! that is a pure function of seed, epoch and lengths; the number of workers only changes the
//! speed. Uses no device unless mel frames are computed on one.

use crate::TrainError;
use crate::feed::device_mel::DevicePreprocess;
use crate::feed::load::Load;
use crate::feed::mel::{LoadMel, Ready};
use crate::feed::row_failures::RowFailures;
use crate::feed::schedule::{Shard, Tickets};
use crate::feed::skip_list::SkipList;
use crate::prepare::Prepared;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tandem_audio::mel::{MelExtractor, MelKernel};
use tandem_data::batch::{BatchConfig, Batches, HostBatch, Lengths, Position};
use tandem_data::cache::RowState;
use tandem_data::corpus::Split;
use tandem_device::placement::Shapes;
use tandem_model::Device;
use tandem_pipeline::{
    Adapt, Budget, CancelToken, Crew, Feed, Pool, QueueLimits, Route, Setup, Slowdowns, Watch,
};
use tandem_telemetry::Recorder;
use tandem_units::{Bytes, Epoch};

/// How a corpus is fed.
#[derive(Clone, Debug)]
pub struct FeedSettings {
    pub batch: BatchConfig,
    pub shapes: Shapes,
    /// Which rows; none: all.
    pub split: Option<Split>,
    pub start: Position,
    /// Epochs to feed in all, counted from epoch 0; none: without end.
    pub epochs: Option<u32>,
    /// Threads that load batches.
    pub workers: usize,
    /// Upper limit of the worker controller.
    pub most_workers: usize,
    /// Finished batches that may wait for the consumer, including the one it works on.
    pub depth: usize,
    /// Batches on the host, including those that workers assemble; none: as many as the depth, and
    /// at least one for each worker and one more.
    pub host: Option<usize>,
    /// Limit of the memory of all batches in the path.
    pub memory: Bytes,
    /// Whether workers and depth may change while running.
    pub adapt: Adapt,
    /// The device that computes mel frames; none: the workers, on the host.
    pub mel_device: Option<Device>,
    /// The mel kernel to use; none: the fastest. For comparisons.
    pub kernel: Option<MelKernel>,
    /// The number of the first batch, counted over the whole run. Random numbers depend on it.
    pub first: u64,
    /// Length of the reference segment of each row; 0: no references.
    pub reference_frames: usize,
    /// The batch at which the model's device is lost, for tests.
    pub lose_device_at: Option<u64>,
    /// Time without progress after which the pipeline ends with an error; `None`: never.
    pub stall_timeout: Option<Duration>,
    /// Stages that are slowed on purpose, for tests of profiling and comparison.
    pub slow: Slowdowns,
    /// Counts rows that fail during the run, and limits them.
    pub row_failures: RowFailures,
    /// Rows skipped on purpose, for tests.
    pub skip_list: SkipList,
    /// The batches that this process trains.
    pub shard: Shard,
}

impl FeedSettings {
    /// Sorts rows into batches.
    pub fn batches(&self, rows: &Rows) -> Result<Batches, TrainError> {
        let batches = Batches::new(rows.lengths(), &self.batch)?;
        Ok(match self.shapes {
            Shapes::Static => batches,
            Shapes::PerBatch => batches.tight(rows.lengths()),
        })
    }

    /// Places for batches on the host.
    pub fn host_batches(&self) -> usize {
        self.host.unwrap_or_else(|| self.depth.max(self.workers + 1)).max(1)
    }

    /// All batches of the plan in order, those of other ranks included.
    pub fn tickets(&self, rows: &Rows) -> Result<Tickets, TrainError> {
        let batches = Arc::new(self.batches(rows)?);
        let last = self.epochs.map(Epoch);
        Ok(Tickets::new(batches, self.start, last).numbered_from(self.first))
    }

    /// Default settings for a batch configuration, starting at the first batch.
    pub fn new(batch: BatchConfig) -> FeedSettings {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        FeedSettings {
            start: Position::start(batch.seed),
            shapes: Shapes::Static,
            split: Some(Split::Train),
            epochs: None,
            workers: 1,
            most_workers: cores.max(2),
            depth: 3,
            host: None,
            memory: Bytes::mib(512),
            adapt: Adapt::Off,
            mel_device: None,
            kernel: None,
            first: 0,
            reference_frames: 0,
            lose_device_at: None,
            stall_timeout: Watch::default().stall_timeout,
            slow: Slowdowns::default(),
            row_failures: RowFailures::default(),
            skip_list: SkipList::default(),
            shard: Shard::ALL,
            batch,
        }
    }
}

/// The rows of one split, by their index in the batch plan.
#[derive(Debug, Default)]
pub struct Rows {
    /// Row in the cache of each planned row.
    pub cache_row: Vec<u32>,
    /// Mel frames of each planned row.
    pub frames: Vec<u32>,
    /// Symbols of each planned row.
    pub symbols: Vec<u32>,
    /// Speaker of each planned row.
    pub speakers: Vec<u16>,
    /// Planned rows of each speaker.
    pub by_speaker: BTreeMap<u16, Vec<u32>>,
}

impl Rows {
    /// The usable rows of a split, or of all, in corpus order.
    pub fn of(prepared: &Prepared, split: impl Into<Option<Split>>) -> Rows {
        let wanted = split.into().map(|split| u8::from(split == Split::Eval));
        let mut rows = Rows::default();
        for number in 0..prepared.cache.len() {
            let Some(row) = prepared.cache.row(number) else { continue };
            if row.record.state() == RowState::Usable
                && wanted.is_none_or(|wanted| row.record.split == wanted)
            {
                let same_speaker = rows.by_speaker.entry(row.record.speaker).or_default();
                same_speaker.push(rows.cache_row.len() as u32);
                rows.speakers.push(row.record.speaker);
                rows.cache_row.push(number as u32);
                rows.frames.push(row.record.frames);
                rows.symbols.push(row.record.symbols);
            }
        }
        rows
    }

    /// Input of the batch plan.
    pub fn lengths(&self) -> Lengths<'_> {
        Lengths { frames: &self.frames, symbols: &self.symbols }
    }
}

/// Starts the path of a batch. Stopped by `cancel`, by an error or by dropping the feed.
pub fn feed(
    prepared: &Arc<Prepared>,
    settings: &FeedSettings,
    recorder: &Recorder,
    cancel: &CancelToken,
) -> Result<Feed<Ready>, TrainError> {
    let route = host_route(prepared, settings, recorder)?;
    Ok(route.start(setup(settings, recorder, cancel))?)
}

/// Pipeline setup for these settings.
pub(crate) fn setup(settings: &FeedSettings, recorder: &Recorder, cancel: &CancelToken) -> Setup {
    Setup {
        recorder: recorder.clone(),
        cancel: cancel.clone(),
        adapt: settings.adapt.clone(),
        watch: Watch { stall_timeout: settings.stall_timeout, ..Watch::default() },
        ..Setup::default()
    }
}

/// The part of the path that ends on the host.
pub(crate) fn host_route(
    prepared: &Arc<Prepared>,
    settings: &FeedSettings,
    recorder: &Recorder,
) -> Result<Route<Ready>, TrainError> {
    let rows = Arc::new(Rows::of(prepared, settings.split));
    let tickets = settings.tickets(&rows)?.shard(settings.shard);

    // A batch is with a worker, in a slot or with the consumer. More pooled batches would never be
    // used.
    let host = settings.host_batches();
    let budget = Budget::of(settings.memory);
    let hold = |items| QueueLimits::bytes(settings.memory).items(items).within(&budget);
    let crew = Crew::of(settings.workers).up_to(settings.most_workers).flag("--num-workers");
    let mel = prepared.settings.mel.clone();
    let kernel = settings.kernel.unwrap_or_else(|| MelKernel::best_for(&mel));
    // Fails here if settings or kernel are invalid. Each worker creates its own extractor.
    MelExtractor::with_kernel(mel.clone(), kernel)?;
    let bands = mel.clone();
    let spare = host.max(settings.most_workers) + 1;
    let pool = Pool::new(spare, move || HostBatch::new(&bands));

    let (seed, reference_frames) = (settings.batch.seed, settings.reference_frames);
    let load = {
        let (prepared, recorder) = (prepared.clone(), recorder.clone());
        let (failures, skip_list) = (settings.row_failures.clone(), settings.skip_list.clone());
        move || {
            let load = Load::new(prepared.clone(), rows.clone(), pool.clone(), recorder.clone());
            let load = load.with_references(seed, reference_frames);
            load.with_failures(failures.clone(), skip_list.clone())
        }
    };
    let tickets = Route::from(tickets, hold(2 * settings.most_workers));
    Ok(match &settings.mel_device {
        None => {
            let load_mel = move || LoadMel::new(load(), mel.clone(), kernel);
            tickets.then_by(crew, load_mel, hold(host))
        }
        Some(device) => {
            let preprocess = DevicePreprocess::new(&mel, device)?;
            tickets.then_by(crew, load, hold(host)).then(preprocess, hold(host))
        }
    })
}
