//! What can travel through a route: anything that knows its size.
//!
//! In: items of the caller. Out: the same items; the pipeline never looks inside. An item may
//! carry a [`Ticket`], which reports use to name it. Next: [`crate::stage`].

use tandem_units::{Bytes, Ticket};

/// An item whose size a queue can limit.
pub trait Payload: Send + 'static {
    /// Memory that the item uses on the device of its queue. Called once per queue.
    fn size(&self) -> Bytes;

    /// The item's epoch and number. Reports name the item by it.
    fn ticket(&self) -> Option<Ticket> {
        None
    }
}

/// An item with its ticket. Order and random numbers depend on the ticket, never on the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticketed<T> {
    pub ticket: Ticket,
    pub body: T,
}

impl<T> Ticketed<T> {
    /// The same ticket with another body.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Ticketed<U> {
        Ticketed { ticket: self.ticket, body: change(self.body) }
    }
}

impl<T: Payload> Payload for Ticketed<T> {
    fn size(&self) -> Bytes {
        self.body.size()
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket)
    }
}
