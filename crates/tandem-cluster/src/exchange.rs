//! Sums of two ranks, as messages in both directions.
//!
//! In: the values of this rank. Out: their sum with those of the other rank. Each rank adds one half of the values:
//! it receives this half from the other rank, adds, and sends the sum to where the other rank needs it. So no value is
//! added twice, and a sum that was received is not touched again. `a + b` and `b + a` have the same bits. Values travel
//! in parts; both ranks send the parts of all sums in the same order. No call waits, and no message waits for one of a later part, so no order of the two ranks can block.
//! The messages are those of a [`Link`]: MPI between machines, [`crate::shared_memory`] on one.

use crate::transport::{CallId, TransportError};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Messages of values to add that may be under way. With fewer, a rank that is behind for a moment stops the other.
pub(crate) const UNDER_WAY: usize = 8;

/// Messages to and from the other rank. Those of a kind arrive in the order in which they were sent.
pub(crate) trait Link {
    /// The largest number of values in a message.
    const PART: usize;
    type Request;

    /// # Safety
    /// The memory is valid and not changed until the request is over.
    unsafe fn send(
        &mut self,
        kind: MessageKind,
        from: *const f32,
        count: usize,
    ) -> Result<Self::Request, TransportError>;

    /// Receives a sum.
    ///
    /// # Safety
    /// The memory is valid and not used by anybody else until the request is over.
    unsafe fn receive_sum(
        &mut self,
        to: *mut f32,
        count: usize,
    ) -> Result<Self::Request, TransportError>;

    /// Receives values that will be added. `None` if [`UNDER_WAY`] of these requests were not added yet.
    fn receive_values(&mut self, count: usize) -> Result<Option<Self::Request>, TransportError>;

    /// A request that is over stays so when it is asked again. Those of a kind are asked in their order.
    fn is_over(&mut self, request: &mut Self::Request) -> Result<bool, TransportError>;

    /// Adds values that were received. Their request is over.
    fn add(&mut self, request: Self::Request, to: &mut [f32]);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// Values of the sender, for the other rank to add.
    Values,
    /// The sum of both ranks.
    Sum,
}

/// The sums of two ranks, whatever carries them.
pub(crate) trait PairSums {
    /// Adds a sum. Its memory stays here even if this fails: the link may have begun to use it.
    fn start(&mut self, id: CallId, values: Vec<f32>) -> Result<(), TransportError>;

    fn holds(&self, id: CallId) -> bool;

    /// The sum, if it is over.
    fn take(&mut self, id: CallId) -> Option<Vec<f32>>;

    /// Adds what has arrived, and starts what can follow it. Returns how many pieces moved.
    fn advance(&mut self) -> Result<u64, TransportError>;
}

/// All sums under way. Owns the memory that the link reads and writes: it must not be dropped before they are over.
pub(crate) struct Exchanges<L: Link> {
    link: L,
    rank: usize,
    /// In the order in which they were started.
    sums: BTreeMap<CallId, Sum>,
    /// Values of the other rank that are received.
    incoming: VecDeque<(Piece, L::Request)>,
    /// Own values of the other rank's half that are sent.
    outgoing: VecDeque<(Piece, L::Request)>,
    /// Sums of the own half that are sent, and of the other half that are received. Kept apart: each is in order.
    sent_back: VecDeque<(Piece, L::Request)>,
    coming_back: VecDeque<(Piece, L::Request)>,
}

struct Sum {
    values: Vec<f32>,
    /// The first part that is not under way.
    next_part: usize,
    /// Pieces under way.
    open: usize,
}

/// A part of one half of a sum.
struct Piece {
    id: CallId,
    range: Range<usize>,
}

impl<L: Link> Exchanges<L> {
    /// `rank` is 0 or 1.
    pub(crate) fn new(rank: usize, link: L) -> Exchanges<L> {
        Exchanges {
            link,
            rank,
            sums: BTreeMap::new(),
            incoming: VecDeque::new(),
            outgoing: VecDeque::new(),
            sent_back: VecDeque::new(),
            coming_back: VecDeque::new(),
        }
    }
}

impl<L: Link> PairSums for Exchanges<L> {
    fn start(&mut self, id: CallId, values: Vec<f32>) -> Result<(), TransportError> {
        self.sums.insert(id, Sum { values, next_part: 0, open: 0 });
        self.start_parts()
    }

    fn holds(&self, id: CallId) -> bool {
        self.sums.contains_key(&id)
    }

    fn take(&mut self, id: CallId) -> Option<Vec<f32>> {
        let is_over = self.sums.get(&id).is_some_and(|sum| sum.is_over(L::PART));
        if is_over { self.sums.remove(&id).map(|sum| sum.values) } else { None }
    }

    fn advance(&mut self) -> Result<u64, TransportError> {
        let mut moved = 0;
        while let Some((_, request)) = self.outgoing.front_mut()
            && self.link.is_over(request)?
        {
            moved += self.receive_sum()?;
        }
        while let Some((_, request)) = self.incoming.front_mut()
            && self.link.is_over(request)?
        {
            moved += self.add_and_send_back()?;
        }
        self.start_parts()?;
        for under_way in [&mut self.sent_back, &mut self.coming_back] {
            while let Some((piece, request)) = under_way.front_mut()
                && self.link.is_over(request)?
            {
                if let Some(sum) = self.sums.get_mut(&piece.id) {
                    sum.open -= 1;
                }
                under_way.pop_front();
                moved += 1;
            }
        }
        Ok(moved)
    }
}

impl<L: Link> Exchanges<L> {
    /// Starts parts while the link has room. The next sum begins when every part of the one before has begun.
    fn start_parts(&mut self) -> Result<(), TransportError> {
        for (&id, sum) in &mut self.sums {
            while let Some([first, second]) = sum.part(sum.next_part, L::PART) {
                let (own, other) = if self.rank == 0 { (first, second) } else { (second, first) };
                // One value is the half of rank 0 alone: the other rank has nothing to add.
                if !own.is_empty() {
                    let Some(request) = self.link.receive_values(own.len())? else {
                        return Ok(());
                    };
                    self.incoming.push_back((Piece { id, range: own }, request));
                    sum.open += 1;
                }
                sum.next_part += 1;
                if !other.is_empty() {
                    // SAFETY: the range is inside of a vector that is kept until the request is over, and nothing
                    // is written there before that.
                    let request = unsafe {
                        let from = sum.values.as_ptr().add(other.start);
                        self.link.send(MessageKind::Values, from, other.len())?
                    };
                    self.outgoing.push_back((Piece { id, range: other }, request));
                    sum.open += 1;
                }
            }
        }
        Ok(())
    }

    /// The other rank has the values of the oldest outgoing piece: their sum may be written over them.
    fn receive_sum(&mut self) -> Result<u64, TransportError> {
        let Some((piece, _)) = self.outgoing.pop_front() else { return Ok(0) };
        let Some(sum) = self.sums.get_mut(&piece.id) else { return Ok(0) };
        // SAFETY: the range is inside of a vector that is kept until the request is over; its values were sent, and
        // no other piece has them.
        let request = unsafe {
            let to = sum.values.as_mut_ptr().add(piece.range.start);
            self.link.receive_sum(to, piece.range.len())?
        };
        self.coming_back.push_back((piece, request));
        Ok(1)
    }

    /// Adds the oldest incoming piece, and sends the sum.
    fn add_and_send_back(&mut self) -> Result<u64, TransportError> {
        let Some((piece, request)) = self.incoming.pop_front() else { return Ok(0) };
        let Some(sum) = self.sums.get_mut(&piece.id) else { return Ok(0) };
        let own = &mut sum.values[piece.range.clone()];
        self.link.add(request, own);
        // SAFETY: the range is inside of a vector that is kept until the request is over. It is not changed again.
        let request = unsafe { self.link.send(MessageKind::Sum, own.as_ptr(), own.len())? };
        self.sent_back.push_back((piece, request));
        Ok(1)
    }
}

impl Sum {
    fn is_over(&self, part: usize) -> bool {
        self.open == 0 && self.part(self.next_part, part).is_none()
    }

    /// Part number `number` of the half of rank 0 and of that of rank 1, which may be empty.
    fn part(&self, number: usize, size: usize) -> Option<[Range<usize>; 2]> {
        let length = self.values.len();
        let half = length.div_ceil(2);
        let (start, end) = (number * size, (number + 1) * size);
        let second = (half + start).min(length)..(half + end).min(length);
        (start < half).then(|| [start..end.min(half), second])
    }
}

/// Adds values one by one.
pub(crate) fn add(to: &mut [f32], values: &[f32]) {
    to.iter_mut().zip(values).for_each(|(to, value)| *to += value);
}

#[cfg(test)]
pub(crate) mod tests;
