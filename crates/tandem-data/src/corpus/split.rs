//! Selects the held-out rows of a corpus without an eval manifest.
//!
//! In: utterances. Out: their [`Split`], a pure function of seed and id, so that a row keeps its split
//! when others are added, removed or reordered.

use super::{Split, Utterance};
use tandem_units::Seed;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Holds out about `share` of the rows. Of two or more rows at least one is held out and at least one
/// is for training, whatever the hashes are. With a share of zero none is held out.
///
/// If the corpus is so small that no hash is below the share, the row with the smallest hash is held
/// out. That row may change when rows are added.
pub(super) fn hold_out(utterances: &mut [Utterance], seed: Seed, share: f64) {
    if share <= 0.0 || utterances.len() < 2 {
        return;
    }
    let mut held_out = 0;
    for utterance in utterances.iter_mut() {
        let out = hash_share(&utterance.id, seed) < share;
        utterance.split = if out { Split::Eval } else { Split::Train };
        held_out += usize::from(out);
    }
    let by_hash = |a: &&mut Utterance, b: &&mut Utterance| {
        hash_share(&a.id, seed).total_cmp(&hash_share(&b.id, seed)).then_with(|| a.id.cmp(&b.id))
    };
    if held_out == 0 {
        let lowest = utterances.iter_mut().min_by(by_hash);
        lowest.into_iter().for_each(|utterance| utterance.split = Split::Eval);
    } else if held_out == utterances.len() {
        let highest = utterances.iter_mut().max_by(by_hash);
        highest.into_iter().for_each(|utterance| utterance.split = Split::Train);
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
    use std::path::PathBuf;

    fn utterance(id: &str) -> Utterance {
        Utterance {
            id: id.into(),
            manifest: 0,
            line: 1,
            text: "x".into(),
            audio: PathBuf::from("wavs/x.wav"),
            speaker: None,
            language: None,
            phonemes: None,
            split: Split::Train,
        }
    }

    fn held_out(ids: impl Iterator<Item = String>, seed: u64, share: f64) -> BTreeSet<String> {
        let mut utterances: Vec<_> = ids.map(|id| utterance(&id)).collect();
        hold_out(&mut utterances, Seed(seed), share);
        utterances.into_iter().filter(|u| u.split == Split::Eval).map(|u| u.id).collect()
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
