//! Two ranks of one process, in turns of one thread and as two threads.

use super::*;
use crate::exchange::tests::{borders, check, check_sum, some_lengths, values};
use crate::exchange::{Exchanges, PairSums};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// Two mappings of one file, as two processes have them.
fn links() -> [SharedLink; 2] {
    let named = create().unwrap();
    [0, 1].map(|rank| SharedLink::open(named.path(), rank).unwrap())
}

#[test]
fn lengths_around_the_borders_of_slots_are_summed() {
    check(links(), &borders(SLOT), 0);
}

#[test]
fn two_threads_sum_many_times_around_the_ring() {
    let lengths = [1, 3 * SLOT, 40 * SLOT + 1, 7, SLOT];
    let links = links().map(AssertSend);
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

#[test]
fn the_name_is_gone_after_both_ranks_have_opened_it() {
    let named = create().unwrap();
    let path = named.path().to_path_buf();
    let links = [0, 1].map(|rank| SharedLink::open(&path, rank).unwrap());
    drop(named);
    assert!(!path.exists());
    check(links, &[5], 0);
    let error = SharedLink::open(&path, 1).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn memory_of_another_size_is_refused() {
    let mut other = NamedTempFile::new().unwrap();
    other.write_all(&[0; 64]).unwrap();
    let error = SharedLink::open(other.path(), 1).err().unwrap();
    assert!(error.to_string().starts_with("it has 64 bytes"), "{error}");
}

#[test]
fn a_directory_that_does_not_exist_is_an_error_that_names_it() {
    let error = create_in(Path::new("/nowhere")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("/nowhere"), "{error}");
}

#[test]
fn ranks_that_sum_different_lengths_get_an_error() {
    let mut ranks = links().into_iter().enumerate().map(|(rank, link)| Exchanges::new(rank, link));
    let (mut first, mut second) = (ranks.next().unwrap(), ranks.next().unwrap());
    first.start(0, values(0, 0, 10)).unwrap();
    second.start(0, values(1, 0, 12)).unwrap();
    let error = first.advance().unwrap_err();
    assert_eq!(error.why, "a message of the other rank has 6 values instead of 5");
}

struct AssertSend(SharedLink);

// SAFETY: each link moves to one thread; the memory is used as two processes use it.
unsafe impl Send for AssertSend {}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_sums_have_the_same_bits_on_both_ranks(
        lengths in some_lengths(SLOT),
        late in 0_usize..40,
    ) {
        check(links(), &lengths, late);
    }
}
