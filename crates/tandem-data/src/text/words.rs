//! Splits normalised text into words, for the lexicon, the hook and the phonemiser.
//!
//! In: normalised text. Out: [`Sentence`]s that give the same text again if nothing was
//! changed. Marks and spaces stay with the word before them.

use super::symbols::ZWNJ;
use std::fmt;

/// A word and the characters between it and the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// Phonemes from the lexicon or the hook. Used where the language has phonemes.
    pub phonemes: Option<String>,
    /// Spaces and marks after it.
    pub tail: String,
}

/// Words up to the end of a sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentence {
    /// Marks before the first word.
    pub lead: String,
    pub words: Vec<Word>,
}

/// Splits normalised text.
pub fn sentences(normalized: &str) -> Vec<Sentence> {
    let mut done = Vec::new();
    let mut now = Sentence::default();
    let mut rest = normalized;
    while !rest.is_empty() {
        let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let gap = after.find(in_word).unwrap_or(after.len());
        let (tail, next) = after.split_at(gap);
        rest = next;
        if word.is_empty() {
            now.lead.push_str(tail);
        } else {
            now.words.push(Word { text: word.into(), phonemes: None, tail: tail.into() });
            if tail.contains(['.', '!', '?', '…']) {
                done.push(std::mem::take(&mut now));
            }
        }
    }
    if !now.words.is_empty() || !now.lead.is_empty() {
        done.push(now);
    }
    done
}

/// The characters of a word: letters, their marks, ZWNJ and the apostrophe of `it's`.
pub fn in_word(c: char) -> bool {
    c.is_alphabetic()
        || matches!(c, '\'' | ZWNJ)
        || unicode_normalization::char::is_combining_mark(c)
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lead)?;
        self.words.iter().try_for_each(|word| write!(f, "{}{}", word.text, word.tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sentences_end_at_their_marks() {
        let found = sentences("\"yes,\" he said. it's well-known… کتاب‌ها");
        let texts: Vec<_> = found.iter().map(Sentence::to_string).collect();
        assert_eq!(texts, ["\"yes,\" he said. ", "it's well-known… ", "کتاب‌ها"]);
        assert_eq!(found[0].lead, "\"");
        assert_eq!(found[1].words[1].tail, "-");
        assert_eq!(found[2].words[0].text, "کتاب‌ها");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn taking_apart_loses_nothing(text in "\\PC{0,60}") {
            let again: String = sentences(&text).iter().map(Sentence::to_string).collect();
            prop_assert_eq!(again, text);
        }
    }
}
