//! How many bytes may be on their way at once, in one queue and in all that share a budget.
//!
//! In: the size of an item about to enter a queue. Out: a charge that is given back when the
//! item has been worked on. A queue leaves room for one item in every later queue of its route,
//! so that the end of the route can always move. An item too large for that passes alone: when
//! everything at and after its queue is empty, it is let in whatever it weighs, and counted.
//! So no size, however wrong the limits, can lock a route up. Next: [`crate::link`].

use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};
use std::sync::Arc;
use tandem_units::Bytes;

/// A limit in bytes that several queues share, such as the memory of one device.
#[derive(Clone)]
pub struct Budget(Arc<Ledger>);

/// The run is being stopped: whoever waits should leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run is being stopped")]
pub struct Stopped;

impl Budget {
    /// A budget of so many bytes.
    pub fn of(limit: Bytes) -> Budget {
        let book =
            Book { limit: limit.0, used: 0, peak: 0, oversize: 0, waiting: 0, members: vec![] };
        Budget(Arc::new(Ledger { book: Mutex::new(book), freed: Condvar::new() }))
    }

    /// The limit.
    pub fn limit(&self) -> Bytes {
        Bytes(lock(&self.0.book).limit)
    }

    /// Bytes on their way now: waiting in queues, in the hands of workers and of the consumer.
    pub fn used(&self) -> Bytes {
        Bytes(lock(&self.0.book).used)
    }

    /// The most that was ever on its way at once.
    pub fn peak(&self) -> Bytes {
        Bytes(lock(&self.0.book).peak)
    }

    /// Items that went over the limit because nothing else could have moved.
    pub fn oversize(&self) -> u64 {
        lock(&self.0.book).oversize
    }

    /// A place in the ledger for one queue. Queues of a route join in the order of the route.
    pub(crate) fn join(&self, route: u64, limit: Bytes) -> Arc<Seat> {
        let mut book = lock(&self.0.book);
        let member = Member { route, limit: limit.0, ..Member::default() };
        book.members.push(member);
        Arc::new(Seat { ledger: Arc::clone(&self.0), index: book.members.len() - 1 })
    }
}

struct Ledger {
    book: Mutex<Book>,
    freed: Condvar,
}

struct Book {
    limit: u64,
    used: u64,
    peak: u64,
    oversize: u64,
    waiting: usize,
    members: Vec<Member>,
}

#[derive(Clone, Default)]
struct Member {
    route: u64,
    limit: u64,
    used: u64,
    // The part of `used` that waits for items before it in order: it cannot drain by itself.
    ahead: u64,
    largest: u64,
    stopped: bool,
    left: bool,
}

impl Member {
    /// Bytes that drain by themselves.
    fn settled(&self) -> u64 {
        self.used - self.ahead
    }
}

/// The place of one queue in a budget.
pub(crate) struct Seat {
    ledger: Arc<Ledger>,
    index: usize,
}

impl Seat {
    /// For an item whose turn has not come: enters only where it leaves room for the one whose
    /// turn it is. Never waits.
    pub(crate) fn charge_ahead(self: &Arc<Self>, size: Bytes) -> Option<Charge> {
        let mut book = lock(&self.ledger.book);
        let own = &mut book.members[self.index];
        own.largest = own.largest.max(size.0);
        let reserve = own.largest;
        let fits_queue = own.used + size.0 + reserve <= own.limit;
        if !fits_queue || !book.fits(self.index, size.0 + reserve) {
            return None;
        }
        book.members[self.index].ahead += size.0;
        book.enter(self.index, size.0);
        Some(Charge { seat: Arc::clone(self), bytes: size.0, ahead: true })
    }

    /// For the item whose turn it is: waits for room, or until nothing but this item can move.
    ///
    /// `input` is the charge of what the item was made from. An item over the limit takes its
    /// place instead of adding to it.
    pub(crate) fn charge(
        self: &Arc<Self>,
        size: Bytes,
        input: &mut Option<Charge>,
        waiting: &mut dyn FnMut(),
    ) -> Result<Charge, Stopped> {
        let mut book = lock(&self.ledger.book);
        book.members[self.index].largest = book.members[self.index].largest.max(size.0);
        while !book.admits(self.index, size.0) {
            if book.members[self.index].stopped {
                return Err(Stopped);
            }
            waiting();
            book.waiting += 1;
            book = wait(&self.ledger.freed, book);
            book.waiting -= 1;
        }
        if book.used + size.0 > book.limit {
            book.oversize += 1;
            self.replace(&mut book, input);
        }
        book.enter(self.index, size.0);
        Ok(Charge { seat: Arc::clone(self), bytes: size.0, ahead: false })
    }

    fn replace(&self, book: &mut Book, input: &mut Option<Charge>) {
        // An input of another budget says nothing about this one.
        let same = |charge: &mut Charge| Arc::ptr_eq(&charge.seat.ledger, &self.ledger);
        if let Some(charge) = input.take_if(same) {
            book.leave(charge.seat.index, charge.bytes, charge.ahead);
            charge.forget();
        }
    }

    /// Bytes this queue is charged with.
    pub(crate) fn used(&self) -> Bytes {
        Bytes(lock(&self.ledger.book).members[self.index].used)
    }

    /// The most bytes this queue may hold by itself.
    pub(crate) fn limit(&self) -> Bytes {
        Bytes(lock(&self.ledger.book).members[self.index].limit)
    }

    /// Sends everybody away who waits for room in this queue.
    pub(crate) fn stop(&self) {
        let mut book = lock(&self.ledger.book);
        book.members[self.index].stopped = true;
        self.ledger.wake(book);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut book = lock(&self.ledger.book);
        book.members[self.index].left = true;
        // A budget outlives many runs; seats at the end are taken away again.
        while book.members.last().is_some_and(|member| member.left) {
            book.members.pop();
        }
    }
}

impl Ledger {
    fn wake(&self, book: MutexGuard<'_, Book>) {
        let waiting = book.waiting;
        drop(book);
        if waiting > 0 {
            self.freed.notify_all();
        }
    }
}

impl Book {
    /// Whether so many bytes leave one item's room for every later queue of the route.
    fn fits(&self, index: usize, size: u64) -> bool {
        let route = self.members[index].route;
        let same = |member: &&Member| member.route == route && !member.left;
        let unseen = self.members.iter().filter(same).map(|m| m.largest).max().unwrap_or(0);
        let reserve: u64 = self.members[index + 1..]
            .iter()
            .filter(same)
            .map(|m| if m.largest == 0 { unseen } else { m.largest }.saturating_sub(m.settled()))
            .sum();
        self.used + size + reserve <= self.limit
    }

    fn admits(&self, index: usize, size: u64) -> bool {
        let own = &self.members[index];
        if own.stopped {
            return false;
        }
        let settled = own.settled();
        let later = self.members[index + 1..].iter().filter(|m| m.route == own.route);
        let alone = settled == 0 && later.map(|m| m.used).sum::<u64>() == 0;
        let queue = own.used + size <= own.limit || settled == 0;
        queue && (alone || self.fits(index, size))
    }

    fn enter(&mut self, index: usize, size: u64) {
        self.members[index].used += size;
        self.used += size;
        self.peak = self.peak.max(self.used);
    }

    fn leave(&mut self, index: usize, size: u64, ahead: bool) {
        let own = &mut self.members[index];
        own.used -= size;
        own.ahead -= if ahead { size } else { 0 };
        self.used -= size;
    }
}

/// Bytes that an item is charged with until this is dropped.
pub(crate) struct Charge {
    seat: Arc<Seat>,
    bytes: u64,
    ahead: bool,
}

impl Charge {
    /// The items before this one are through: from now on it drains by itself.
    pub(crate) fn settle(&mut self) {
        if self.ahead {
            self.ahead = false;
            lock(&self.seat.ledger.book).members[self.seat.index].ahead -= self.bytes;
        }
    }

    /// Already taken out of the book.
    fn forget(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let mut book = lock(&self.seat.ledger.book);
            book.leave(self.seat.index, self.bytes, self.ahead);
            self.seat.ledger.wake(book);
        }
    }
}
