//! The fourth stage: a lesson goes to the data device, and from there to the model device.
//!
//! In: [`Aligned`], on the host. Out: [`Placed`], tensors beside the weights. Runs on a thread of
//! its own, since a copy between two GPUs may block until the source's work is done; the training
//! thread only takes what is ready. Next: [`crate::learner`].

use crate::align::Aligned;
use crate::holdings::Holdings;
use std::sync::Arc;
use tandem_data::batch::{BatchShape, Position};
use tandem_model::device::guarded;
use tandem_model::lesson::{HostLesson, Lesson};
use tandem_model::memory::Charge;
use tandem_model::placement::OpenDevices;
use tandem_pipeline::{Outlet, Payload, Stage, Trouble};
use tandem_units::{Bytes, Ticket};

/// A lesson beside the weights.
#[derive(Clone)]
pub struct Placed {
    /// Its place in the run.
    pub ticket: Ticket,
    /// Where to begin to get this batch first.
    pub position: Position,
    /// Its tensors.
    pub lesson: Lesson,
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

impl Payload for Placed {
    fn size(&self) -> Bytes {
        self.lesson.size()
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket)
    }
}

/// Copies lessons to the model.
pub struct Place {
    devices: OpenDevices,
    holdings: Holdings,
    lost_at: Option<u64>,
}

impl Place {
    /// From the host to these devices, entered in these accounts.
    pub fn on(devices: OpenDevices, holdings: Holdings) -> Place {
        Place { devices, holdings, lost_at: None }
    }

    /// The same with a device that goes away at this batch, for tests of what a run loses then.
    pub fn lost_at(self, batch: Option<u64>) -> Place {
        Place { lost_at: batch, ..self }
    }

    /// On the data device, from there on the model device; accounted for on both.
    fn copy(&self, lesson: &HostLesson) -> Result<(Lesson, Charge), Trouble> {
        const DOING: &str = "copying a batch to the model device";
        let OpenDevices { data, model } = &self.devices;
        let lesson = guarded(DOING, || lesson.to_device(data)).map_err(Trouble::stop)?;
        let size = lesson.size();
        if !self.devices.are_apart() {
            return Ok((lesson, self.holdings.batch(size).map_err(Trouble::stop)?));
        }
        let way = self.holdings.on_the_way(size).map_err(Trouble::stop)?;
        let held = self.holdings.batch(size).map_err(Trouble::stop)?;
        let lesson = guarded(DOING, || lesson.to_device(model)).map_err(Trouble::stop)?;
        drop(way);
        Ok((lesson, held))
    }
}

impl Stage for Place {
    type In = Aligned;
    type Out = Placed;

    fn name(&self) -> &'static str {
        "transfer"
    }

    fn step(&mut self, aligned: Aligned, out: &mut dyn Outlet<Placed>) -> Result<(), Trouble> {
        let Aligned { ticket, position, lesson, rows, age } = aligned;
        let shape =
            BatchShape { rows: lesson.rows, frames: lesson.frames, symbols: lesson.symbols };
        let frames = lesson.frame_counts.iter().map(|&count| count as u64).sum();
        let lost_at = self.lost_at;
        guarded("copying a batch to the model device", || {
            // As a driver tells it: by a panic in the middle of a copy.
            assert!(lost_at.is_none_or(|at| ticket.seq < at), "the device was lost");
        })
        .map_err(Trouble::stop)?;
        let (lesson, held) = self.copy(&lesson)?;
        if lesson.utterances == 0 {
            return Err(Trouble::skip("not one of its rows can be aligned"));
        }
        let held = Arc::new(held);
        out.push(Placed { ticket, position, lesson, shape, frames, rows, age, held })
    }
}
