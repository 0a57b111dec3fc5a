//! Which batch comes next: the plans of consecutive epochs, from any position on.
//!
//! In: the batch plan and a start position. Out: [`Planned`] batches in order. Next:
//! [`crate::feed::load`].

use std::sync::Arc;
use tandem_data::batch::{BatchShape, Batches, EpochPlan, Position};
use tandem_pipeline::Payload;
use tandem_units::{Bytes, Epoch, Ticket};

/// A batch that is planned but not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    pub ticket: Ticket,
    /// The start position that makes this batch the first one.
    pub position: Position,
    /// The padded shape.
    pub shape: BatchShape,
    /// Indices into [`crate::feed::Rows`].
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

/// Planned batches in order. The plan of one epoch is in memory at a time.
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
    /// From `start` up to, but not including, epoch `end`.
    pub fn new(batches: Arc<Batches>, start: Position, end: Option<Epoch>) -> Tickets {
        let plan = batches.epoch(start.epoch);
        Tickets { plan, next: start.batch as usize, seq: 0, start, end, batches }
    }

    /// Numbers tickets from `seq`: a resumed run continues the count.
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
