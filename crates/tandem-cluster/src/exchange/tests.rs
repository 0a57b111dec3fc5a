//! Two ranks in one memory. A message is copied at the last moment, when its receiver asks for it: memory that is
//! changed or freed too early shows.

use super::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

const PART: usize = 1 << 14;

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
    kind: MessageKind,
    from: *const f32,
    count: usize,
    is_over: bool,
}

struct Memory {
    rank: usize,
    /// Values to add.
    values: VecDeque<Vec<f32>>,
    wire: Rc<RefCell<Wire>>,
}

enum Request {
    Send(usize),
    Receive { kind: MessageKind, number: usize, to: *mut f32, count: usize },
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

impl Memory {
    fn receive(&mut self, kind: MessageKind, to: *mut f32, count: usize) -> Request {
        let next = &mut self.wire.borrow_mut().received[self.rank][kind as usize];
        *next += 1;
        Request::Receive { kind, number: *next - 1, to, count }
    }
}

impl Link for Memory {
    const PART: usize = PART;
    type Request = Request;

    unsafe fn send(
        &mut self,
        kind: MessageKind,
        from: *const f32,
        count: usize,
    ) -> Result<Request, TransportError> {
        let sent = &mut self.wire.borrow_mut().sent;
        sent.push(Message { sender: self.rank, kind, from, count, is_over: false });
        Ok(Request::Send(sent.len() - 1))
    }

    unsafe fn receive_sum(
        &mut self,
        to: *mut f32,
        count: usize,
    ) -> Result<Request, TransportError> {
        Ok(self.receive(MessageKind::Sum, to, count))
    }

    fn receive_values(&mut self, count: usize) -> Result<Option<Request>, TransportError> {
        if self.values.len() == UNDER_WAY {
            return Ok(None);
        }
        self.values.push_back(vec![0.0; count]);
        let to = self.values.back_mut().unwrap().as_mut_ptr();
        Ok(Some(self.receive(MessageKind::Values, to, count)))
    }

    fn add(&mut self, _: Request, to: &mut [f32]) {
        add(to, &self.values.pop_front().unwrap());
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

fn memory(chance: u64) -> [Memory; 2] {
    let wire = Rc::new(RefCell::new(Wire { chance: chance.max(1), ..Wire::default() }));
    [0, 1].map(|rank| Memory { rank, values: VecDeque::new(), wire: wire.clone() })
}

/// Sums with these lengths on two ranks; rank 1 starts each of them so many turns later.
fn sums<L: Link>(links: [L; 2], lengths: &[usize], late: usize) -> [Vec<Vec<f32>>; 2] {
    let mut rank = 0..;
    let mut ranks = links.map(|link| Exchanges::new(rank.next().unwrap(), link));
    let mut found = [Vec::new(), Vec::new()];
    let mut started = [0, 0];
    let limit = 10_000 + lengths.len() * late + lengths.iter().sum::<usize>() / L::PART * 1000;
    for turn in 0..limit {
        for (rank, exchanges) in ranks.iter_mut().enumerate() {
            let due = started[rank] < lengths.len() && turn >= rank * late * (started[rank] + 1);
            if due {
                let id = started[rank];
                exchanges.start(id as CallId, values(rank, id, lengths[id])).unwrap();
                assert!(exchanges.holds(id as CallId));
                started[rank] += 1;
            }
            exchanges.advance().unwrap();
            while let Some(sum) = exchanges.take(found[rank].len() as CallId) {
                found[rank].push(sum);
            }
        }
        if found.iter().all(|found| found.len() == lengths.len()) {
            for exchanges in &mut ranks {
                let room =
                    (0..UNDER_WAY).all(|_| exchanges.link.receive_values(1).unwrap().is_some());
                assert!(room, "a slot is lost");
            }
            return found;
        }
    }
    panic!("sums of {lengths:?} values do not end");
}

pub(crate) fn values(rank: usize, sum: usize, length: usize) -> Vec<f32> {
    (0..length).map(|at| value(rank, sum, at)).collect()
}

fn value(rank: usize, sum: usize, at: usize) -> f32 {
    0.1 * (at % 977) as f32 + 1e-3 * sum as f32 + if rank == 0 { 0.3 } else { -7e3 }
}

pub(crate) fn check<L: Link>(links: [L; 2], lengths: &[usize], late: usize) {
    let [first, second] = sums(links, lengths, late);
    for (id, &length) in lengths.iter().enumerate() {
        check_sum(&first[id], id, length);
        check_sum(&second[id], id, length);
    }
}

/// Sum number `id`, of so many values, has the bits of the only order of addition.
pub(crate) fn check_sum(found: &[f32], id: usize, length: usize) {
    let bits = |sum: &[f32]| sum.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let mut expected = values(0, id, length);
    add(&mut expected, &values(1, id, length));
    assert!(bits(found) == bits(&expected), "sum {id} of {length} values");
}

/// Lengths around the borders of parts.
pub(crate) fn borders(part: usize) -> Vec<usize> {
    let around = [1, 2, 2 * UNDER_WAY].map(|parts| parts * part);
    let around = around.iter().flat_map(|border| [border - 1, *border, border + 1, border + 2]);
    [0, 1, 2, 3].into_iter().chain(around).collect()
}

/// Lengths of a few sums.
pub(crate) fn some_lengths(part: usize) -> impl Strategy<Value = Vec<usize>> {
    let length = prop_oneof![0_usize..9, 0..part, part..3 * part, 0..20 * part];
    prop::collection::vec(length, 1..8)
}

#[test]
fn lengths_around_the_borders_of_parts_are_summed() {
    let lengths = borders(PART);
    lengths.iter().for_each(|length| check(memory(7), &[*length], 0));
    check(memory(7), &lengths, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_sums_have_the_same_bits_on_both_ranks(
        lengths in some_lengths(PART),
        late in 0_usize..40,
        chance: u64,
    ) {
        check(memory(chance), &lengths, late);
    }
}
