//! Which batch comes next: the plan of one epoch after the other, from any position on.

use std::sync::Arc;
use tandem_data::batch::{BatchShape, Batches, EpochPlan, Position};
use tandem_pipeline::Payload;
use tandem_units::{Bytes, Epoch, Ticket};

/// A batch to be made: its place in the run, its shape and its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its place in the run.
    pub ticket: Ticket,
    /// Where to begin to get this batch first.
    pub position: Position,
    /// Its padded shape.
    pub shape: BatchShape,
    /// Its rows, as places in [`crate::feed::Rows`].
    pub rows: Vec<u32>,
}

impl Payload for Planned {
    fn size(&self) -> Bytes {
        Bytes::of_slice(&self.rows)
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket)
    }
}

/// Batches in order. One epoch's plan is in memory at a time.
#[derive(Debug)]
pub struct Tickets {
    batches: Arc<Batches>,
    plan: EpochPlan,
    next: usize,
    seq: u64,
    start: Position,
    end: Option<Epoch>,
}

impl Tickets {
    /// From `start` on, up to and without epoch `end`.
    pub fn new(batches: Arc<Batches>, start: Position, end: Option<Epoch>) -> Tickets {
        let plan = batches.epoch(start.epoch);
        Tickets { plan, next: start.batch as usize, seq: 0, start, end, batches }
    }

    /// The same, with the tickets numbered from here on: a resumed run goes on counting.
    pub fn numbered_from(self, seq: u64) -> Tickets {
        Tickets { seq, ..self }
    }
}

impl Iterator for Tickets {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        if self.next >= self.plan.len() {
            let epoch = Epoch(self.plan.epoch().0 + 1);
            self.plan = self.batches.epoch(epoch);
            self.next = 0;
        }
        let epoch = self.plan.epoch();
        if self.end.is_some_and(|end| epoch >= end) {
            return None;
        }
        let planned = self.plan.batch(self.next)?;
        let position = Position { epoch, batch: self.next as _, ..self.start };
        let ticket = Ticket { epoch, seq: self.seq };
        let planned =
            Planned { ticket, position, shape: planned.shape, rows: planned.rows.to_vec() };
        self.next += 1;
        self.seq += 1;
        Some(planned)
    }
}
