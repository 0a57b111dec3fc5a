//! The second stage: sound becomes mel frames, written directly into the batch.
//!
//! In: [`Loaded`]. Out: [`Ready`], complete. Allocates nothing for the batch itself. Next: the consumer.

use crate::feed::load::Loaded;
use crate::feed::reference::References;
use crate::feed::worker_mel::WorkerMel;
use tandem_data::audio::mel::{MelConfig, MelKernel};
use tandem_data::batch::{HostBatch, Position};
use tandem_pipeline::{Outlet, Payload, Pooled, Stage, Trouble};
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

/// Computes mel frames. One per worker: it owns the kernel's scratch memory.
pub struct Preprocess {
    mel: WorkerMel,
}

impl Preprocess {
    pub fn new(config: MelConfig, kernel: MelKernel) -> Preprocess {
        Preprocess { mel: WorkerMel::new(config, kernel) }
    }
}

impl Stage for Preprocess {
    type In = Loaded;
    type Out = Ready;

    fn name(&self) -> &'static str {
        "preprocess"
    }

    fn step(&mut self, loaded: Loaded, out: &mut dyn Outlet<Ready>) -> Result<(), Trouble> {
        let Loaded { ticket, position, mut batch, sounds, mut references } = loaded;
        for (row, sound) in batch.rows_mut().zip(&sounds) {
            if let Some(clip) = sound {
                self.mel.extract_into(clip.as_sound(), row.mel).map_err(Trouble::stop)?;
            }
        }
        batch.finish();
        references.compute_frames(&mut self.mel).map_err(Trouble::stop)?;
        out.push(Ready { ticket, position, batch, references })
    }
}
