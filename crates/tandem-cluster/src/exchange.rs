//! The sum of two ranks, as messages in both directions.
//!
//! In: the values of this rank. Out: their sum with those of the other rank. Both ranks send, receive and add at the
//! same time, where a general sum copies to one of them, adds there, and copies back. `a + b` and `b + a` have the same
//! bits. Values travel in parts that are added while they are in the processor's cache. No call waits, and every
//! receive is started before its send, so that no order of the two ranks can block.

use crate::mpi_transport::{TAG, check, is_over};
use crate::transport::TransportError;
use mpi::ffi;
use std::collections::VecDeque;
use std::ffi::c_int;

/// Values of a part: 256 KiB.
const PART: usize = 1 << 16;
/// Parts under way. What they receive fits into the second-level cache.
const UNDER_WAY: usize = 3;

/// Where the messages of a sum go.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub peer: c_int,
    pub on: ffi::MPI_Comm,
}

/// Owns the memory that MPI reads: it must not be dropped before [`Exchange::is_over`].
pub(crate) struct Exchange {
    values: Vec<f32>,
    place: Place,
    under_way: VecDeque<Part>,
    /// The first value that is not under way.
    next: usize,
}

struct Part {
    start: usize,
    length: usize,
    /// Where in `scratch`.
    slot: usize,
    receiving: ffi::MPI_Request,
    sending: ffi::MPI_Request,
}

impl Exchange {
    pub(crate) fn new(values: Vec<f32>, place: Place) -> Exchange {
        Exchange { values, place, under_way: VecDeque::new(), next: 0 }
    }

    /// Adds the parts that have arrived and starts the next ones. Returns how many arrived. `scratch` belongs to this
    /// sum until it is over: MPI writes to it.
    pub(crate) fn advance(&mut self, scratch: &mut Vec<f32>) -> Result<u64, TransportError> {
        if scratch.is_empty() {
            scratch.resize(UNDER_WAY * PART, 0.0);
        }
        let mut arrived = 0;
        // A request that is over stays so when it is tested again.
        while let Some(part) = self.under_way.front_mut()
            && is_over(&mut part.receiving)?
            && is_over(&mut part.sending)?
        {
            let slot = part.slot;
            let sum = part.start..part.start + part.length;
            let other = &scratch[slot..slot + part.length];
            self.values[sum].iter_mut().zip(other).for_each(|(own, other)| *own += other);
            self.under_way.pop_front();
            arrived += 1;
            self.start_part(slot, scratch)?;
        }
        // At the start; later every part that arrives starts the next one.
        while self.under_way.len() < UNDER_WAY && self.next < self.values.len() {
            self.start_part(self.under_way.len() * PART, scratch)?;
        }
        Ok(arrived)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.under_way.is_empty() && self.next == self.values.len()
    }

    pub(crate) fn into_sum(self) -> Vec<f32> {
        self.values
    }

    /// Starts the next part, if there is one.
    fn start_part(&mut self, slot: usize, scratch: &mut [f32]) -> Result<(), TransportError> {
        let (start, length) = (self.next, PART.min(self.values.len() - self.next));
        if length == 0 {
            return Ok(());
        }
        self.next += length;
        let Place { peer, on } = self.place;
        // SAFETY: a null request is a plain value that MPI replaces, and that counts as over.
        let null = unsafe { ffi::RSMPI_REQUEST_NULL };
        let part = Part { start, length, slot, receiving: null, sending: null };
        self.under_way.push_back(part);
        let Some(part) = self.under_way.back_mut() else { return Ok(()) };
        let count = length as c_int;
        // SAFETY: both ranges are inside of vectors on the heap that are kept until the requests are over. No other
        // part that is under way has them, and they are not touched here until then.
        unsafe {
            let to = scratch.as_mut_ptr().add(slot).cast();
            let request = &mut part.receiving;
            let started = ffi::MPI_Irecv(to, count, ffi::RSMPI_FLOAT, peer, TAG, on, request);
            check("MPI_Irecv", started)?;
            let from = self.values.as_ptr().add(start).cast();
            let request = &mut part.sending;
            let started = ffi::MPI_Isend(from, count, ffi::RSMPI_FLOAT, peer, TAG, on, request);
            check("MPI_Isend", started)
        }
    }
}
