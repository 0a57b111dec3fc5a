//! A sentence in the parts that can have an ezafe: words, and the members of a compound with a ZWNJ.
//!
//! In: the words of a sentence. Out: parts with their entries and classes. «کتاب‌هایم» is one part, «تیم‌ملی» has two. Next:
//! [`super::tagger`] and [`super::homographs`].

use super::super::super::symbols::ZWNJ;
use super::super::super::words::Word;
use super::endings::{self, find};
use super::list::{self, Class, Entry};
use super::tagger::Part;
use super::{homographs, verbs, without_marks};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

/// A part of a sentence.
#[derive(Clone, Debug)]
pub struct Piece<'a> {
    /// Which word of the sentence it belongs to.
    pub word: usize,
    /// Without vowel signs.
    pub text: Cow<'a, str>,
    pub entry: Option<Entry>,
    /// An ezafe is written with a vowel sign.
    pub kasre: bool,
    /// A written fathe at the end: «وَ».
    pub fathe: bool,
    /// As in [`Part::after`].
    pub after: &'static str,
}

impl Piece<'_> {
    pub fn is_latin(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_lowercase())
    }

    pub fn class(&self) -> Option<Class> {
        self.entry.as_ref().map(|entry| entry.class)
    }

    /// What the tagger sees.
    pub fn part(&self) -> Part {
        let sounds = self.entry.as_ref().map_or("", |entry| entry.phonemes.as_ref());
        let start = sounds.char_indices().rev().nth(1).map_or(0, |(at, _)| at);
        Part {
            text: self.text.to_string(),
            class: self.class_name(),
            sounds: sounds[start..].to_owned(),
            after: self.after,
        }
    }

    fn class_name(&self) -> String {
        let Some(entry) = &self.entry else {
            let last = self.text.chars().next_back();
            return if self.is_latin() { "L".into() } else { format!("?{}", last.unwrap_or('#')) };
        };
        match entry.class {
            Class::Closed if entry.phonemes.ends_with("je") => "Z".to_owned(),
            class => class.letter().to_owned(),
        }
    }
}

/// The parts of a sentence, in order.
pub fn of(words: &[Word]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::with_capacity(words.len() + 2);
    for (place, word) in words.iter().enumerate() {
        let (bare, sign) = without_marks(&word.text);
        let after = match word.tail.as_str() {
            _ if place + 1 == words.len() => "x",
            " " => "s",
            "-" => "j",
            _ => "b",
        };
        let (kasre, fathe) = (sign == Some('\u{650}'), sign == Some('\u{64E}'));
        let whole = |text| Piece { word: place, text, entry: None, kasre, fathe, after };
        let members = match bare.contains(ZWNJ) {
            true => members(&bare),
            false => Vec::new(),
        };
        if members.len() < 2 {
            let mut piece = whole(bare);
            piece.entry = entry(&piece.text).filter(|_| !piece.is_latin());
            pieces.push(piece);
            continue;
        }
        let last = members.len() - 1;
        for (number, member) in members.into_iter().enumerate() {
            let mut piece = whole(Cow::Owned(member));
            if number < last {
                (piece.kasre, piece.fathe, piece.after) = (false, false, "j");
            }
            piece.entry = entry(&piece.text);
            pieces.push(piece);
        }
    }
    pieces
}

/// Words that a thread remembers: the same ones are found again and again.
const REMEMBERED: usize = 1 << 14;

thread_local! {
    static FOUND: RefCell<HashMap<String, Option<Entry>>> = RefCell::default();
}

fn entry(text: &str) -> Option<Entry> {
    FOUND.with_borrow_mut(|found| {
        if let Some(known) = found.get(text) {
            return known.clone();
        }
        let entry = find(text).or_else(|| homographs::usual(text));
        if found.len() == REMEMBERED {
            found.clear();
        }
        found.insert(text.to_owned(), entry.clone());
        entry
    })
}

/// The members of a compound. Listed words, verbs, and endings and prefixes with their stem are one.
fn members(word: &str) -> Vec<String> {
    let mut members: Vec<String> = Vec::new();
    let mut rest = word;
    while let Some((stem, ending)) = rest.rsplit_once(ZWNJ) {
        let one = list::word(rest).is_some()
            || verbs::find(rest).is_some()
            || endings::is_ending(ending)
            || endings::is_prefix(stem);
        if one {
            break;
        }
        members.push(ending.to_owned());
        rest = stem;
    }
    // «جنگ‌جهانی‌ها»: only the last member has the ending.
    if let Some((stem, ending)) = rest.rsplit_once(ZWNJ).filter(|(stem, ending)| {
        stem.contains(ZWNJ) && endings::is_ending(ending) && list::word(stem).is_none()
    }) && let Some((first, second)) = stem.rsplit_once(ZWNJ)
        && verbs::find(rest).is_none()
        && !endings::is_ending(second)
        && !endings::is_prefix(first)
    {
        members.push(format!("{second}{ZWNJ}{ending}"));
        rest = first;
    }
    members.push(rest.to_owned());
    members.reverse();
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compounds_have_members_and_endings_stay() {
        for (word, found) in [
            ("تیم\u{200C}ملی", vec!["تیم", "ملی"]),
            ("کتاب\u{200C}هایم", vec!["کتاب\u{200C}هایم"]),
            ("می\u{200C}روم", vec!["می\u{200C}روم"]),
            ("اختلاف\u{200C}نظر\u{200C}ها", vec!["اختلاف", "نظر\u{200C}ها"]),
            ("بی\u{200C}خبر", vec!["بی\u{200C}خبر"]),
        ] {
            assert_eq!(members(word), found, "{word}");
        }
    }
}
