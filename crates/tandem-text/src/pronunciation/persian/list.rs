//! The list of Persian words, and what its classes mean.
//!
//! In: the file `persian.tsv`, a part of the program. Out: phonemes and class of a word or stem as it is listed. The
//! list is read at the first Persian text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

pub static FILE: &str = include_str!("../../../pronunciation/persian.tsv");

pub const VOWELS: [char; 6] = ['ɑ', 'a', 'e', 'i', 'o', 'u'];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Noun,
    Adjective,
    /// A person, a place, a product.
    Name,
    /// A noun can have it: «کتابِ من».
    Pronoun,
    /// With ezafe before its noun: «زیرِ».
    Preposition,
    Verb,
    Number,
    Other,
    /// With its ezafe or ending: nothing can follow.
    Closed,
}

impl Class {
    /// As the tagger and the cues of homographs name it.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Noun => "N",
            Self::Adjective => "A",
            Self::Name => "M",
            Self::Pronoun => "P",
            Self::Preposition => "R",
            Self::Verb => "V",
            Self::Number => "D",
            Self::Other => "O",
            Self::Closed => "X",
        }
    }

    /// Whether plural and possessive endings can follow.
    pub fn is_noun(self) -> bool {
        matches!(self, Self::Noun | Self::Name)
    }
}

/// A word that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub phonemes: Cow<'static, str>,
    pub class: Class,
}

impl Entry {
    pub fn new(phonemes: impl Into<Cow<'static, str>>, class: Class) -> Self {
        Self { phonemes: phonemes.into(), class }
    }

    pub fn ends_in_vowel(&self) -> bool {
        self.phonemes.ends_with(VOWELS)
    }
}

/// The rows of the file: word, phonemes, name of the class.
pub fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    FILE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut columns = line.split('\t');
        Some((columns.next()?, columns.next()?, columns.next()?))
    })
}

struct List {
    words: HashMap<&'static str, (&'static str, Class)>,
    present: HashMap<&'static str, &'static str>,
    past: HashMap<&'static str, &'static str>,
}

static LIST: LazyLock<List> = LazyLock::new(|| {
    let (mut words, mut present, mut past) =
        (HashMap::with_capacity(8192), HashMap::new(), HashMap::new());
    for (word, phonemes, class) in rows() {
        let class = match class {
            "preposition" if phonemes.ends_with("je") => Class::Closed,
            "present" => {
                present.insert(word, phonemes);
                continue;
            }
            "past" => {
                past.insert(word, phonemes);
                continue;
            }
            name => class_of(name),
        };
        words.insert(word, (phonemes, class));
    }
    List { words, present, past }
});

/// The class of this name.
pub fn class_of(name: &str) -> Class {
    match name {
        "noun" => Class::Noun,
        "adjective" => Class::Adjective,
        "name" => Class::Name,
        "pronoun" => Class::Pronoun,
        "preposition" => Class::Preposition,
        "verb" => Class::Verb,
        "number" => Class::Number,
        "closed" => Class::Closed,
        _ => Class::Other,
    }
}

/// A word as it is listed.
pub fn word(text: &str) -> Option<Entry> {
    LIST.words.get(text).map(|(phonemes, class)| Entry::new(*phonemes, *class))
}

/// The phonemes of a present stem: «کن», «رو», «گو».
pub fn present(stem: &str) -> Option<&'static str> {
    LIST.present.get(stem).copied()
}

/// The phonemes of a past stem: «کرد», «رفت», «گفت».
pub fn past(stem: &str) -> Option<&'static str> {
    LIST.past.get(stem).copied()
}
