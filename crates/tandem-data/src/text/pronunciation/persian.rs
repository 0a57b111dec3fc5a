//! The phonemes of Persian words in their sentence.
//!
//! In: the words of a normalised sentence, and which one is meant. Out: its IPA with short vowels and,
//! where it is certain, the ezafe. The words are a list of our own (`persian.tsv`); forms of nouns
//! and verbs follow from it by rules. A word whose vowels are unknown gives nothing: it stays in characters.

mod list; // the words
mod verbs; // می‌کنم, نرفته, برگشتند
mod endings; // کتاب‌هایم, بزرگ‌تر, نادرست
mod ezafe; // کتابِ من

use super::super::words::Word;
use super::{Outcome, english};
use endings::find;
use list::Class;
use std::borrow::Cow;

/// Identifies the contents: part of the cache key.
pub fn fingerprint() -> u64 {
    xxhash_rust::xxh3::xxh3_64(list::FILE.as_bytes())
}

/// Appends the phonemes of a word.
pub fn read(words: &[Word], place: usize, out: &mut String) -> Outcome {
    let text = words[place].text.as_str();
    if text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return english::read(words, place, out);
    }
    let (bare, marked) = without_marks(text);
    if let Some(phonemes) = by_context(words, place, &bare) {
        out.push_str(phonemes);
        return Outcome::Known;
    }
    let Some(found) = find(&bare) else { return Outcome::Unknown };
    out.push_str(&found.phonemes);
    if marked || ezafe::follows(words, place, &found) {
        out.push_str(if found.phonemes.ends_with(['e', 'ɑ', 'u', 'o']) { "je" } else { "e" });
    }
    Outcome::Known
}

/// Whether the list and the rules have a word that is written without vowel signs.
pub fn is_known(word: &str) -> bool {
    find(word).is_some()
}

/// Words with two readings that their neighbours decide.
fn by_context(words: &[Word], place: usize, word: &str) -> Option<&'static str> {
    let before = || class_at(words, place.checked_sub(1)?);
    match word {
        "نه" if is_nine(words, place) => Some("noh"),
        // «سیصد گرم» is a weight, «آب گرم» is not.
        "گرم" if before() == Some(Class::Number) => Some("ɡeram"),
        _ => None,
    }
}

/// The class of a word of the sentence; none where it is unknown or there is none.
fn class_at(words: &[Word], place: usize) -> Option<Class> {
    Some(find(&without_marks(&words.get(place)?.text).0)?.class)
}

/// Without vowel signs, and whether a kasre at its end marks the ezafe.
fn without_marks(text: &str) -> (Cow<'_, str>, bool) {
    // Not the tanvin of «حتماً»: it is a part of the word.
    let is_mark = |c: char| matches!(c, '\u{64C}'..='\u{652}' | '\u{670}');
    if !text.contains(is_mark) {
        return (Cow::Borrowed(text), false);
    }
    let bare: String = text.chars().filter(|c| !is_mark(*c)).collect();
    (Cow::Owned(bare), text.ends_with('\u{650}'))
}

/// «نه» is nine beside numbers and before what is counted, and «no» otherwise.
fn is_nine(words: &[Word], place: usize) -> bool {
    let before = place.checked_sub(1).map_or("", |at| words[at].text.as_str());
    let class = |word: &str| find(word).map(|entry| entry.class);
    let next = words.get(place + 1).filter(|_| words[place].tail == " ");
    matches!(before, "ساعت" | "و" | "عدد" | "شماره" | "ممیز")
        || class(before) == Some(Class::Number)
        || next.is_some_and(|next| matches!(class(&next.text), Some(Class::Number | Class::Noun)))
}

#[cfg(test)]
mod spelling;
#[cfg(test)]
mod tests;
