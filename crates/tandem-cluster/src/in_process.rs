//! Ranks that are threads of one process: the transport of tests.
//!
//! In: as many [`InProcess`] as there are ranks, made by [`Hub`]. Sums are added in pairs of ranks, then
//! in pairs of pairs. A rank can be cut off: nothing that it sends arrives any more.

use crate::transport::{Call, CallId, Delivered, Reply, Transport, TransportError};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connects the ranks.
#[derive(Clone, Default)]
pub struct Hub(Arc<Mutex<HubState>>);

#[derive(Default)]
struct HubState {
    ranks: usize,
    cut: Vec<usize>,
    /// What each rank gave to the collective calls that are under way, by their number.
    shared: BTreeMap<u64, BTreeMap<usize, Call>>,
    messages: HashMap<(usize, usize), VecDeque<Vec<u8>>>,
    notes: HashMap<usize, VecDeque<(usize, Vec<u8>)>>,
    /// Calls without a reply, by rank.
    under_way: HashMap<usize, usize>,
}

impl Hub {
    pub fn new(ranks: usize) -> Hub {
        Hub(Arc::new(Mutex::new(HubState { ranks, ..HubState::default() })))
    }

    pub fn transport(&self, rank: usize) -> InProcess {
        InProcess { hub: self.clone(), rank, collectives: 0, calls: 0, active: HashMap::new() }
    }

    /// From now on nothing of this rank arrives anywhere.
    pub fn cut_off(&self, rank: usize) {
        self.state().cut.push(rank);
    }

    /// Whether a call of this rank is under way.
    pub fn is_busy(&self, rank: usize) -> bool {
        self.state().under_way.get(&rank).is_some_and(|calls| *calls > 0)
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One rank.
pub struct InProcess {
    hub: Hub,
    rank: usize,
    collectives: u64,
    calls: CallId,
    active: HashMap<CallId, Active>,
}

enum Active {
    Collective(u64),
    Receive(usize),
    Sent,
}

impl Transport for InProcess {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.hub.state().ranks
    }

    fn start(&mut self, call: Call) -> Result<CallId, TransportError> {
        let mut state = self.hub.state();
        let is_cut = state.cut.contains(&self.rank);
        let active = match call {
            Call::Receive { from } => Active::Receive(from),
            Call::Send { to, bytes } => {
                if !is_cut {
                    state.messages.entry((self.rank, to)).or_default().push_back(bytes);
                }
                Active::Sent
            }
            call => {
                let number = self.collectives;
                self.collectives += 1;
                if !is_cut {
                    state.shared.entry(number).or_default().insert(self.rank, call);
                }
                Active::Collective(number)
            }
        };
        *state.under_way.entry(self.rank).or_default() += 1;
        self.calls += 1;
        self.active.insert(self.calls, active);
        Ok(self.calls)
    }

    fn poll(&mut self, call: CallId) -> Result<Option<Reply>, TransportError> {
        let mut state = self.hub.state();
        let reply = match self.active.get(&call) {
            Some(Active::Sent) => Some(Reply::Sent),
            Some(Active::Receive(from)) => {
                let queue = state.messages.entry((*from, self.rank)).or_default();
                queue.pop_front().map(Reply::Bytes)
            }
            Some(Active::Collective(number)) => {
                let (number, ranks) = (*number, state.ranks);
                match state.shared.get(&number) {
                    Some(calls) if calls.len() == ranks => Some(combine(calls)?),
                    _ => None,
                }
            }
            None => None,
        };
        if reply.is_some() {
            self.active.remove(&call);
            *state.under_way.entry(self.rank).or_default() -= 1;
        }
        Ok(reply)
    }

    fn send_note(&mut self, to: usize, note: &[u8]) -> Result<Delivered, TransportError> {
        let mut state = self.hub.state();
        if !state.cut.contains(&self.rank) && !state.cut.contains(&to) {
            state.notes.entry(to).or_default().push_back((self.rank, note.to_vec()));
        }
        Ok(Delivered::Yes)
    }

    fn take_note(&mut self) -> Result<Option<(usize, Vec<u8>)>, TransportError> {
        Ok(self.hub.state().notes.entry(self.rank).or_default().pop_front())
    }

    fn finish(&mut self) {}
}

fn combine(calls: &BTreeMap<usize, Call>) -> Result<Reply, TransportError> {
    if let Some(Call::Broadcast { root, .. }) = calls.get(&0) {
        return match calls.get(root) {
            Some(Call::Broadcast { bytes, .. }) => Ok(Reply::Bytes(bytes.clone())),
            _ => Err(mismatch()),
        };
    }
    let calls: Vec<&Call> = calls.values().collect();
    match sum(&calls)? {
        Call::SumF32(sum) => Ok(Reply::F32(sum)),
        Call::SumF64(sum) => Ok(Reply::F64(sum)),
        _ => Err(mismatch()),
    }
}

/// The sum of the first half of the ranks plus that of the second: MPI adds in such an order, and not from
/// the first rank to the last.
fn sum(calls: &[&Call]) -> Result<Call, TransportError> {
    let (first, second) = match calls {
        [] => return Err(mismatch()),
        [one] => return Ok((*one).clone()),
        _ => calls.split_at(calls.len().div_ceil(2)),
    };
    match (sum(first)?, sum(second)?) {
        (Call::SumF32(mut sum), Call::SumF32(values)) if sum.len() == values.len() => {
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            Ok(Call::SumF32(sum))
        }
        (Call::SumF64(mut sum), Call::SumF64(values)) if sum.len() == values.len() => {
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            Ok(Call::SumF64(sum))
        }
        _ => Err(mismatch()),
    }
}

fn mismatch() -> TransportError {
    TransportError { call: "a collective call", why: "the ranks made different calls".into() }
}
