//! The second stage on the host: sound becomes mel frames, written directly into the batch as each
//! recording is decoded.
//!
//! In: [`Planned`]. Out: [`Ready`], complete. Allocates nothing for the batch itself. Next: the consumer.

use crate::feed::load::{Load, Loaded};
use crate::feed::reference::References;
use crate::feed::schedule::Planned;
use crate::feed::worker_mel::WorkerMel;
use tandem_audio::mel::{MelConfig, MelKernel};
use tandem_data::batch::{HostBatch, Position};
use tandem_pipeline::{Emitter, Payload, Pooled, Stage, StageError};
use tandem_units::{Bytes, Ticket};

/// A complete batch. Its memory returns to the pool when it is dropped.
pub struct Ready {
    pub ticket: Ticket,
    /// The start position that makes this batch the first one.
    pub position: Position,
    pub batch: Pooled<HostBatch>,
    /// A reference segment of each row's speaker.
    pub references: References,
}

impl Payload for Ready {
    fn size(&self) -> Bytes {
        self.batch.size() + self.references.size()
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket)
    }
}

/// Loads and computes mel frames on one thread: passing the sound to another thread, or computing all
/// frames of a batch after all of its files, only moves it out of this core's cache.
pub struct LoadMel {
    load: Load,
}

impl LoadMel {
    pub fn new(load: Load, config: MelConfig, kernel: MelKernel) -> LoadMel {
        LoadMel { load: load.with_mel(WorkerMel::new(config, kernel)) }
    }
}

impl Stage for LoadMel {
    type In = Planned;
    type Out = Ready;

    fn name(&self) -> &'static str {
        "load"
    }

    fn step(&mut self, planned: Planned, out: &mut dyn Emitter<Ready>) -> Result<(), StageError> {
        let loaded = self.load.load_batch(planned, &mut |path| out.item(&path.display()))?;
        let Loaded { ticket, position, mut batch, references, sounds: _ } = loaded;
        // Timed as a stage of its own, although it shares the thread.
        out.part("preprocess", self.load.take_mel_time());
        batch.finish();
        out.push(Ready { ticket, position, batch, references })
    }
}
