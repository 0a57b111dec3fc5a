//! Seed, epoch and ticket: they decide order and randomness. The thread never does.

use serde::{Deserialize, Serialize};

/// One pass over the corpus, counted from zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u32);

/// The position of an item in a run. Order and randomness depend on it alone, so that one worker
/// and sixteen workers produce the same batches.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Ticket {
    /// Which pass over the corpus.
    pub epoch: Epoch,
    /// Position in the whole run, counted from zero, without gaps.
    pub seq: u64,
}

/// The seed of all random numbers of a run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// A seed for one purpose, independent of all others derived from the same seed.
    ///
    /// Two rounds of the SplitMix64 finaliser (Steele, Lea and Flood 2014) separate neighbouring
    /// values well enough; the result seeds a real generator.
    pub fn derive(self, purpose: u64) -> Seed {
        Seed(mix(mix(self.0) ^ purpose.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// The seed of one item: a pure function of the run's seed and the ticket.
    pub fn for_ticket(self, ticket: Ticket) -> Seed {
        self.derive(u64::from(ticket.epoch.0)).derive(ticket.seq)
    }
}

fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_tickets_get_unrelated_seeds() {
        let seeds: std::collections::HashSet<u64> = (0..1000)
            .flat_map(|seq| (0..4).map(move |epoch| Ticket { epoch: Epoch(epoch), seq }))
            .map(|ticket| Seed(7).for_ticket(ticket).0)
            .collect();
        assert_eq!(seeds.len(), 4000);
    }

    #[test]
    fn the_seed_of_a_ticket_never_changes_between_versions() {
        // Fixed values, computed by a second implementation: a change here reorders every resumed run.
        let ticket = Ticket { epoch: Epoch(3), seq: 41 };
        assert_eq!(Seed(7).for_ticket(ticket), Seed(0x6514_0189_2204_FC71));
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF, "first output of SplitMix64 seeded with 0");
    }
}
