//! A random order from seed and epoch: the same on every machine and for any number of workers.
//!
//! In: a seed and an epoch. Out: a permutation. ChaCha with 8 rounds, seeded by [`Seed::derive`],
//! generates the random numbers; the shuffle is Fisher-Yates; bounded integers use Lemire's method
//! ("Fast random integer generation in an interval", 2019). The shuffle is implemented here because a
//! library that changes its own shuffle would reorder every resumed run.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tandem_units::{Epoch, Seed};

/// The purpose of the derived seed; other uses of the run's seed have other numbers.
const PURPOSE: u64 = 0x6F72_6465_7200_0001;

/// Random numbers for one epoch.
pub(super) struct Shuffler(ChaCha8Rng);

impl Shuffler {
    pub(super) fn new(seed: Seed, epoch: Epoch) -> Self {
        let seed = seed.derive(PURPOSE).derive(u64::from(epoch.0));
        let mut key = [0u8; 32];
        for (part, bytes) in key.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&seed.derive(part as u64).0.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(key))
    }

    /// Shuffles the items; every order is equally likely.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u32 + 1) as usize;
            items.swap(last, other);
        }
    }

    /// A uniform random number below `end`.
    fn below(&mut self, end: u32) -> u32 {
        // The high half of the product is the result. The low half identifies the few values that
        // would bias it; those are drawn again.
        let unfair = end.wrapping_neg() % end;
        loop {
            let product = u64::from(self.0.next_u32()) * u64::from(end);
            if product as u32 >= unfair {
                return (product >> 32) as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64, epoch: u32, count: u32) -> Vec<u32> {
        let mut items: Vec<u32> = (0..count).collect();
        Shuffler::new(Seed(seed), Epoch(epoch)).shuffle(&mut items);
        items
    }

    #[test]
    fn the_order_of_an_epoch_never_changes() {
        // Fixed values, also computed by a separate program from the definitions of SplitMix64,
        // ChaCha8 and the two papers. A change reorders every resumed run.
        assert_eq!(order(7, 0, 10), [5, 1, 3, 6, 2, 0, 8, 4, 7, 9]);
        assert_eq!(order(7, 1, 10), [1, 0, 6, 3, 4, 2, 5, 9, 8, 7]);
    }

    #[test]
    fn every_position_is_equally_likely() {
        let mut counts = [[0u32; 5]; 5];
        for epoch in 0..10_000 {
            for (place, &item) in order(1, epoch, 5).iter().enumerate() {
                counts[place][item as usize] += 1;
            }
        }
        // 2000 are expected, the standard deviation is 40; the limit is five deviations.
        for count in counts.as_flattened() {
            assert!(count.abs_diff(2_000) < 200, "{counts:?}");
        }
    }

    #[test]
    fn seeds_and_epochs_give_unrelated_orders() {
        assert_ne!(order(1, 0, 100), order(2, 0, 100));
        assert_ne!(order(1, 0, 100), order(1, 1, 100));
        assert_eq!(order(1, 0, 100), order(1, 0, 100));
    }
}
