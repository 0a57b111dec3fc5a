//! The numbered places of one queue, handed out in turn.
//!
//! In: a count, which may change at any time. Out: numbers below it, each to one holder at a
//! time. A place that is still held when the count falls below it is withdrawn on its return.

use std::collections::VecDeque;

pub(crate) struct Places {
    count: usize,
    held: Vec<bool>,
    // Oldest first, so that slots are seen to cycle.
    free: VecDeque<usize>,
}

impl Places {
    pub(crate) fn new(count: usize) -> Places {
        let mut places = Places { count: 0, held: Vec::new(), free: VecDeque::new() };
        places.resize(count);
        places
    }

    /// Changes the count; a queue keeps at least one place.
    pub(crate) fn resize(&mut self, count: usize) {
        let (before, count) = (self.count, count.max(1));
        self.count = count;
        self.free.retain(|&place| place < count);
        if self.held.len() < count {
            self.held.resize(count, false);
        }
        let fresh = (before..count).filter(|&place| !self.held[place]);
        self.free.extend(fresh);
    }

    pub(crate) fn take(&mut self) -> Option<usize> {
        let place = self.free.pop_front()?;
        self.held[place] = true;
        Some(place)
    }

    pub(crate) fn give_back(&mut self, place: usize) {
        self.held[place] = false;
        if place < self.count {
            self.free.push_back(place);
        }
    }

    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn held(&self) -> usize {
        self.held.iter().filter(|held| **held).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_cycle() {
        let mut places = Places::new(3);
        let order: Vec<usize> = (0..7)
            .map(|_| {
                let place = places.take().unwrap();
                places.give_back(place);
                place
            })
            .collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_place_is_never_held_twice_when_the_count_falls_and_rises() {
        let mut places = Places::new(3);
        let held: Vec<usize> = std::iter::from_fn(|| places.take()).collect();
        assert_eq!(held, [0, 1, 2]);
        places.resize(1);
        places.resize(3);
        assert_eq!(places.take(), None, "all three are still held");
        places.give_back(2);
        assert_eq!(places.take(), Some(2));
        places.resize(1);
        places.give_back(2);
        assert_eq!(places.take(), None, "a withdrawn place does not come back");
        places.resize(0);
        assert_eq!(places.count(), 1);
    }
}
