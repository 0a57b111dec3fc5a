//! The path of a batch, from the plan to the model's device, written down once; or the same
//! batches again, from memory.
//!
//! In: a prepared corpus, the readers that align, devices. Out: a feed of [`Transferred`] batches for
//! the training thread. Replayed batches show what the model costs when no data work is left.
//! Next: [`crate::run::trainer`].

use crate::TrainError;
use crate::feed::FeedSettings;
use crate::feed::align::Align;
use crate::feed::align::flat_start::learn_first_alignment;
use crate::feed::align::snapshots::AlignerSnapshots;
use crate::feed::route::{host_route, setup};
use crate::feed::transfer::{Place, Transferred};
use crate::prepare::Prepared;
use crate::run::background::{BackgroundPool, priority_on};
use crate::run::memory_accounting::MemoryAccounting;
use std::sync::Arc;
use tandem_device::placement::OpenDevices;
use tandem_model::alignment::Aligner;
use tandem_model::alignment::flat_start::FlatStart;
use tandem_model::trained_voice::VoiceDocument;
use tandem_pipeline::watchdog::{OnFrozen, Watch};
use tandem_pipeline::{Adapt, CancelToken, Feed, Hold, Payload, Route, Setup};
use tandem_telemetry::Recorder;
use tandem_units::{Bytes, Seed, Ticket};

/// Where a run's batches come from.
#[derive(Clone, Default)]
pub enum BatchSource {
    /// Through the whole path, all the time.
    #[default]
    FromCorpus,
    /// These, over and over.
    Replayed(Arc<[Transferred]>),
}

/// Everything on the way of a batch.
pub struct TrainRoute<'a> {
    /// The corpus.
    pub prepared: &'a Arc<Prepared>,
    /// How it is fed.
    pub feed: &'a FeedSettings,
    /// Where it goes.
    pub devices: &'a OpenDevices,
    /// Where its memory is entered.
    pub accounting: &'a MemoryAccounting,
    /// What the voice is.
    pub document: &'a VoiceDocument,
    /// Readers that align.
    pub snapshots: &'a AlignerSnapshots,
    /// Steps at the start that are aligned without them.
    pub flat_start: u64,
    /// Batches of one step.
    pub grad_accum: u64,
    /// What noise and times are drawn from.
    pub seed: Seed,
    /// Where events go.
    pub recorder: &'a Recorder,
    /// Ends it.
    pub cancel: &'a CancelToken,
    /// Called when a stage or the consumer does not end; without it the consumer is not watched.
    pub on_frozen: Option<OnFrozen>,
}

impl TrainRoute<'_> {
    /// Starts the whole path.
    pub fn start(&self) -> Result<Feed<Transferred>, TrainError> {
        let align = Align {
            first: self.first_alignment()?,
            first_steps: self.flat_start,
            snapshots: self.snapshots.clone(),
            device: self.devices.data.clone(),
            scale: self.document.scale,
            patch: self.document.config.patch,
            grad_accum: self.grad_accum,
            seed: self.seed.derive(FLOW_NOISE),
            cancel: self.cancel.clone(),
            recorder: self.recorder.clone(),
            pool: BackgroundPool::start(priority_on(self.devices), "align")?,
            aligner: Aligner::default(),
        };
        let memory = self.feed.memory;
        let hold = Hold::bytes(memory).items(ALIGNED);
        // The slots keep to what the model's device has left; one batch passes in any case, and
        // is refused by the account where there is no room for it.
        let room = self.accounting.room_for_batches().map_or(memory, |room| room.min(memory));
        let slots = Hold::bytes(room).items(self.feed.depth.max(2));
        let place = Place::on(self.devices.clone(), self.accounting.clone());
        let route = host_route(self.prepared, self.feed, self.recorder)?
            .then(align, hold)
            .then(place.lost_at(self.feed.lose_device_at), slots);
        Ok(route.start(self.setup())?)
    }

    /// What the first steps are aligned with, where any of them is still to be done.
    fn first_alignment(&self) -> Result<Option<FlatStart>, TrainError> {
        if self.feed.first / self.grad_accum >= self.flat_start {
            return Ok(None);
        }
        let scale = &self.document.scale;
        learn_first_alignment(self.prepared, self.feed, scale, self.cancel).map(Some)
    }

    /// Starts with batches that are beside the weights already: no data work is left.
    pub fn replay(&self, batches: Arc<[Transferred]>) -> Result<Feed<Transferred>, TrainError> {
        let held: Bytes = batches.iter().map(Payload::size).sum();
        let (first, count) = (self.feed.first, batches.len() as u64);
        let endless = (0..).map_while(move |turn: u64| {
            let batch = batches.get((turn % count.max(1)) as usize)?.clone();
            let ticket = Ticket { seq: first + turn, ..batch.ticket };
            Some(Transferred { ticket, ..batch })
        });
        let slots = Hold::bytes(held.max(self.feed.memory)).items(self.feed.depth.max(2));
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

/// BatchSource that may wait between the search and the copy.
pub const ALIGNED: usize = 2;

/// How many stall timeouts one training step may take.
const STEP_TIMEOUT_FACTOR: u32 = 10;

/// What batches draw their chance from, apart from the order of batches.
const FLOW_NOISE: u64 = 0x1e55_0115;
