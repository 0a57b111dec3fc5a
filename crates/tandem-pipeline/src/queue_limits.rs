//! The limits of one queue: items, bytes, and the budget that the bytes are charged to.

use crate::budget::{Budget, QueueBudget};
use crate::slots::DEFAULT_DEPTH;
use std::sync::Arc;
use tandem_units::Bytes;

/// The most a queue may hold.
///
/// `items` counts the items that are ready, that the stage before the queue works on, and that
/// were finished early. A stage can use no more workers than its queue has items. For the last
/// queue of a route, `items` is the depth: the item that the consumer works on counts too.
#[derive(Clone)]
pub struct QueueLimits {
    /// The most items; at least one.
    pub items: usize,
    /// The most bytes in this queue. A larger item passes alone.
    pub bytes: Bytes,
    /// A budget shared with other queues, such as the memory of a device.
    pub budget: Option<Budget>,
}

impl QueueLimits {
    /// This many bytes, and the default number of items.
    pub fn bytes(bytes: Bytes) -> QueueLimits {
        QueueLimits { items: DEFAULT_DEPTH, bytes, budget: None }
    }

    pub fn items(self, items: usize) -> QueueLimits {
        QueueLimits { items, ..self }
    }

    /// Charges the bytes to a budget that other queues use too.
    pub fn within(self, budget: &Budget) -> QueueLimits {
        QueueLimits { budget: Some(budget.clone()), ..self }
    }

    pub(crate) fn queue_budget(&self, route: u64) -> Arc<QueueBudget> {
        let own = || Budget::of(self.bytes);
        self.budget.clone().unwrap_or_else(own).add_queue(route, self.bytes)
    }
}
