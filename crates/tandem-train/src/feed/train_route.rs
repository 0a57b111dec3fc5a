//! The path of a batch from the plan to the model's device, or a replay of the same batches from
//! memory.
//!
//! In: a prepared corpus, the text encoders that align, devices. Out: a feed of [`Transferred`]
//! batches for the training thread. A replay shows what the model costs without any data work.
//! Next: [`crate::run::trainer`].

use crate::TrainError;
use crate::feed::FeedSettings;
use crate::feed::align::Align;
use crate::feed::align::flat_start::estimate_flat_start;
use crate::feed::align::snapshots::AlignerSnapshots;
use crate::feed::route::{host_route, setup};
use crate::feed::transfer::{Transfer, Transferred};
use crate::prepare::Prepared;
use crate::run::background::{BackgroundPool, priority_on};
use crate::run::memory_accounting::MemoryAccounting;
use std::sync::Arc;
use tandem_device::placement::OpenDevices;
use tandem_model::alignment::Aligner;
use tandem_model::alignment::flat_start::FlatStart;
use tandem_model::trained_voice::VoiceDocument;
use tandem_pipeline::watchdog::{OnFrozen, Watch};
use tandem_pipeline::{Adapt, CancelToken, Feed, Payload, QueueLimits, Route, Setup};
use tandem_telemetry::Recorder;
use tandem_units::{Bytes, Seed, Ticket};

/// Where a run's batches come from.
#[derive(Clone, Default)]
pub enum BatchSource {
    /// Loaded, aligned and transferred during the run.
    #[default]
    FromCorpus,
    /// These batches, repeated without end.
    Replayed(Arc<[Transferred]>),
}

/// Everything the path of a batch needs.
pub struct TrainRoute<'a> {
    pub prepared: &'a Arc<Prepared>,
    pub feed: &'a FeedSettings,
    pub devices: &'a OpenDevices,
    pub accounting: &'a MemoryAccounting,
    pub document: &'a VoiceDocument,
    /// Text encoders of earlier steps, which align.
    pub snapshots: &'a AlignerSnapshots,
    /// Steps at the start that are aligned by the flat start.
    pub flat_start: u64,
    /// Batches per step, on all ranks together.
    pub batches_per_step: u64,
    /// Seed of flow noise and flow times.
    pub seed: Seed,
    pub recorder: &'a Recorder,
    pub cancel: &'a CancelToken,
    /// Called when a stage or the consumer does not end; without it the consumer is not watched.
    pub on_frozen: Option<OnFrozen>,
}

impl TrainRoute<'_> {
    pub fn start(&self) -> Result<Feed<Transferred>, TrainError> {
        let align = Align {
            flat_start: self.estimate_flat_start()?,
            flat_start_steps: self.flat_start,
            snapshots: self.snapshots.clone(),
            device: self.devices.data.clone(),
            scale: self.document.scale,
            patch: self.document.config.patch,
            batches_per_step: self.batches_per_step,
            seed: self.seed.derive(FLOW_NOISE),
            cancel: self.cancel.clone(),
            recorder: self.recorder.clone(),
            pool: BackgroundPool::start(priority_on(self.devices), "align")?,
            aligner: Aligner::default(),
        };
        let memory = self.feed.memory;
        let hold = QueueLimits::bytes(memory).items(ALIGNED);
        // The slots are limited to the free memory of the model's device. One batch always passes the
        // slots; the memory accounting refuses it where there is no room.
        let room = self.accounting.room_for_batches().map_or(memory, |room| room.min(memory));
        let slots = QueueLimits::bytes(room).items(self.feed.depth);
        let pool = BackgroundPool::start(priority_on(self.devices), "transfer")?;
        let transfer = Transfer::new(self.devices.model.clone(), pool, self.accounting.clone());
        let route = host_route(self.prepared, self.feed, self.recorder)?
            .then(align, hold)
            .then(transfer.lost_at(self.feed.lose_device_at), slots);
        Ok(route.start(self.setup())?)
    }

    /// The flat start; none where all steps that use it are done.
    fn estimate_flat_start(&self) -> Result<Option<FlatStart>, TrainError> {
        if self.feed.first / self.batches_per_step >= self.flat_start {
            return Ok(None);
        }
        let scale = &self.document.scale;
        estimate_flat_start(self.prepared, self.feed, scale, self.cancel).map(Some)
    }

    /// Repeats batches that are already on the model's device.
    pub fn replay(&self, batches: Arc<[Transferred]>) -> Result<Feed<Transferred>, TrainError> {
        let size: Bytes = batches.iter().map(Payload::size).sum();
        let (first, count) = (self.feed.first, batches.len() as u64);
        let endless = (0..).map_while(move |turn: u64| {
            let batch = batches.get((turn % count.max(1)) as usize)?.clone();
            let ticket = Ticket { seq: first + turn, ..batch.ticket };
            Some(Transferred { ticket, ..batch })
        });
        let slots = QueueLimits::bytes(size.max(self.feed.memory)).items(self.feed.depth);
        let setup = Setup { adapt: Adapt::Off, ..self.setup() };
        Ok(Route::from(endless, slots).start(setup)?)
    }

    fn setup(&self) -> Setup {
        let (priority, slow) = (priority_on(self.devices), self.feed.slow.clone());
        let setup = setup(self.feed, self.recorder, self.cancel);
        // A step may take long, and its thread cannot be ended from outside: it gets more time, and only
        // where somebody can act on it.
        let step_timeout = self.feed.stall_timeout.map(|timeout| STEP_TIMEOUT_FACTOR * timeout);
        let consumer = self.on_frozen.as_ref().and(step_timeout);
        let watch = Watch { consumer, on_frozen: self.on_frozen.clone(), ..setup.watch.clone() };
        Setup { priority, slow, watch, ..setup }
    }
}

/// Aligned batches that may wait for the transfer.
pub const ALIGNED: usize = 2;

/// How many stall timeouts one training step may take.
const STEP_TIMEOUT_FACTOR: u32 = 10;

/// Separates the random numbers inside batches from those of the batch order.
const FLOW_NOISE: u64 = 0x1e55_0115;
