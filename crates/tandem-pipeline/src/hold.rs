//! The bounds of one queue: how many items, how many bytes, and whose bytes they are.

use crate::budget::Budget;
use crate::slots::DEFAULT_DEPTH;
use std::sync::Arc;
use tandem_units::Bytes;

use crate::budget::Seat;

/// The most a queue may hold.
///
/// `items` counts what waits in the queue, what the stage before it is working on and what came
/// early; a stage can use no more workers than its queue has items. For the last queue of a
/// route, `items` is the depth: what the consumer works on counts too.
#[derive(Clone)]
pub struct Hold {
    /// The most items; at least one.
    pub items: usize,
    /// The most bytes of this queue by itself. One larger item passes alone.
    pub bytes: Bytes,
    /// A budget shared with other queues, such as the memory of a device.
    pub budget: Option<Budget>,
}

impl Hold {
    /// So many bytes in the default number of places.
    pub fn bytes(bytes: Bytes) -> Hold {
        Hold { items: DEFAULT_DEPTH, bytes, budget: None }
    }

    /// The same with so many items.
    pub fn items(self, items: usize) -> Hold {
        Hold { items, ..self }
    }

    /// The same out of a budget that other queues use too.
    pub fn within(self, budget: &Budget) -> Hold {
        Hold { budget: Some(budget.clone()), ..self }
    }

    pub(crate) fn seat(&self, route: u64) -> Arc<Seat> {
        let own = || Budget::of(self.bytes);
        self.budget.clone().unwrap_or_else(own).join(route, self.bytes)
    }
}
