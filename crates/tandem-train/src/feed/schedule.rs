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

/// The part of the batches that one of several ranks trains: every `ranks`-th one. All of them for a
/// process that trains alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub rank: usize,
    pub ranks: usize,
}

impl Shard {
    pub const ALL: Shard = Shard { rank: 0, ranks: 1 };

    /// Whether this rank trains the batch with this number.
    pub fn has(self, seq: u64) -> bool {
        seq % self.ranks as u64 == self.rank as u64
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
    shard: Shard,
}

impl Tickets {
    /// From `start` up to, but not including, epoch `end`.
    pub fn new(batches: Arc<Batches>, start: Position, end: Option<Epoch>) -> Tickets {
        let plan = batches.epoch(start.epoch);
        let (next, shard) = (start.batch as usize, Shard::ALL);
        Tickets { plan, next, seq: 0, start, end, shard, batches }
    }

    /// Numbers tickets from `seq`: a resumed run continues the count.
    pub fn numbered_from(self, seq: u64) -> Tickets {
        Tickets { seq, ..self }
    }

    /// Only the batches of one rank. They keep the numbers that they have in the whole plan.
    pub fn shard(self, shard: Shard) -> Tickets {
        Tickets { shard, ..self }
    }
}

impl Iterator for Tickets {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        loop {
            let ticket = self.next_ticket()?;
            let number = self.next - 1;
            if !self.shard.has(ticket.seq) {
                continue;
            }
            let planned = self.plan.batch(number)?;
            let position = Position { epoch: ticket.epoch, batch: number as _, ..self.start };
            return Some(Planned {
                ticket,
                position,
                shape: planned.shape,
                rows: planned.rows.to_vec(),
            });
        }
    }
}

impl Tickets {
    /// The ticket of the next batch, whose rank it may be.
    pub fn next_ticket(&mut self) -> Option<Ticket> {
        if self.next >= self.plan.len() {
            let epoch = Epoch(self.plan.epoch().0 + 1);
            self.plan = self.batches.epoch(epoch);
            self.next = 0;
        }
        let epoch = self.plan.epoch();
        if self.end.is_some_and(|end| epoch >= end) {
            return None;
        }
        self.plan.batch(self.next)?;
        let ticket = Ticket { epoch, seq: self.seq };
        self.next += 1;
        self.seq += 1;
        Some(ticket)
    }
}
