//! The batch slots at the end of a route: each PREPARING, READY or TRAINING, for all to see.
//!
//! In: changes from the last queue, whose places are the slots. Out: a look at all slots at any
//! time from any thread, and one call to the listener per change. The depth of a pipeline is
//! the number of slots: batches being prepared by the last stage, waiting, and in training,
//! all together. Three by default, so that each state has one.

use crate::sync::{Mutex, lock};
use std::sync::Arc;
pub use tandem_telemetry::event::SlotState;
use tandem_units::Ticket;

/// Slots of a route that says nothing else: one per state.
pub const DEFAULT_DEPTH: usize = 3;

/// One slot as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where it is in its cycle.
    pub state: SlotState,
    /// The batch in it, where it is filled and the batch has a ticket.
    pub ticket: Option<Ticket>,
}

/// Called on every change with the slot's number and its new contents. Must not wait.
pub(crate) type Listener = Box<dyn Fn(usize, Slot) + Send + Sync>;

/// The slots of a running route. Copies show the same slots.
#[derive(Clone)]
pub struct Slots(Arc<Board>);

struct Board {
    row: Mutex<Row>,
    listener: Listener,
}

#[derive(Default)]
struct Row {
    depth: usize,
    slots: Vec<Slot>,
}

const EMPTY: Slot = Slot { state: SlotState::Preparing, ticket: None };

impl Slots {
    pub(crate) fn new(listener: Listener) -> Slots {
        Slots(Arc::new(Board { row: Mutex::new(Row::default()), listener }))
    }

    /// All slots as they are now.
    pub fn look(&self) -> Vec<Slot> {
        lock(&self.0.row).slots.clone()
    }

    /// How many slots are in a state now.
    pub fn count(&self, state: SlotState) -> usize {
        lock(&self.0.row).slots.iter().filter(|slot| slot.state == state).count()
    }

    pub(crate) fn resize(&self, depth: usize) {
        let mut row = lock(&self.0.row);
        row.depth = depth;
        row.fit(0);
    }

    pub(crate) fn set(&self, index: usize, state: SlotState, ticket: Option<Ticket>) {
        let slot = Slot { state, ticket };
        let mut row = lock(&self.0.row);
        row.fit(index + 1);
        if std::mem::replace(&mut row.slots[index], slot) != slot {
            // Under the lock, so that the listener hears changes of a slot in their order.
            (self.0.listener)(index, slot);
        }
        row.fit(0);
    }
}

impl Row {
    /// A slot beyond the depth stays in sight until it is empty.
    fn fit(&mut self, at_least: usize) {
        let count = self.depth.max(at_least);
        while self.slots.len() > count && self.slots.last() == Some(&EMPTY) {
            self.slots.pop();
        }
        if self.slots.len() < count {
            self.slots.resize(count, EMPTY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::model;
    use std::sync::mpsc;

    #[test]
    fn every_change_is_heard_once_and_in_order() {
        model(|| {
            let (sender, heard) = mpsc::sync_channel(16);
            let tell = move |index, slot: Slot| sender.send((index, slot.state)).unwrap();
            let slots = Slots::new(Box::new(tell));
            slots.resize(2);
            let cycle = [SlotState::Ready, SlotState::Training, SlotState::Preparing];
            cycle.into_iter().for_each(|state| slots.set(1, state, None));
            slots.set(1, SlotState::Preparing, None);
            drop(slots);
            let expected: Vec<_> = cycle.into_iter().map(|state| (1, state)).collect();
            assert_eq!(heard.into_iter().collect::<Vec<_>>(), expected);
        });
    }

    #[test]
    fn a_slot_beyond_the_depth_is_shown_until_it_is_empty() {
        model(|| {
            let slots = Slots::new(Box::new(|_, _| {}));
            slots.resize(3);
            slots.set(2, SlotState::Training, None);
            slots.resize(1);
            assert_eq!(slots.look().len(), 3);
            slots.set(2, SlotState::Preparing, None);
            assert_eq!(slots.look(), [EMPTY]);
        });
    }
}
