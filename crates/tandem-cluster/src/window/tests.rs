//! Two ranks that share the memory of this process, in turns of one thread and as two threads.

use super::*;
use crate::exchange::tests::{borders, check, check_sum, some_lengths, values};
use crate::exchange::{Exchanges, PairSums};
use proptest::prelude::*;
use std::time::{Duration, Instant};

struct Memory([Box<Outbox>; 2]);

impl Memory {
    fn new() -> Memory {
        // SAFETY: all zeros is an empty outbox.
        Memory([(); 2].map(|()| unsafe { Box::new_zeroed().assume_init() }))
    }

    fn link(&self, rank: usize) -> WindowLink {
        // SAFETY: the tests keep the memory longer than its links.
        unsafe { WindowLink::new(&*self.0[rank], &*self.0[1 - rank]) }
    }
}

#[test]
fn lengths_around_the_borders_of_slots_are_summed() {
    let memory = Memory::new();
    check([0, 1].map(|rank| memory.link(rank)), &borders(SLOT), 0);
}

#[test]
fn two_threads_sum_many_times_around_the_ring() {
    let memory = Memory::new();
    let lengths = [1, 3 * SLOT, 40 * SLOT + 1, 7, SLOT];
    let links = [0, 1].map(|rank| AssertSend(memory.link(rank)));
    std::thread::scope(|scope| {
        for (rank, link) in links.into_iter().enumerate() {
            scope.spawn(move || {
                let AssertSend(link) = { link };
                let mut exchanges = Exchanges::new(rank, link);
                let limit = Instant::now() + Duration::from_secs(60);
                for id in 0..100 {
                    let length = lengths[id % lengths.len()];
                    exchanges.start(id as u64, values(rank, id, length)).unwrap();
                    let found = loop {
                        exchanges.advance().unwrap();
                        if let Some(found) = exchanges.take(id as u64) {
                            break found;
                        }
                        assert!(Instant::now() < limit, "rank {rank} waits in sum {id}");
                        std::thread::yield_now();
                    };
                    check_sum(&found, id, length);
                }
            });
        }
    });
}

struct AssertSend(WindowLink);

// SAFETY: each link moves to one thread; the memory is used as two processes use it.
unsafe impl Send for AssertSend {}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_sums_have_the_same_bits_on_both_ranks(
        lengths in some_lengths(SLOT),
        late in 0_usize..40,
    ) {
        let memory = Memory::new();
        check([0, 1].map(|rank| memory.link(rank)), &lengths, late);
    }
}
