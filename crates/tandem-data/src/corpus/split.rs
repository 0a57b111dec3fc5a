//! Selects the held-out rows of a corpus without an eval manifest.
//!
//! In: utterances. Out: their [`Split`], a pure function of seed and id, so that a row keeps its split
//! when others are added, removed or reordered.

use super::Split;
use tandem_units::Seed;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Which rows are held out, by their ids. The default is none.
#[derive(Clone, Debug, Default)]
pub(super) struct SplitRule {
    seed: Seed,
    share: f64,
    /// The one row that the share would decide differently.
    exception: Option<String>,
}

impl SplitRule {
    pub(super) fn of(&self, id: &str) -> Split {
        let below = self.share > 0.0 && hash_share(id, self.seed) < self.share;
        let is_exception = self.exception.as_deref() == Some(id);
        if below != is_exception { Split::Eval } else { Split::Train }
    }
}

/// What must be known of all ids to hold out about `share` of the rows. Of two or more rows at least one
/// is held out and at least one is for training, whatever the hashes are. With a share of zero none is
/// held out.
///
/// If the corpus is so small that no hash is below the share, the row with the smallest hash is held
/// out. That row may change when rows are added.
pub(super) struct SplitCounts {
    seed: Seed,
    share: f64,
    held_out: usize,
    ids: usize,
    lowest: Option<(f64, String)>,
    highest: Option<(f64, String)>,
}

impl SplitCounts {
    pub(super) fn new(seed: Seed, share: f64) -> SplitCounts {
        SplitCounts { seed, share, held_out: 0, ids: 0, lowest: None, highest: None }
    }

    /// An id that is added again changes nothing.
    pub(super) fn add(&mut self, id: &str) {
        let hash = hash_share(id, self.seed);
        self.ids += 1;
        self.held_out += usize::from(hash < self.share);
        let order =
            |known: &(f64, String)| hash.total_cmp(&known.0).then_with(|| id.cmp(known.1.as_str()));
        if self.lowest.as_ref().is_none_or(|lowest| order(lowest).is_lt()) {
            self.lowest = Some((hash, id.to_owned()));
        }
        if self.highest.as_ref().is_none_or(|highest| order(highest).is_gt()) {
            self.highest = Some((hash, id.to_owned()));
        }
    }

    /// The rule for a corpus of so many distinct ids.
    pub(super) fn rule(self, distinct: usize) -> SplitRule {
        if self.share <= 0.0 || distinct < 2 {
            return SplitRule::default();
        }
        let exception = match self.held_out {
            0 => self.lowest,
            all if all == self.ids => self.highest,
            _ => None,
        };
        let exception = exception.map(|(_, id)| id);
        SplitRule { seed: self.seed, share: self.share, exception }
    }
}

/// The hash of an id as a number from 0 to 1.
fn hash_share(id: &str, seed: Seed) -> f64 {
    const PURPOSE: u64 = 0x0073_706C_6974; // "split"
    let hash = xxh3_64_with_seed(id.as_bytes(), seed.derive(PURPOSE).0);
    hash as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn held_out(ids: impl Iterator<Item = String>, seed: u64, share: f64) -> BTreeSet<String> {
        let ids: Vec<String> = ids.collect();
        let mut counts = SplitCounts::new(Seed(seed), share);
        ids.iter().for_each(|id| counts.add(id));
        let rule = counts.rule(ids.len());
        ids.into_iter().filter(|id| rule.of(id) == Split::Eval).collect()
    }

    #[test]
    fn about_the_requested_share_is_held_out() {
        let out = held_out((0..10_000).map(|i| format!("LJ{i:05}")), 7, 0.05);
        // Binomial: mean 500, standard deviation 21.8; four of them either way.
        assert!((413..=587).contains(&out.len()), "{} held out", out.len());
    }

    #[test]
    fn the_same_rows_are_held_out_in_every_version() {
        // Fixed names: a change here moves training rows into the test of resumed runs.
        let out = held_out((0..40).map(|i| format!("clip_{i}")), 0, 0.1);
        let expected = ["clip_11", "clip_26", "clip_29", "clip_33", "clip_6", "clip_8"];
        assert_eq!(out.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_small_corpus_has_one_of_each() {
        assert_eq!(held_out((0..2).map(|i| i.to_string()), 0, 1e-9).len(), 1);
        assert_eq!(held_out((0..2).map(|i| i.to_string()), 0, 0.999_999).len(), 1);
        assert_eq!(held_out((0..1).map(|i| i.to_string()), 0, 0.9).len(), 0);
        assert_eq!(held_out((0..9).map(|i| i.to_string()), 0, 0.0).len(), 0);
    }

    #[test]
    fn another_seed_holds_out_other_rows() {
        let ids = || (0..1000).map(|i| i.to_string());
        assert_ne!(held_out(ids(), 1, 0.1), held_out(ids(), 2, 0.1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rows_keep_their_split_when_others_are_added(seed: u64, more in 1usize..200) {
            let before = held_out((0..200).map(|i| i.to_string()), seed, 0.2);
            let after = held_out((0..200 + more).rev().map(|i| i.to_string()), seed, 0.2);
            let old: BTreeSet<String> = (0..200).map(|i| i.to_string()).collect();
            prop_assert_eq!(before, after.intersection(&old).cloned().collect());
        }
    }
}
