//! The numbered slots of one queue, handed out in rotation.
//!
//! In: a count, which may change at any time. Out: numbers below it, each to one owner at a
//! time. A slot that is still in use when the count falls below it is withdrawn on its return.

use std::collections::VecDeque;

pub(crate) struct SlotPool {
    count: usize,
    in_use: Vec<bool>,
    // The longest free first, so that the slots rotate.
    free: VecDeque<usize>,
}

impl SlotPool {
    pub(crate) fn new(count: usize) -> SlotPool {
        let mut slots = SlotPool { count: 0, in_use: Vec::new(), free: VecDeque::new() };
        slots.resize(count);
        slots
    }

    /// Changes the count; a queue keeps at least one slot.
    pub(crate) fn resize(&mut self, count: usize) {
        let (before, count) = (self.count, count.max(1));
        self.count = count;
        self.free.retain(|&slot| slot < count);
        if self.in_use.len() < count {
            self.in_use.resize(count, false);
        }
        let fresh = (before..count).filter(|&slot| !self.in_use[slot]);
        self.free.extend(fresh);
    }

    pub(crate) fn take(&mut self) -> Option<usize> {
        let slot = self.free.pop_front()?;
        self.in_use[slot] = true;
        Some(slot)
    }

    pub(crate) fn put_back(&mut self, slot: usize) {
        self.in_use[slot] = false;
        if slot < self.count {
            self.free.push_back(slot);
        }
    }

    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn in_use(&self) -> usize {
        self.in_use.iter().filter(|in_use| **in_use).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_cycle() {
        let mut slots = SlotPool::new(3);
        let order: Vec<usize> = (0..7)
            .map(|_| {
                let slot = slots.take().unwrap();
                slots.put_back(slot);
                slot
            })
            .collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_place_is_never_held_twice_when_the_count_falls_and_rises() {
        let mut slots = SlotPool::new(3);
        let in_use: Vec<usize> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(in_use, [0, 1, 2]);
        slots.resize(1);
        slots.resize(3);
        assert_eq!(slots.take(), None, "all three are still in use");
        slots.put_back(2);
        assert_eq!(slots.take(), Some(2));
        slots.resize(1);
        slots.put_back(2);
        assert_eq!(slots.take(), None, "a withdrawn slot does not come back");
        slots.resize(0);
        assert_eq!(slots.count(), 1);
    }
}
