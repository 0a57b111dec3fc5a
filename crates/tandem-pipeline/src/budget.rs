//! Limits the bytes in flight, in one queue and in all queues that share a budget.
//!
//! In: the size of an item that is about to enter a queue. Out: a [`Charge`], which is returned
//! when the item is dropped or replaced by its result. A queue leaves room for one item in every
//! later queue of its route, so that the end of the route can always move. An item too large for
//! that passes alone: when everything at and after its queue is empty, it enters whatever its
//! size, and is counted. So a route never deadlocks, whatever the limits. Next: [`crate::queue`].

use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};
use std::sync::Arc;
use tandem_units::Bytes;

/// A limit in bytes that several queues share, such as the memory of one device.
#[derive(Clone)]
pub struct Budget(Arc<BudgetShared>);

/// The run is being stopped: a caller that waits must return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run is being stopped")]
pub struct Stopped;

impl tandem_units::Hint for Stopped {}

impl Budget {
    pub fn of(limit: Bytes) -> Budget {
        let state = BytesInUse {
            limit: limit.0,
            used: 0,
            peak: 0,
            oversize: 0,
            waiting: 0,
            queues: vec![],
        };
        Budget(Arc::new(BudgetShared { state: Mutex::new(state), freed: Condvar::new() }))
    }

    pub fn limit(&self) -> Bytes {
        Bytes(lock(&self.0.state).limit)
    }

    /// Bytes in flight now: in queues, in workers and at the consumer.
    pub fn used(&self) -> Bytes {
        Bytes(lock(&self.0.state).used)
    }

    /// The most bytes that were in flight at once.
    pub fn peak(&self) -> Bytes {
        Bytes(lock(&self.0.state).peak)
    }

    /// Items that were let in over the limit because nothing else could have moved.
    pub fn oversize(&self) -> u64 {
        lock(&self.0.state).oversize
    }

    /// Adds a queue to this budget. The queues of a route are added in the order of the route.
    pub(crate) fn add_queue(&self, route: u64, limit: Bytes) -> Arc<QueueBudget> {
        let mut state = lock(&self.0.state);
        let queue = QueueUsage { route, limit: limit.0, ..QueueUsage::default() };
        state.queues.push(queue);
        Arc::new(QueueBudget { shared: Arc::clone(&self.0), index: state.queues.len() - 1 })
    }
}

struct BudgetShared {
    state: Mutex<BytesInUse>,
    freed: Condvar,
}

struct BytesInUse {
    limit: u64,
    used: u64,
    peak: u64,
    oversize: u64,
    waiting: usize,
    queues: Vec<QueueUsage>,
}

#[derive(Clone, Default)]
struct QueueUsage {
    route: u64,
    limit: u64,
    used: u64,
    // The part of `used` that waits for earlier items: it cannot drain by itself.
    ahead: u64,
    largest: u64,
    stopped: bool,
    left: bool,
}

impl QueueUsage {
    /// Bytes that drain by themselves.
    fn settled(&self) -> u64 {
        self.used - self.ahead
    }
}

/// The part of a budget that one queue uses.
pub(crate) struct QueueBudget {
    shared: Arc<BudgetShared>,
    index: usize,
}

impl QueueBudget {
    /// For an item whose turn has not come: it enters only if it leaves room for the item whose
    /// turn it is. Never waits.
    pub(crate) fn charge_ahead(self: &Arc<Self>, size: Bytes) -> Option<Charge> {
        let mut state = lock(&self.shared.state);
        let own = &mut state.queues[self.index];
        own.largest = own.largest.max(size.0);
        let reserve = own.largest;
        let fits_queue = own.used + size.0 + reserve <= own.limit;
        if !fits_queue || !state.fits(self.index, size.0 + reserve) {
            return None;
        }
        state.queues[self.index].ahead += size.0;
        state.enter(self.index, size.0);
        Some(Charge { queue: Arc::clone(self), bytes: size.0, ahead: true })
    }

    /// For the item whose turn it is: waits for room, or until nothing but this item can move.
    ///
    /// `input` is the charge of the item's input. An item over the limit replaces that charge
    /// instead of adding to it.
    pub(crate) fn charge(
        self: &Arc<Self>,
        size: Bytes,
        input: &mut Option<Charge>,
        waiting: &mut dyn FnMut(),
    ) -> Result<Charge, Stopped> {
        let mut state = lock(&self.shared.state);
        state.queues[self.index].largest = state.queues[self.index].largest.max(size.0);
        while !state.admits(self.index, size.0) {
            if state.queues[self.index].stopped {
                return Err(Stopped);
            }
            waiting();
            state.waiting += 1;
            state = wait(&self.shared.freed, state);
            state.waiting -= 1;
        }
        if state.used + size.0 > state.limit {
            state.oversize += 1;
            self.replace(&mut state, input);
        }
        state.enter(self.index, size.0);
        Ok(Charge { queue: Arc::clone(self), bytes: size.0, ahead: false })
    }

    fn replace(&self, state: &mut BytesInUse, input: &mut Option<Charge>) {
        // An input that is charged to another budget frees nothing in this one.
        let same = |charge: &mut Charge| Arc::ptr_eq(&charge.queue.shared, &self.shared);
        if let Some(charge) = input.take_if(same) {
            state.leave(charge.queue.index, charge.bytes, charge.ahead);
            charge.forget();
        }
    }

    pub(crate) fn used(&self) -> Bytes {
        Bytes(lock(&self.shared.state).queues[self.index].used)
    }

    /// The queue's own limit.
    pub(crate) fn limit(&self) -> Bytes {
        Bytes(lock(&self.shared.state).queues[self.index].limit)
    }

    /// Ends every wait for room in this queue, now and later.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.shared.state);
        state.queues[self.index].stopped = true;
        self.shared.wake(state);
    }
}

impl Drop for QueueBudget {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.queues[self.index].left = true;
        // A budget outlives many runs: entries at the end of the list are removed again.
        while state.queues.last().is_some_and(|queue| queue.left) {
            state.queues.pop();
        }
    }
}

impl BudgetShared {
    fn wake(&self, state: MutexGuard<'_, BytesInUse>) {
        let waiting = state.waiting;
        drop(state);
        if waiting > 0 {
            self.freed.notify_all();
        }
    }
}

impl BytesInUse {
    /// Whether `size` bytes leave room for one item in every later queue of the route.
    fn fits(&self, index: usize, size: u64) -> bool {
        let route = self.queues[index].route;
        let same = |queue: &&QueueUsage| queue.route == route && !queue.left;
        let unseen = self.queues.iter().filter(same).map(|m| m.largest).max().unwrap_or(0);
        let reserve: u64 = self.queues[index + 1..]
            .iter()
            .filter(same)
            .map(|m| if m.largest == 0 { unseen } else { m.largest }.saturating_sub(m.settled()))
            .sum();
        self.used + size + reserve <= self.limit
    }

    fn admits(&self, index: usize, size: u64) -> bool {
        let own = &self.queues[index];
        if own.stopped {
            return false;
        }
        let settled = own.settled();
        let later = self.queues[index + 1..].iter().filter(|m| m.route == own.route);
        let alone = settled == 0 && later.map(|m| m.used).sum::<u64>() == 0;
        let queue = own.used + size <= own.limit || settled == 0;
        queue && (alone || self.fits(index, size))
    }

    fn enter(&mut self, index: usize, size: u64) {
        self.queues[index].used += size;
        self.used += size;
        self.peak = self.peak.max(self.used);
    }

    fn leave(&mut self, index: usize, size: u64, ahead: bool) {
        let own = &mut self.queues[index];
        own.used -= size;
        own.ahead -= if ahead { size } else { 0 };
        self.used -= size;
    }
}

/// Bytes that an item is charged with until this is dropped.
pub(crate) struct Charge {
    queue: Arc<QueueBudget>,
    bytes: u64,
    ahead: bool,
}

impl Charge {
    /// All earlier items are complete: from now on this item drains by itself.
    pub(crate) fn settle(&mut self) {
        if self.ahead {
            self.ahead = false;
            lock(&self.queue.shared.state).queues[self.queue.index].ahead -= self.bytes;
        }
    }

    /// The bytes were already removed from the state.
    fn forget(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let mut state = lock(&self.queue.shared.state);
            state.leave(self.queue.index, self.bytes, self.ahead);
            self.queue.shared.wake(state);
        }
    }
}
