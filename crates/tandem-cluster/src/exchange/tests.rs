//! Two ranks in one memory. A message is copied at the last moment, when its receiver asks for it: memory that is
//! changed or freed too early shows.

use super::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Messages of both ranks and both kinds, in order of their start.
#[derive(Default)]
struct Wire {
    sent: Vec<Message>,
    /// Receives that were started, by receiver and kind: the next one takes the message of this number.
    received: [[usize; 2]; 2],
    /// Bits that say whether a request that could be over is over.
    chance: u64,
}

struct Message {
    sender: usize,
    kind: Kind,
    from: *const f32,
    count: usize,
    is_over: bool,
}

struct Memory {
    rank: usize,
    wire: Rc<RefCell<Wire>>,
}

enum Request {
    Send(usize),
    Receive { kind: Kind, number: usize, to: *mut f32, count: usize },
    Over,
}

impl Wire {
    /// A xorshift generator.
    fn agrees(&mut self) -> bool {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        !self.chance.is_multiple_of(3)
    }
}

impl Link for Memory {
    type Request = Request;

    unsafe fn receive(
        &mut self,
        kind: Kind,
        to: *mut f32,
        count: usize,
    ) -> Result<Request, TransportError> {
        let next = &mut self.wire.borrow_mut().received[self.rank][kind as usize];
        *next += 1;
        Ok(Request::Receive { kind, number: *next - 1, to, count })
    }

    unsafe fn send(
        &mut self,
        kind: Kind,
        from: *const f32,
        count: usize,
    ) -> Result<Request, TransportError> {
        let sent = &mut self.wire.borrow_mut().sent;
        sent.push(Message { sender: self.rank, kind, from, count, is_over: false });
        Ok(Request::Send(sent.len() - 1))
    }

    fn is_over(&mut self, request: &mut Request) -> Result<bool, TransportError> {
        let mut wire = self.wire.borrow_mut();
        let is_over = match *request {
            Request::Over => return Ok(true),
            _ if !wire.agrees() => false,
            Request::Send(number) => wire.sent[number].is_over,
            Request::Receive { kind, number, to, count } => {
                let other = 1 - self.rank;
                let mut sent = wire.sent.iter_mut();
                match sent.by_ref().filter(|m| m.sender == other && m.kind == kind).nth(number) {
                    Some(message) => {
                        assert_eq!(message.count, count, "the ranks cut a sum in different places");
                        // SAFETY: both ranks keep their memory until their requests are over, which is what is tested.
                        unsafe { std::ptr::copy_nonoverlapping(message.from, to, count) };
                        message.is_over = true;
                        true
                    }
                    None => false,
                }
            }
        };
        if is_over {
            *request = Request::Over;
        }
        Ok(is_over)
    }
}

/// Sums with these lengths on two ranks; rank 1 starts each of them so many turns later.
fn sums(lengths: &[usize], late: usize, chance: u64) -> [Vec<Vec<f32>>; 2] {
    let wire = Rc::new(RefCell::new(Wire { chance: chance.max(1), ..Wire::default() }));
    let mut ranks = [0, 1].map(|rank| Exchanges::new(rank, Memory { rank, wire: wire.clone() }));
    let mut found = [Vec::new(), Vec::new()];
    let mut started = [0, 0];
    let limit = 10_000 + lengths.len() * late + lengths.iter().sum::<usize>() / PART * 1000;
    for turn in 0..limit {
        for (rank, exchanges) in ranks.iter_mut().enumerate() {
            let due = started[rank] < lengths.len() && turn >= rank * late * (started[rank] + 1);
            if due {
                let id = started[rank];
                let values = (0..lengths[id]).map(|at| value(rank, id, at)).collect();
                exchanges.start(id as CallId, values).unwrap();
                assert!(exchanges.holds(id as CallId));
                started[rank] += 1;
            }
            exchanges.advance().unwrap();
            while let Some(sum) = exchanges.take(found[rank].len() as CallId) {
                found[rank].push(sum);
            }
        }
        if found.iter().all(|found| found.len() == lengths.len()) {
            assert!(ranks.iter().all(|rank| rank.free_slots.len() == UNDER_WAY), "a slot is lost");
            return found;
        }
    }
    panic!("sums of {lengths:?} values do not end");
}

fn value(rank: usize, sum: usize, at: usize) -> f32 {
    0.1 * (at % 977) as f32 + 1e-3 * sum as f32 + if rank == 0 { 0.3 } else { -7e3 }
}

fn check(lengths: &[usize], late: usize, chance: u64) {
    let [first, second] = sums(lengths, late, chance);
    for (id, &length) in lengths.iter().enumerate() {
        let bits = |sum: &[f32]| sum.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let expected: Vec<f32> =
            (0..length).map(|at| value(0, id, at) + value(1, id, at)).collect();
        assert!(bits(&first[id]) == bits(&expected), "sum {id} of {length} values on rank 0");
        assert!(bits(&second[id]) == bits(&expected), "sum {id} of {length} values on rank 1");
    }
}

#[test]
fn lengths_around_the_borders_of_parts_are_summed() {
    let lengths = [
        0,
        1,
        2,
        3,
        PART - 1,
        PART,
        PART + 1,
        2 * PART - 1,
        2 * PART,
        2 * PART + 1,
        2 * PART + 2,
        2 * UNDER_WAY * PART + 3,
    ];
    lengths.iter().for_each(|length| check(&[*length], 0, 7));
    check(&lengths, 0, 7);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_sums_have_the_same_bits_on_both_ranks(
        lengths in prop::collection::vec(
            prop_oneof![0_usize..9, 0..PART, PART..3 * PART, 0..20 * PART], 1..8),
        late in 0_usize..40,
        chance: u64,
    ) {
        check(&lengths, late, chance);
    }
}
