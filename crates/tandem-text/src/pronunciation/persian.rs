//! The phonemes of Persian words in their sentence.
//!
//! In: the words of a normalised sentence. Out: for each its IPA with short vowels and the ezafe. Words come from a list of
//! our own (`persian.tsv`), from the training data (`persian.model`), from rules for the forms of nouns and verbs, and
//! from a letter-to-sound model for all others; neighbours decide words with several readings. Next: [`super::read`].

mod list; // the words
mod verbs; // می‌کنم, نرفته, برگشتند
mod endings; // کتاب‌هایم, بزرگ‌تر, نادرست
mod model; // the trained tables
mod letters_to_sound; // unknown words
mod parts; // a sentence in parts, with classes
mod tagger; // کتابِ من
mod homographs; // مرد, گل, نه: by their sentence
mod conjunction; // «و» as /o/

use super::super::words::Word;
use super::{Outcome, english};
use crate::persian::is_month;
use parts::Piece;
use std::borrow::Cow;

pub use homographs::HomographSight;
pub use model::replace as replace_model;
pub use tagger::Part;
/// Every symbol of the list; affricates are two.
pub const SYMBOLS: &str = "ɑaeoiubptszhxdrʒfqkɡlmnvjʃʔw";

/// Identifies the contents: part of the cache key.
pub fn fingerprint() -> u64 {
    xxhash_rust::xxh3::xxh3_64(list::FILE.as_bytes())
        ^ homographs::fingerprint()
        ^ model::fingerprint()
}

/// A word of a sentence as it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub phonemes: String,
    pub(super) outcome: Outcome,
    /// The ezafe is said, and is not written.
    pub ezafe: bool,
}

/// The phonemes of all words of a sentence.
pub fn read(words: &[Word]) -> Vec<Said> {
    let pieces = parts::of(words);
    let parts: Vec<_> = pieces.iter().map(Piece::part).collect();
    let tags = tagger::tag(&parts);
    let nothing = || Said { phonemes: String::new(), outcome: Outcome::Known, ezafe: false };
    let mut said: Vec<Said> = words.iter().map(|_| nothing()).collect();
    for (place, piece) in pieces.iter().enumerate() {
        let out = &mut said[piece.word];
        if piece.is_latin() {
            out.outcome = english::read(words, piece.word, &mut out.phonemes);
            continue;
        }
        let (phonemes, guessed) = part_phonemes(&pieces, &tags, place);
        if guessed {
            out.outcome = Outcome::Guessed;
        }
        let written = piece.text.ends_with('ی') && phonemes.ends_with("je");
        out.phonemes.push_str(&phonemes);
        let dated = is_day_of_month(piece, pieces.get(place + 1));
        if (tags[place] || piece.kasre || dated) && !written {
            let after_vowel = phonemes.ends_with(['e', 'a', 'ɑ', 'u', 'o']);
            out.phonemes.push_str(if after_vowel { "je" } else { "e" });
            out.ezafe = true;
        }
    }
    said
}

/// «دوازدهم مرداد»: the day always has an ezafe before its month.
fn is_day_of_month(piece: &Piece, next: Option<&Piece>) -> bool {
    const LAST_WORDS: &str = "اول یکم دوم سوم چهارم پنجم ششم هفتم هشتم نهم دهم یازدهم دوازدهم سیزدهم چهاردهم \
        پانزدهم شانزدهم هفدهم هجدهم نوزدهم بیستم ام";
    let is_day = LAST_WORDS.split_whitespace().any(|word| word == piece.text);
    is_day && piece.part().after == "s" && next.is_some_and(|next| is_month(&next.text))
}

/// The phonemes of a part without ezafe, and whether they are a guess.
fn part_phonemes(pieces: &[Piece], tags: &[bool], place: usize) -> (Cow<'static, str>, bool) {
    let piece = &pieces[place];
    if let Some(said) = conjunction::read(pieces, place) {
        return (said.into(), false);
    }
    if let Some(said) = homographs::read(pieces, tags, place) {
        return (said, false);
    }
    match (model::get().word(&piece.text), &piece.entry) {
        (Some(said), _) => (said.into(), false),
        (None, Some(entry)) => (entry.phonemes.clone(), false),
        (None, None) => endings::guess(&piece.text),
    }
}

/// What the trained models see of a text: the parts of each sentence. For the script that trains them.
pub fn parts_of(words: &[Word]) -> Vec<(tagger::Part, Option<String>)> {
    let pieces = parts::of(words);
    let listed = |piece: &Piece| piece.entry.as_ref().map(|entry| entry.phonemes.to_string());
    pieces.iter().map(|piece| (piece.part(), listed(piece))).collect()
}

/// What the model of the ezafe says of each part.
pub fn tags_of(words: &[Word]) -> Vec<bool> {
    let parts: Vec<_> = parts::of(words).iter().map(Piece::part).collect();
    tagger::tag(&parts)
}

/// Words with several readings, and what the trained weights see of them. For the same script.
pub fn homographs_of(words: &[Word]) -> Vec<homographs::HomographSight> {
    let pieces = parts::of(words);
    let parts: Vec<_> = pieces.iter().map(Piece::part).collect();
    homographs::sights(&pieces, &tagger::tag(&parts))
}

/// Whether an ezafe can be written after a word with a kasre: not after a Latin one.
pub fn is_persian(word: &str) -> bool {
    !word.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Without vowel signs, and the last of them, if it ends the word.
fn without_marks(text: &str) -> (Cow<'_, str>, Option<char>) {
    // Not the tanvin of «حتماً»: it is a part of the word.
    let is_mark = |c: char| matches!(c, '\u{64C}'..='\u{652}' | '\u{670}');
    if !text.contains(is_mark) {
        return (Cow::Borrowed(text), None);
    }
    let bare: String = text.chars().filter(|c| !is_mark(*c)).collect();
    (Cow::Owned(bare), text.chars().next_back().filter(|c| is_mark(*c)))
}

#[cfg(test)]
mod spelling;
#[cfg(test)]
mod tests;
