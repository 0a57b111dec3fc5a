//! The path of the vocoder's batches: recordings are read, cut into segments and copied to the model's device.
//!
//! In: a prepared corpus and [`FeedSettings`]. Out: a feed of [`TransferredSegments`]. Which segment of a recording is
//! used depends on seed and ticket only, so a resumed run sees the same segments.

use crate::TrainError;
use crate::feed::load::{Clip, Load};
use crate::feed::route::setup;
use crate::feed::schedule::{Planned, Tickets};
use crate::feed::{FeedSettings, Rows};
use crate::prepare::Prepared;
use crate::run::background::priority_on;
use std::path::Path;
use std::sync::Arc;
use tandem_data::batch::{HostBatch, Position};
use tandem_device::backend::guarded;
use tandem_device::placement::OpenDevices;
use tandem_model::vocoder::VocoderError;
use tandem_model::vocoder::neural::segment::{
    SEGMENT_FRAMES, SegmentBatch, SegmentCutter, UploadedSegments,
};
use tandem_model::vocoder::neural::trained::VocoderDocument;
use tandem_pipeline::watchdog::{OnFrozen, Watch};
use tandem_pipeline::{
    Budget, CancelToken, Crew, Emitter, Feed, Payload, Pool, QueueLimits, Route, Setup, Stage,
    StageError,
};
use tandem_telemetry::Recorder;
use tandem_units::{Bytes, Epoch, Seed, Ticket};

/// How many stall timeouts one training step may take.
const STEP_TIMEOUT_FACTOR: u32 = 10;
/// Separates the random numbers of segments from those of the batch order.
const SEGMENTS: u64 = 0x5e6_3e27;

/// Segments in host memory.
pub struct HostSegments {
    pub ticket: Ticket,
    /// The start position that makes this batch the first one.
    pub position: Position,
    pub batch: SegmentBatch,
}

/// Segments on the model's device.
pub struct TransferredSegments {
    pub ticket: Ticket,
    pub batch: UploadedSegments,
    /// Mel frames of all segments.
    pub frames: u64,
    size: Bytes,
}

impl Payload for HostSegments {
    fn size(&self) -> Bytes {
        self.batch.size()
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket)
    }
}

impl Payload for TransferredSegments {
    fn size(&self) -> Bytes {
        self.size
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket)
    }
}

/// Reads recordings and cuts segments. One per worker.
pub struct CutSegments {
    load: Load,
    rows: Arc<Rows>,
    cutter: SegmentCutter,
    /// Samples from one frame to the next.
    hop: usize,
    seed: Seed,
}

impl CutSegments {
    pub fn new(
        prepared: &Arc<Prepared>,
        rows: &Arc<Rows>,
        document: &VocoderDocument,
        feed: &FeedSettings,
        recorder: &Recorder,
    ) -> Result<CutSegments, VocoderError> {
        let mel = document.mel.clone();
        // The vocoder needs the sound alone; batches of text and mel frames are not used.
        let pool = Pool::new(1, move || HostBatch::new(&mel));
        let load = Load::new(prepared.clone(), rows.clone(), pool, recorder.clone());
        let load = load.with_failures(feed.row_failures.clone(), feed.skip_list.clone());
        let cutter = SegmentCutter::new(&document.config, &document.mel, document.scale)?;
        let seed = feed.batch.seed.derive(SEGMENTS);
        let hop = document.mel.hop.0;
        Ok(CutSegments { load, rows: rows.clone(), cutter, hop, seed })
    }

    /// Appends a segment of a row. A row that cannot be read is skipped.
    pub fn cut(
        &mut self,
        ticket: Ticket,
        row: u32,
        on_file: &mut dyn FnMut(&Path),
        batch: &mut SegmentBatch,
    ) -> Result<(), StageError> {
        let Some(clip) = self.load.clip_of(ticket, row, on_file) else { return Ok(()) };
        let samples = samples_of(clip);
        let seed = self.seed.for_ticket(ticket).derive(u64::from(row));
        let frames = self.rows.frames[row as usize] as usize;
        let places = frames.saturating_sub(SEGMENT_FRAMES) + 1;
        // Between two frames, too: a recording then has a new segment each time.
        let start = (seed.0 % (places * self.hop) as u64) as usize;
        self.cutter.cut(&samples, start, batch).map_err(StageError::stop)
    }
}

/// Samples with full scale at 1.
pub fn samples_of(clip: Clip) -> Vec<f32> {
    match clip {
        Clip::F32(samples) => samples,
        Clip::I16(samples) => samples.iter().map(|&sample| f32::from(sample) / 32768.0).collect(),
    }
}

impl Stage for CutSegments {
    type In = Planned;
    type Out = HostSegments;

    fn name(&self) -> &'static str {
        "load"
    }

    fn step(
        &mut self,
        planned: Planned,
        out: &mut dyn Emitter<HostSegments>,
    ) -> Result<(), StageError> {
        let Planned { ticket, position, rows, .. } = planned;
        let mut batch = SegmentBatch::default();
        for row in rows {
            // Tells the watchdog which file is being read.
            let on_file = &mut |path: &Path| out.item(&path.display());
            self.cut(ticket, row, on_file, &mut batch)?;
        }
        if batch.segments == 0 {
            return Err(StageError::skip("none of its rows could be loaded"));
        }
        out.push(HostSegments { ticket, position, batch })
    }
}

/// Copies segments to the data device, then to the model device.
struct TransferSegments(OpenDevices);

impl Stage for TransferSegments {
    type In = HostSegments;
    type Out = TransferredSegments;

    fn name(&self) -> &'static str {
        "transfer"
    }

    fn step(
        &mut self,
        segments: HostSegments,
        out: &mut dyn Emitter<TransferredSegments>,
    ) -> Result<(), StageError> {
        let HostSegments { ticket, batch, .. } = segments;
        let (size, frames) = (batch.size(), batch.frames() as u64);
        let batch = guarded("copying segments to the model device", || batch.upload(&self.0.model));
        let batch = batch.map_err(StageError::stop)?;
        out.push(TransferredSegments { ticket, batch, frames, size })
    }
}

/// Everything the path of a batch needs.
pub struct SegmentRoute<'a> {
    pub prepared: &'a Arc<Prepared>,
    pub feed: &'a FeedSettings,
    pub devices: &'a OpenDevices,
    pub document: &'a VocoderDocument,
    pub recorder: &'a Recorder,
    pub cancel: &'a CancelToken,
    /// Called when a stage or the consumer does not end; without it the consumer is not watched.
    pub on_frozen: Option<OnFrozen>,
}

impl SegmentRoute<'_> {
    pub fn start(&self) -> Result<Feed<TransferredSegments>, TrainError> {
        let feed = self.feed;
        let rows = Arc::new(Rows::of(self.prepared, feed.split));
        let batches = Arc::new(feed.batches(&rows)?);
        let tickets = Tickets::new(batches, feed.start, feed.epochs.map(Epoch));
        let tickets = tickets.numbered_from(feed.first);
        let budget = Budget::of(feed.memory);
        let hold = |items| QueueLimits::bytes(feed.memory).items(items).within(&budget);
        let crew = Crew::of(feed.workers).up_to(feed.most_workers).flag("--num-workers");
        let cutter = {
            // Fails here if the settings are invalid; each worker then has its own.
            CutSegments::new(self.prepared, &rows, self.document, feed, self.recorder)?;
            let (prepared, document) = (self.prepared.clone(), self.document.clone());
            let (feed, recorder) = (feed.clone(), self.recorder.clone());
            move || {
                CutSegments::new(&prepared, &rows, &document, &feed, &recorder)
                    .expect("the same settings were accepted above")
            }
        };
        let depth = feed.depth.max(feed.workers + 1);
        let route = Route::from(tickets, hold(2 * feed.most_workers))
            .then_by(crew, cutter, hold(depth))
            .then(TransferSegments(self.devices.clone()), hold(feed.depth.max(2)));
        Ok(route.start(self.setup())?)
    }

    fn setup(&self) -> Setup {
        let (priority, slow) = (priority_on(self.devices), self.feed.slow.clone());
        let setup = setup(self.feed, self.recorder, self.cancel);
        let step_timeout = self.feed.stall_timeout.map(|timeout| STEP_TIMEOUT_FACTOR * timeout);
        let consumer = self.on_frozen.as_ref().and(step_timeout);
        let watch = Watch { consumer, on_frozen: self.on_frozen.clone(), ..setup.watch.clone() };
        Setup { priority, slow, watch, ..setup }
    }
}
