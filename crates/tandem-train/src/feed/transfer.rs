//! The fourth stage: a batch gets its noise, and is copied to the model device.
//!
//! In: [`Aligned`], on the host. Out: [`Transferred`], in one upload on the model device. The data device never sees it:
//! nothing there reads it. Runs on a thread of its own, so that noise is drawn and copies run while the model trains; the
//! training thread only takes what is ready. Next: [`crate::run::step`].

use crate::feed::align::Aligned;
use crate::run::background::BackgroundPool;
use crate::run::memory_accounting::MemoryAccounting;
use std::sync::Arc;
use tandem_data::batch::{BatchShape, Position};
use tandem_device::backend::guarded;
use tandem_device::memory::Charge;
use tandem_model::Device;
use tandem_model::train_batch::{AlignedBatch, UploadedBatch};
use tandem_pipeline::{Emitter, Payload, Stage, StageError};
use tandem_units::{Bytes, Ticket};

/// A batch on the model device.
#[derive(Clone)]
pub struct Transferred {
    pub ticket: Ticket,
    /// The start position that makes this batch the first one.
    pub position: Position,
    pub batch: UploadedBatch,
    /// The padded shape.
    pub shape: BatchShape,
    /// Real frames, without padding.
    pub frames: u64,
    /// Its utterances, as indices into [`crate::feed::Rows`].
    pub rows: Vec<u32>,
    /// Steps between the weights that aligned it and the step that uses it.
    pub age: u64,
    /// Its device memory in the accounting, released with the last clone.
    pub memory: Arc<Charge>,
}

impl Payload for Transferred {
    fn size(&self) -> Bytes {
        self.batch.size()
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket)
    }
}

/// Copies batches to the model device.
pub struct Transfer {
    model: Device,
    /// Threads that draw noise where the CPU trains.
    pool: BackgroundPool,
    accounting: MemoryAccounting,
    lost_at: Option<u64>,
}

impl Transfer {
    pub fn new(model: Device, pool: BackgroundPool, accounting: MemoryAccounting) -> Transfer {
        Transfer { model, pool, accounting, lost_at: None }
    }

    /// Simulates the loss of the device at this batch, for tests.
    pub fn lost_at(self, batch: Option<u64>) -> Transfer {
        Transfer { lost_at: batch, ..self }
    }

    fn copy(&self, batch: &AlignedBatch) -> Result<(UploadedBatch, Charge), StageError> {
        let packed = self.pool.run(|| batch.pack());
        let memory = self.accounting.batch(packed.size()).map_err(StageError::stop)?;
        let batch = guarded("copying a batch to the model device", || packed.upload(&self.model));
        Ok((batch.map_err(StageError::stop)?, memory))
    }
}

impl Stage for Transfer {
    type In = Aligned;
    type Out = Transferred;

    fn name(&self) -> &'static str {
        "transfer"
    }

    fn step(
        &mut self,
        aligned: Aligned,
        out: &mut dyn Emitter<Transferred>,
    ) -> Result<(), StageError> {
        let Aligned { ticket, position, batch, rows, age } = aligned;
        let shape = BatchShape { rows: batch.rows, frames: batch.frames, symbols: batch.symbols };
        let frames = batch.frame_counts.iter().map(|&count| count as u64).sum();
        let lost_at = self.lost_at;
        guarded("copying a batch to the model device", || {
            // A driver reports a lost device by a panic during a copy.
            assert!(lost_at.is_none_or(|at| ticket.seq < at), "the device was lost");
        })
        .map_err(StageError::stop)?;
        let (batch, memory) = self.copy(&batch)?;
        if batch.utterances == 0 {
            return Err(StageError::skip("none of its rows can be aligned"));
        }
        let memory = Arc::new(memory);
        out.push(Transferred { ticket, position, batch, shape, frames, rows, age, memory })
    }
}
