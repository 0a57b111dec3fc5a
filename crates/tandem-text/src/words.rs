//! Splits normalised text into words, for the lexicon, the hook and the phonemiser.
//!
//! In: normalised text. Out: [`Sentence`]s that give the same text again if nothing was
//! changed. Marks and spaces stay with the word before them.
//!
//! Normalised text may have invisible marks, which raw text cannot contain: [`SPELLED`] after a letter that is said by its
//! name, and phonemes between [`PHONEMES_BEGIN`] and [`PHONEMES_END`]. They end here; [`without_marks`] is the text for people.

use super::symbols::ZWNJ;
use std::borrow::Cow;
use std::fmt;

/// After a letter that is said by its name: the `A` of `Plan A`, not the article.
pub const SPELLED: char = '\u{2063}';
/// Before and after phonemes that the text gives: `[HH AH0 L OW1]`.
pub const PHONEMES_BEGIN: char = '\u{2061}';
pub const PHONEMES_END: char = '\u{2062}';

/// A word and the characters between it and the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// Phonemes from the lexicon or the hook. Used where the language has phonemes.
    pub phonemes: Option<String>,
    /// A letter that is said by its name.
    pub spelled: bool,
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
            now.words.push(Word::of(word, tail));
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

impl Word {
    /// A word as normalisation wrote it, perhaps with marks.
    fn of(word: &str, tail: &str) -> Self {
        let inside =
            word.strip_prefix(PHONEMES_BEGIN).and_then(|rest| rest.strip_suffix(PHONEMES_END));
        let spelled = word.contains(SPELLED);
        let phonemes = inside.map(str::to_owned);
        Self { text: without_marks(word).into_owned(), phonemes, spelled, tail: tail.into() }
    }
}

/// Normalised text without its invisible marks.
pub fn without_marks(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.contains(is_invisible_mark) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_invisible_mark(*c)).collect())
}

fn is_invisible_mark(c: char) -> bool {
    matches!(c, SPELLED | PHONEMES_BEGIN | PHONEMES_END)
}

/// The characters of a word: letters, their marks, ZWNJ and the apostrophe of `it's`.
pub fn in_word(c: char) -> bool {
    c.is_alphabetic()
        || matches!(c, '\'' | ZWNJ | SPELLED | PHONEMES_BEGIN | PHONEMES_END)
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

    #[test]
    fn marks_become_facts_about_words() {
        let found = sentences("plan a\u{2063}: \u{2061}həlˈoʊ\u{2062}, d\u{2063}'s");
        let words = &found[0].words;
        let texts: Vec<_> = words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, ["plan", "a", "həlˈoʊ", "d's"]);
        assert_eq!(
            words.iter().map(|word| word.spelled).collect::<Vec<_>>(),
            [false, true, false, true]
        );
        assert_eq!(words[2].phonemes.as_deref(), Some("həlˈoʊ"));
        assert_eq!(found[0].to_string(), "plan a: həlˈoʊ, d's");
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
