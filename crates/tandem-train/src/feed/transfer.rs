//! The fourth stage: a batch goes to the data device, and from there to the model device.
//!
//! In: [`Aligned`], on the host. Out: [`Transferred`], tensors beside the weights. Runs on a thread of
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

/// A batch beside the weights.
#[derive(Clone)]
pub struct Transferred {
    /// Its place in the run.
    pub ticket: Ticket,
    /// Where to begin to get this batch first.
    pub position: Position,
    /// Its tensors.
    pub batch: DeviceBatch,
    /// Its padded shape.
    pub shape: BatchShape,
    /// Real frames in it.
    pub frames: u64,
    /// The utterances in it.
    pub rows: Vec<u32>,
    /// Steps between the weights that aligned it and the step that uses it.
    pub age: u64,
    /// Its memory in the accounts of the run, as long as one of its clones lives.
    pub held: Arc<Charge>,
}

impl Payload for Transferred {
    fn size(&self) -> Bytes {
        self.batch.size()
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket)
    }
}

/// Copies batches to the model.
pub struct Place {
    devices: OpenDevices,
    accounting: MemoryAccounting,
    lost_at: Option<u64>,
}

impl Place {
    /// From the host to these devices, entered in these accounts.
    pub fn on(devices: OpenDevices, accounting: MemoryAccounting) -> Place {
        Place { devices, accounting, lost_at: None }
    }

    /// The same with a device that goes away at this batch, for tests of what a run loses then.
    pub fn lost_at(self, batch: Option<u64>) -> Place {
        Place { lost_at: batch, ..self }
    }

    /// On the data device, from there on the model device; accounted for on both.
    fn copy(&self, batch: &AlignedBatch) -> Result<(DeviceBatch, Charge), Trouble> {
        const DOING: &str = "copying a batch to the model device";
        let OpenDevices { data, model } = &self.devices;
        let batch = guarded(DOING, || batch.to_device(data)).map_err(Trouble::stop)?;
        let size = batch.size();
        if !self.devices.are_apart() {
            return Ok((batch, self.accounting.batch(size).map_err(Trouble::stop)?));
        }
        let way = self.accounting.on_the_way(size).map_err(Trouble::stop)?;
        let held = self.accounting.batch(size).map_err(Trouble::stop)?;
        let batch = guarded(DOING, || batch.to_device(model)).map_err(Trouble::stop)?;
        drop(way);
        Ok((batch, held))
    }
}

impl Stage for Place {
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
            // As a driver tells it: by a panic in the middle of a copy.
            assert!(lost_at.is_none_or(|at| ticket.seq < at), "the device was lost");
        })
        .map_err(Trouble::stop)?;
        let (batch, held) = self.copy(&batch)?;
        if batch.utterances == 0 {
            return Err(Trouble::skip("not one of its rows can be aligned"));
        }
        let held = Arc::new(held);
        out.push(Transferred { ticket, position, batch, shape, frames, rows, age, held })
    }
}
