//! The fourth stage: a batch is copied to the data device, and from there to the model device.
//!
//! In: [`Aligned`], on the host. Out: [`Transferred`], tensors on the model device. Runs on a thread of
//! its own, since a copy between two GPUs may block until the source's work is done; the training
//! thread only takes what is ready. Next: [`crate::run::step`].

use crate::feed::align::Aligned;
use crate::run::memory_accounting::MemoryAccounting;
use std::sync::Arc;
use tandem_data::batch::{BatchShape, Position};
use tandem_device::backend::guarded;
use tandem_device::memory::Charge;
use tandem_device::placement::OpenDevices;
use tandem_model::train_batch::{AlignedBatch, DeviceBatch};
use tandem_pipeline::{Outlet, Payload, Stage, Trouble};
use tandem_units::{Bytes, Ticket};

/// A batch on the model device.
#[derive(Clone)]
pub struct Transferred {
    pub ticket: Ticket,
    /// The start position that makes this batch the first one.
    pub position: Position,
    pub batch: DeviceBatch,
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
    devices: OpenDevices,
    accounting: MemoryAccounting,
    lost_at: Option<u64>,
}

impl Transfer {
    pub fn new(devices: OpenDevices, accounting: MemoryAccounting) -> Transfer {
        Transfer { devices, accounting, lost_at: None }
    }

    /// Simulates the loss of the device at this batch, for tests.
    pub fn lost_at(self, batch: Option<u64>) -> Transfer {
        Transfer { lost_at: batch, ..self }
    }

    /// Copies to the data device, then to the model device. Both copies are accounted for.
    fn copy(&self, batch: &AlignedBatch) -> Result<(DeviceBatch, Charge), Trouble> {
        const DOING: &str = "copying a batch to the model device";
        let OpenDevices { data, model } = &self.devices;
        let batch = guarded(DOING, || batch.to_device(data)).map_err(Trouble::stop)?;
        let size = batch.size();
        if !self.devices.are_apart() {
            return Ok((batch, self.accounting.batch(size).map_err(Trouble::stop)?));
        }
        let in_transfer = self.accounting.in_transfer(size).map_err(Trouble::stop)?;
        let memory = self.accounting.batch(size).map_err(Trouble::stop)?;
        let batch = guarded(DOING, || batch.to_device(model)).map_err(Trouble::stop)?;
        drop(in_transfer);
        Ok((batch, memory))
    }
}

impl Stage for Transfer {
    type In = Aligned;
    type Out = Transferred;

    fn name(&self) -> &'static str {
        "transfer"
    }

    fn step(&mut self, aligned: Aligned, out: &mut dyn Outlet<Transferred>) -> Result<(), Trouble> {
        let Aligned { ticket, position, batch, rows, age } = aligned;
        let shape = BatchShape { rows: batch.rows, frames: batch.frames, symbols: batch.symbols };
        let frames = batch.frame_counts.iter().map(|&count| count as u64).sum();
        let lost_at = self.lost_at;
        guarded("copying a batch to the model device", || {
            // A driver reports a lost device by a panic during a copy.
            assert!(lost_at.is_none_or(|at| ticket.seq < at), "the device was lost");
        })
        .map_err(Trouble::stop)?;
        let (batch, memory) = self.copy(&batch)?;
        if batch.utterances == 0 {
            return Err(Trouble::skip("none of its rows can be aligned"));
        }
        let memory = Arc::new(memory);
        out.push(Transferred { ticket, position, batch, shape, frames, rows, age, memory })
    }
}
