//! The path of a lesson, from the plan to the model's device, written down once; or the same
//! lessons again, from memory.
//!
//! In: a prepared corpus, the readers that align, devices. Out: a feed of [`Placed`] lessons for
//! the training thread. Replayed lessons show what the model costs when no data work is left.
//! Next: [`crate::trainer`].

use crate::TrainError;
use crate::align::Align;
use crate::beside::{Beside, precedence_on};
use crate::feed::{FeedSettings, host_route, setup};
use crate::first_alignment::learn_first_alignment;
use crate::holdings::Holdings;
use crate::place::{Place, Placed};
use crate::prepare::Prepared;
use crate::snapshots::Snapshots;
use std::sync::Arc;
use tandem_model::alignment::Aligner;
use tandem_model::flat_start::FlatStart;
use tandem_model::placement::OpenDevices;
use tandem_model::trained::VoiceDocument;
use tandem_pipeline::{Adapt, CancelToken, Feed, Hold, Payload, Route, Setup};
use tandem_telemetry::Recorder;
use tandem_units::{Bytes, Seed, Ticket};

/// Where a run's lessons come from.
#[derive(Clone, Default)]
pub enum Lessons {
    /// Through the whole path, all the time.
    #[default]
    FromCorpus,
    /// These, over and over.
    Replayed(Arc<[Placed]>),
}

/// Everything on the way of a lesson.
pub struct LessonPath<'a> {
    /// The corpus.
    pub prepared: &'a Arc<Prepared>,
    /// How it is fed.
    pub feed: &'a FeedSettings,
    /// Where it goes.
    pub devices: &'a OpenDevices,
    /// Where its memory is entered.
    pub holdings: &'a Holdings,
    /// What the voice is.
    pub document: &'a VoiceDocument,
    /// Readers that align.
    pub snapshots: &'a Snapshots,
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
}

impl LessonPath<'_> {
    /// Starts the whole path.
    pub fn start(&self) -> Result<Feed<Placed>, TrainError> {
        let align = Align {
            first: self.first_alignment()?,
            first_steps: self.flat_start,
            snapshots: self.snapshots.clone(),
            device: self.devices.data.clone(),
            scale: self.document.scale,
            patch: self.document.config.patch,
            grad_accum: self.grad_accum,
            seed: self.seed.derive(LESSONS),
            cancel: self.cancel.clone(),
            recorder: self.recorder.clone(),
            beside: Beside::start(precedence_on(self.devices), "align")?,
            aligner: Aligner::default(),
        };
        let memory = self.feed.memory;
        let hold = Hold::bytes(memory).items(ALIGNED);
        // The slots keep to what the model's device has left; one batch passes in any case, and
        // is refused by the account where there is no room for it.
        let room = self.holdings.room_for_batches().map_or(memory, |room| room.min(memory));
        let slots = Hold::bytes(room).items(self.feed.depth.max(2));
        let place = Place::on(self.devices.clone(), self.holdings.clone());
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

    /// Starts with lessons that are beside the weights already: no data work is left.
    pub fn replay(&self, lessons: Arc<[Placed]>) -> Result<Feed<Placed>, TrainError> {
        let held: Bytes = lessons.iter().map(Payload::size).sum();
        let (first, count) = (self.feed.first, lessons.len() as u64);
        let endless = (0..).map_while(move |turn: u64| {
            let lesson = lessons.get((turn % count.max(1)) as usize)?.clone();
            let ticket = Ticket { seq: first + turn, ..lesson.ticket };
            Some(Placed { ticket, ..lesson })
        });
        let slots = Hold::bytes(held.max(self.feed.memory)).items(self.feed.depth.max(2));
        let setup = Setup { adapt: Adapt::Off, ..self.setup() };
        Ok(Route::from(endless, slots).start(setup)?)
    }

    fn setup(&self) -> Setup {
        let (precedence, slow) = (precedence_on(self.devices), self.feed.slow.clone());
        Setup { precedence, slow, ..setup(self.feed, self.recorder, self.cancel) }
    }
}

/// Lessons that may wait between the search and the copy.
pub const ALIGNED: usize = 2;

/// What lessons draw their chance from, apart from the order of batches.
const LESSONS: u64 = 0x1e55_0115;
