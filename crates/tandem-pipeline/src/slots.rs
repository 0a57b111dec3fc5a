//! The batch slots at the end of a route: each is PREPARING, READY or TRAINING.
//!
//! In: changes from the last queue, whose slots these are. Out: the states of all slots, at any
//! time and from any thread, and one call to the listener per change. The depth of a pipeline is
//! the number of slots: batches that the last stage prepares, that are ready, and that are in
//! training. The default is three, one per state. Next: [`crate::feed`].

use crate::sync::{Mutex, lock};
use std::sync::Arc;
pub use tandem_telemetry::event::SlotState;
use tandem_units::Ticket;

/// One slot per state.
pub const DEFAULT_DEPTH: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub state: SlotState,
    /// The ticket of its batch, if it has a batch and the batch has a ticket.
    pub ticket: Option<Ticket>,
}

/// Called at every change with the slot's index and its new state. Must not wait.
pub(crate) type Listener = Box<dyn Fn(usize, Slot) + Send + Sync>;

/// The slots of a running route. Clones show the same slots.
#[derive(Clone)]
pub struct Slots(Arc<SlotsShared>);

struct SlotsShared {
    state: Mutex<SlotCounts>,
    listener: Listener,
}

#[derive(Default)]
struct SlotCounts {
    depth: usize,
    slots: Vec<Slot>,
}

const EMPTY: Slot = Slot { state: SlotState::Preparing, ticket: None };

impl Slots {
    pub(crate) fn new(listener: Listener) -> Slots {
        Slots(Arc::new(SlotsShared { state: Mutex::new(SlotCounts::default()), listener }))
    }

    pub fn snapshot(&self) -> Vec<Slot> {
        lock(&self.0.state).slots.clone()
    }

    pub fn count(&self, state: SlotState) -> usize {
        lock(&self.0.state).slots.iter().filter(|slot| slot.state == state).count()
    }

    pub(crate) fn resize(&self, depth: usize) {
        let mut current = lock(&self.0.state);
        current.depth = depth;
        current.fit(0);
    }

    pub(crate) fn set(&self, index: usize, state: SlotState, ticket: Option<Ticket>) {
        let slot = Slot { state, ticket };
        let mut current = lock(&self.0.state);
        current.fit(index + 1);
        if std::mem::replace(&mut current.slots[index], slot) != slot {
            // Under the lock, so that the listener receives the changes of a slot in order.
            (self.0.listener)(index, slot);
        }
        current.fit(0);
    }
}

impl SlotCounts {
    /// A slot beyond the depth is shown until it is empty.
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
    fn every_change_is_reported_once_and_in_order() {
        model(|| {
            let (sender, received) = mpsc::sync_channel(16);
            let tell = move |index, slot: Slot| sender.send((index, slot.state)).unwrap();
            let slots = Slots::new(Box::new(tell));
            slots.resize(2);
            let cycle = [SlotState::Ready, SlotState::Training, SlotState::Preparing];
            cycle.into_iter().for_each(|state| slots.set(1, state, None));
            slots.set(1, SlotState::Preparing, None);
            drop(slots);
            let expected: Vec<_> = cycle.into_iter().map(|state| (1, state)).collect();
            assert_eq!(received.into_iter().collect::<Vec<_>>(), expected);
        });
    }

    #[test]
    fn a_slot_beyond_the_depth_is_shown_until_it_is_empty() {
        model(|| {
            let slots = Slots::new(Box::new(|_, _| {}));
            slots.resize(3);
            slots.set(2, SlotState::Training, None);
            slots.resize(1);
            assert_eq!(slots.snapshot().len(), 3);
            slots.set(2, SlotState::Preparing, None);
            assert_eq!(slots.snapshot(), [EMPTY]);
        });
    }
}
