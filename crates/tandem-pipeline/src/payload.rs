//! What may travel through a route: anything that knows its size.
//!
//! In: items of the caller. Out: the same items; the pipeline never looks inside. An item may
//! carry a [`Ticket`], by which skips and frozen stages are named. Next: [`crate::stage`].

use tandem_units::{Bytes, Ticket};

/// An item that a queue can weigh.
pub trait Payload: Send + 'static {
    /// Memory the item holds on to, on the device its queue stands for. Asked once per queue.
    fn size(&self) -> Bytes;

    /// The item's place in the run, where it has one. Reports name the item by it.
    fn ticket(&self) -> Option<Ticket> {
        None
    }
}

/// An item with its place in the run. Order and chance follow the ticket, never the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticketed<T> {
    /// Place in the run.
    pub ticket: Ticket,
    /// The item itself.
    pub body: T,
}

impl<T> Ticketed<T> {
    /// The same place in the run with another body: what most stages do.
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
