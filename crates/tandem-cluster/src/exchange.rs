//! Sums of two ranks, as messages in both directions.
//!
//! In: the values of this rank. Out: their sum with those of the other rank. Both ranks send, receive and add at the
//! same time, where a general sum copies to one of them, adds there, and copies back. `a + b` and `b + a` have the same
//! bits. Values travel in parts that are added while they are in the processor's cache; both ranks send the parts of
//! all sums in the same order. No call waits, and every receive is started before its send, so that no order of the two
//! ranks can block.

use crate::mpi_transport::{TAG, check, is_over};
use crate::transport::{CallId, TransportError};
use mpi::ffi;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;

/// Values of a part: 256 KiB.
const PART: usize = 1 << 16;
/// Parts under way. With fewer, a rank that is behind for a moment stops the other: 8 MiB took 2.5 to 5.8 ms with three
/// and 2.1 to 2.4 ms with eight (two ranks on one machine, median of 15 sums, two rounds).
const UNDER_WAY: usize = 8;

/// All sums under way. Owns the memory that MPI reads and writes: it must not be dropped before they are over.
pub(crate) struct Exchanges {
    peer: c_int,
    on: ffi::MPI_Comm,
    /// In the order in which they were started.
    sums: BTreeMap<CallId, Sum>,
    /// What the parts receive: one slot for each part under way.
    scratch: Vec<f32>,
    free_slots: Vec<usize>,
}

struct Sum {
    values: Vec<f32>,
    under_way: VecDeque<Part>,
    /// The first value that is not under way.
    next: usize,
}

struct Part {
    start: usize,
    length: usize,
    /// Where in the scratch memory.
    slot: usize,
    receiving: ffi::MPI_Request,
    sending: ffi::MPI_Request,
}

impl Exchanges {
    /// With this rank, on a communicator that nothing else uses at the same time with [`TAG`].
    pub(crate) fn new(peer: c_int, on: ffi::MPI_Comm) -> Exchanges {
        let free_slots = (0..UNDER_WAY).map(|slot| slot * PART).collect();
        Exchanges { peer, on, sums: BTreeMap::new(), scratch: Vec::new(), free_slots }
    }

    /// Adds a sum. Its memory stays here even if this fails: MPI may have begun to use it.
    pub(crate) fn start(&mut self, id: CallId, values: Vec<f32>) -> Result<(), TransportError> {
        self.sums.insert(id, Sum { values, under_way: VecDeque::new(), next: 0 });
        self.advance().map(|_| ())
    }

    pub(crate) fn holds(&self, id: CallId) -> bool {
        self.sums.contains_key(&id)
    }

    /// The sum, if it is over.
    pub(crate) fn take(&mut self, id: CallId) -> Option<Vec<f32>> {
        let is_over = self.sums.get(&id).is_some_and(Sum::is_over);
        if is_over { self.sums.remove(&id).map(|sum| sum.values) } else { None }
    }

    /// Adds the parts that have arrived and starts the next ones. Returns how many arrived.
    pub(crate) fn advance(&mut self) -> Result<u64, TransportError> {
        let Exchanges { peer, on, sums, scratch, free_slots } = self;
        if scratch.is_empty() {
            scratch.resize(UNDER_WAY * PART, 0.0);
        }
        let mut arrived = 0;
        for sum in sums.values_mut() {
            arrived += sum.add_arrived(scratch, free_slots)?;
            while sum.next < sum.values.len()
                && let Some(slot) = free_slots.pop()
            {
                sum.start_part(slot, scratch, *peer, *on)?;
            }
            // The next sum begins when every part of this one has left.
            if sum.next < sum.values.len() {
                break;
            }
        }
        Ok(arrived)
    }
}

impl Sum {
    fn is_over(&self) -> bool {
        self.under_way.is_empty() && self.next == self.values.len()
    }

    /// Adds the parts that have arrived, in order, and gives back their slots.
    fn add_arrived(
        &mut self,
        scratch: &[f32],
        free_slots: &mut Vec<usize>,
    ) -> Result<u64, TransportError> {
        let mut arrived = 0;
        // A request that is over stays so when it is tested again.
        while let Some(part) = self.under_way.front_mut()
            && is_over(&mut part.receiving)?
            && is_over(&mut part.sending)?
        {
            let own = &mut self.values[part.start..part.start + part.length];
            let other = &scratch[part.slot..part.slot + part.length];
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
            free_slots.push(part.slot);
            self.under_way.pop_front();
            arrived += 1;
        }
        Ok(arrived)
    }

    fn start_part(
        &mut self,
        slot: usize,
        scratch: &mut [f32],
        peer: c_int,
        on: ffi::MPI_Comm,
    ) -> Result<(), TransportError> {
        let (start, length) = (self.next, PART.min(self.values.len() - self.next));
        self.next += length;
        // SAFETY: a null request is a plain value that MPI replaces, and that counts as over.
        let null = unsafe { ffi::RSMPI_REQUEST_NULL };
        self.under_way.push_back(Part { start, length, slot, receiving: null, sending: null });
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
