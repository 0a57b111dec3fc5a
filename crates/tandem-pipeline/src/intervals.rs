//! How long each stage worked on each item, until the consumer takes the item.
//!
//! In: the busy time of a worker on an item, at the moment it passes the item on. Out: the times of
//! all stages for one item. Items without a ticket have none. An item that never reaches the
//! consumer is forgotten after [`MOST`] others.

use crate::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tandem_units::Ticket;

/// Busy time of one stage, or of a part of it.
pub type Interval = (&'static str, Duration);

/// Items that are remembered at most.
const MOST: usize = 1024;

#[derive(Clone)]
pub(crate) struct Intervals(Arc<Mutex<BTreeMap<u64, Vec<Interval>>>>);

impl Intervals {
    pub(crate) fn new() -> Intervals {
        Intervals(Arc::new(Mutex::new(BTreeMap::new())))
    }

    pub(crate) fn add(&self, ticket: Option<Ticket>, intervals: Vec<Interval>) {
        let Some(ticket) = ticket else { return };
        let mut items = lock(&self.0);
        items.entry(ticket.seq).or_default().extend(intervals);
        if items.len() > MOST {
            items.pop_first();
        }
    }

    /// The times of an item, which are then forgotten.
    pub(crate) fn take(&self, ticket: Option<Ticket>) -> Vec<Interval> {
        ticket.and_then(|ticket| lock(&self.0).remove(&ticket.seq)).unwrap_or_default()
    }
}
