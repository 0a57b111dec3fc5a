//! Guesses the phones of a word from its letters.
//!
//! In: a word of the letters `a` to `z`. Out: its phones, for any such word. The model is a joint n-gram
//! model (each letter gives zero to two phones) that `xtask/generators/train_letter_to_sound.py` trains and
//! measures. All costs are whole numbers, so every machine finds the same phones.

use super::arpabet::Phone;
use std::sync::LazyLock;

static FILE: &[u8] = include_bytes!("../../pronunciation/english.letters");

/// Hypotheses that are kept after each letter.
const BEAM: usize = 12;
/// Longer words are cut into parts: time grows with the length.
const LONGEST: usize = 40;
const BEGIN: u8 = 0;
const END: u8 = 1;
/// Cost of a token that the model never saw alone; cannot occur in a valid file.
const UNSEEN: u32 = 512;

/// The phones of a word; other characters than `a` to `z` give none.
pub fn guess(word: &str) -> Vec<Phone> {
    let letters: Vec<u8> = word.bytes().filter(u8::is_ascii_lowercase).collect();
    letters.chunks(LONGEST).flat_map(|part| MODEL.read(part)).collect()
}

/// Identifies the contents: part of the cache key.
pub fn fingerprint() -> u64 {
    xxhash_rust::xxh3::xxh3_64(FILE)
}

static MODEL: LazyLock<Model> = LazyLock::new(|| {
    Model::parse(FILE).expect("the file is part of the program, and a test reads all of it")
});

/// The trie of n-grams.
struct Model {
    /// Phones of each token, from number 2 on.
    pairs: Vec<Vec<Phone>>,
    /// Tokens of each letter.
    by_letter: [Vec<u8>; 26],
    /// Unigrams first.
    levels: Vec<Level>,
}

/// All n-grams of one size, in the order of their parents.
struct Level {
    tokens: &'static [u8],
    costs: &'static [u8],
    /// Cost of leaving out the first token of a context; empty in the last level.
    back_off: &'static [u8],
    /// Where the children of each n-gram begin in the next level; one more at the end.
    children: Vec<u32>,
}

/// A way to read the letters so far.
#[derive(Clone)]
struct Hypothesis {
    cost: u32,
    /// Tokens so far, with the one of the beginning.
    tokens: Vec<u8>,
}

impl Model {
    fn parse(file: &'static [u8]) -> Option<Model> {
        let (head, mut rest) = file.split_at_checked(8)?;
        let order = usize::from(head[4]);
        let count = usize::from(u16::from_le_bytes([head[6], head[7]]));
        let mut model =
            Model { pairs: Vec::new(), by_letter: Default::default(), levels: Vec::new() };
        for number in 0..count {
            let pair = take(&mut rest, 4)?;
            let letter = usize::from(pair[0].checked_sub(b'a')?);
            model.by_letter.get_mut(letter)?.push(number as u8 + 2);
            let phones = pair[2..].get(..usize::from(pair[1]))?;
            model.pairs.push(phones.iter().map(|code| Phone(*code)).collect());
        }
        let sizes = take(&mut rest, 4 * order)?;
        for (index, size) in sizes.chunks_exact(4).enumerate() {
            let size = u32::from_le_bytes(size.try_into().ok()?) as usize;
            let tokens = take(&mut rest, size)?;
            let costs = take(&mut rest, size)?;
            let last = index + 1 == order;
            let back_off = take(&mut rest, if last { 0 } else { size })?;
            let counts = take(&mut rest, if last { 0 } else { size })?;
            let mut children = vec![0];
            children.extend(counts.iter().scan(0, |sum, count| {
                *sum += u32::from(*count);
                Some(*sum)
            }));
            model.levels.push(Level { tokens, costs, back_off, children });
        }
        (rest.is_empty() && head.starts_with(b"LTS2")).then_some(model)
    }

    fn read(&self, letters: &[u8]) -> Vec<Phone> {
        let mut beam = vec![Hypothesis { cost: 0, tokens: vec![BEGIN] }];
        let mut ahead: Vec<(u32, usize, u8)> = Vec::new();
        for letter in letters {
            ahead.clear();
            for (place, hypothesis) in beam.iter().enumerate() {
                let contexts = self.contexts(&hypothesis.tokens);
                for &token in &self.by_letter[usize::from(letter - b'a')] {
                    ahead.push((hypothesis.cost + self.cost(&contexts, token), place, token));
                }
            }
            let kept = BEAM.min(ahead.len());
            if kept < ahead.len() {
                ahead.select_nth_unstable(kept);
            }
            ahead.truncate(kept);
            ahead.sort_unstable();
            let extended = |&(cost, place, token): &(u32, usize, u8)| {
                let mut tokens = Vec::with_capacity(letters.len() + 1);
                tokens.extend_from_slice(&beam[place].tokens);
                tokens.push(token);
                Hypothesis { cost, tokens }
            };
            beam = ahead.iter().map(extended).collect();
        }
        let ended = |hypothesis: &Hypothesis| {
            hypothesis.cost + self.cost(&self.contexts(&hypothesis.tokens), END)
        };
        let best = beam.iter().min_by_key(|hypothesis| (ended(hypothesis), &hypothesis.tokens));
        let tokens = best.map(|best| &best.tokens[1..]).unwrap_or_default();
        tokens
            .iter()
            .flat_map(|token| self.pairs[usize::from(*token) - 2].iter().copied())
            .collect()
    }

    /// The n-grams that are the last tokens, the longest first. The level and place of each.
    fn contexts(&self, tokens: &[u8]) -> Vec<(usize, usize)> {
        let longest = (self.levels.len() - 1).min(tokens.len());
        let find = |size: usize| {
            let (first, more) = tokens[tokens.len() - size..].split_first()?;
            let root = self.levels[0].tokens.binary_search(first).ok()?;
            more.iter().try_fold((0, root), |(level, at), token| {
                Some((level + 1, self.child(level, at, *token)?))
            })
        };
        (1..=longest).rev().filter_map(find).collect()
    }

    /// Cost of a token after these contexts, in sixteenths of a bit.
    fn cost(&self, contexts: &[(usize, usize)], token: u8) -> u32 {
        let mut cost = 0;
        for &(level, at) in contexts {
            if let Some(child) = self.child(level, at, token) {
                return cost + 2 * u32::from(self.levels[level + 1].costs[child]);
            }
            cost += u32::from(self.levels[level].back_off[at]);
        }
        let alone = self.levels[0].tokens.binary_search(&token);
        cost + alone.map_or(UNSEEN, |at| 2 * u32::from(self.levels[0].costs[at]))
    }

    fn child(&self, level: usize, at: usize, token: u8) -> Option<usize> {
        let here = self.levels.get(level)?;
        let (start, end) = (*here.children.get(at)? as usize, *here.children.get(at + 1)? as usize);
        let found = self.levels[level + 1].tokens[start..end].binary_search(&token);
        found.ok().map(|place| start + place)
    }
}

fn take(rest: &mut &'static [u8], count: usize) -> Option<&'static [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::super::{arpabet::write_ipa, packed_lexicon};
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(word: &str, ipa: &str) {
        let mut found = String::new();
        write_ipa(&guess(word), &mut found);
        assert_eq!(found, ipa, "{word}");
    }

    #[test]
    fn made_up_words_are_read_by_their_letters() {
        check("blick", "blˈɪk");
    }

    /// One word in ten was held out when the model was trained; the same hash finds them here.
    #[test]
    fn held_out_words_have_the_stated_error_rates() {
        let held_out = |word: &(&str, &[u8])| {
            (packed_lexicon::fnv1a(word.0) >> 20).is_multiple_of(10)
                && word.0.len() > 1
                && !word.0.contains('\'')
        };
        let (mut phones, mut phone_errors, mut words, mut word_errors) = (0, 0, 0, 0);
        for (word, codes) in packed_lexicon::words().filter(held_out) {
            let found = guess(word);
            let plain = |phone: &Phone| phone.name();
            let listed: Vec<_> = codes.iter().map(|code| plain(&Phone(*code))).collect();
            let wrong = edits(&found.iter().map(plain).collect::<Vec<_>>(), &listed);
            (phones, phone_errors) = (phones + codes.len(), phone_errors + wrong);
            (words, word_errors) = (words + 1, word_errors + usize::from(wrong > 0));
        }
        let share = |wrong: usize, all: usize| wrong as f64 / all as f64;
        let (by_phone, by_word) = (share(phone_errors, phones), share(word_errors, words));
        assert!(by_phone < 0.10 && by_word < 0.40, "{words} words: {by_phone} {by_word}");
    }

    fn edits(one: &[&str], other: &[&str]) -> usize {
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (i, a) in one.iter().enumerate() {
            let mut before = std::mem::replace(&mut row[0], i + 1);
            for (j, b) in other.iter().enumerate() {
                let changed = before + usize::from(a != b);
                before = row[j + 1];
                row[j + 1] = changed.min(before + 1).min(row[j] + 1);
            }
        }
        row[other.len()]
    }

    proptest! {
        #[test]
        fn any_letters_are_read(word in "[a-z]{0,90}") {
            let found = guess(&word);
            prop_assert_eq!(guess(&word), found);
        }
    }
}
