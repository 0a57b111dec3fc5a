//! The CMU Pronouncing Dictionary, packed by `xtask/generators/make_english_lexicon.py`.
//!
//! In: a word in lower case. Out: its phones. The table is part of the program: nothing is read,
//! unpacked or allocated, and a lookup compares about four words. Licence: `LICENSE-CMUDICT` beside the file.

use super::arpabet::Phone;

static FILE: &[u8] = include_bytes!("../../pronunciation/english.lexicon");

/// Magic and number of buckets.
const HEAD: usize = 8;

/// The codes of the phones of a word.
pub fn find(word: &str) -> Option<impl Iterator<Item = Phone> + Clone> {
    let buckets = number(4)?;
    let bucket = (fnv1a(word) as usize) & (buckets - 1);
    let entries = HEAD + 4 * (buckets + 1);
    let start = entries + number(HEAD + 4 * bucket)?;
    let end = entries + number(HEAD + 4 * (bucket + 1))?;
    let mut rest = FILE.get(start..end)?;
    while let Some((letters, after)) = counted(rest) {
        let (codes, next) = counted(after)?;
        if letters == word.as_bytes() {
            return Some(codes.iter().map(|code| Phone(*code)));
        }
        rest = next;
    }
    None
}

/// Identifies the contents: part of the cache key.
pub fn fingerprint() -> u64 {
    xxhash_rust::xxh3::xxh3_64(FILE)
}

/// A length and as many bytes, and what follows them.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

fn number(at: usize) -> Option<usize> {
    let bytes = FILE.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
}

/// The hash of the script that packs the table.
pub fn fnv1a(word: &str) -> u32 {
    word.bytes().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Every word, for tests.
#[cfg(test)]
pub fn words() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let buckets = number(4).unwrap();
    let mut rest = &FILE[HEAD + 4 * (buckets + 1)..];
    std::iter::from_fn(move || {
        let (letters, after) = counted(rest)?;
        let (codes, next) = counted(after)?;
        rest = next;
        Some((std::str::from_utf8(letters).unwrap(), codes))
    })
}

#[cfg(test)]
mod tests {
    use super::super::arpabet::{COUNT, phones};
    use super::*;

    #[test]
    fn every_word_is_found_with_its_own_phones() {
        assert!(FILE.starts_with(b"LEX1"));
        let mut count = 0;
        for (word, codes) in words() {
            assert!(codes.iter().all(|code| *code < COUNT) && !codes.is_empty(), "{word}");
            assert!(find(word).unwrap().map(|phone| phone.0).eq(codes.iter().copied()), "{word}");
            count += 1;
        }
        assert!(count > 120_000, "{count}");
    }

    #[test]
    fn words_have_stress_and_unknown_words_have_nothing() {
        let found: Vec<_> = find("banana").unwrap().collect();
        assert_eq!(found, phones("B AH0 N AE1 N AH0"));
        assert!(find("zzyzxq").is_none());
        assert!(find("").is_none());
        assert!(find("کتاب").is_none());
    }
}
