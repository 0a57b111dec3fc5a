//! Compares the spelling of the listed words with their phonemes, so that a typing error in the list fails a test.
//!
//! Consonant letters have their consonants, in order and perhaps doubled. The letters ا و ی have a long vowel or a glide, ه
//! may be silent at the end. The vowels that are not written are /a/, /e/, /o/; a long one needs its letter.

use super::super::super::symbols::ZWNJ;
use super::SYMBOLS;
use super::list::{FILE, VOWELS, rows};

const CONSONANTS: [(&str, &str); 22] = [
    ("ب", "b"),
    ("پ", "p"),
    ("تط", "t"),
    ("ثسص", "s"),
    ("ج", "dʒ"),
    ("چ", "tʃ"),
    ("ح", "h"),
    ("خ", "x"),
    ("د", "d"),
    ("ذزضظ", "z"),
    ("ر", "r"),
    ("ژ", "ʒ"),
    ("ش", "ʃ"),
    ("غق", "q"),
    ("ف", "f"),
    ("ک", "k"),
    ("گ", "ɡ"),
    ("ل", "l"),
    ("م", "m"),
    ("ن", "n"),
    ("عئءأؤ", "ʔ"),
    ("\u{64B}", "n"),
];

/// Parts after which a compound has a new beginning: «سرانجام».
const FIRST_PARTS: [&str; 8] = ["بر", "سر", "از", "هم", "در", "باز", "بنابر", "ال"];

struct Match {
    letters: Vec<char>,
}

impl Match {
    /// Whether the letters from `at` can be said as `rest`. `last` is a consonant that may be doubled.
    fn agrees(&self, at: usize, rest: &str, last: &str) -> bool {
        if rest.strip_prefix(['a', 'e', 'o']).is_some_and(|rest| self.agrees(at, rest, "")) {
            return true;
        }
        if !last.is_empty() && rest.strip_prefix(last).is_some_and(|rest| self.agrees(at, rest, ""))
        {
            return true;
        }
        let Some(&letter) = self.letters.get(at) else { return rest.is_empty() };
        let says = |sounds: &[&str]| {
            sounds.iter().any(|sound| {
                rest.strip_prefix(sound).is_some_and(|rest| self.agrees(at + 1, rest, ""))
            })
        };
        let silent = |allowed: bool| allowed && self.agrees(at + 1, rest, last);
        match letter {
            ZWNJ => self.agrees(at + 1, rest, last),
            'آ' => says(&["ɑ", "ʔɑ"]),
            'ا' => {
                let tanvin = at + 1 == self.letters.len() && rest == "n";
                says(&["ɑ", "ʔ", "ʔɑ"])
                    || tanvin
                    || silent(self.begins(at) || self.next_is(at, &['ل', '\u{64B}']))
            }
            'و' => {
                says(&["w", "u", "o", "ʔ", "uv"])
                    || self.consonant(at, rest, "v")
                    || silent(self.after(at, 'خ'))
            }
            'ی' => {
                says(&["i", "ij", "ijj", "ʔ"])
                    || self.consonant(at, rest, "j")
                    || (self.ends(at) && says(&["ɑ"]))
            }
            'ه' => self.consonant(at, rest, "h") || silent(self.ends(at)),
            'ل' if at > 1 && self.after(at, 'ا') && silent(true) => true,
            _ => {
                let found = CONSONANTS.iter().find(|(letters, _)| letters.contains(letter));
                let known = found.is_some_and(|(_, sound)| self.consonant(at, rest, sound));
                known || silent(letter == 'ع' && self.begins(at))
            }
        }
    }

    /// The letter is this consonant.
    fn consonant(&self, at: usize, rest: &str, sound: &str) -> bool {
        rest.strip_prefix(sound).is_some_and(|rest| self.agrees(at + 1, rest, sound))
    }

    fn begins(&self, at: usize) -> bool {
        let before: String = self.letters[..at].iter().collect();
        before.is_empty() || before.ends_with(ZWNJ) || FIRST_PARTS.contains(&before.as_str())
    }

    fn ends(&self, at: usize) -> bool {
        self.letters.get(at + 1).is_none_or(|next| *next == ZWNJ)
    }

    fn after(&self, at: usize, letter: char) -> bool {
        at > 0 && self.letters[at - 1] == letter
    }

    fn next_is(&self, at: usize, letters: &[char]) -> bool {
        self.letters.get(at + 1).is_some_and(|next| letters.contains(next))
    }
}

fn fault(word: &str, phonemes: &str) -> Option<&'static str> {
    // An alef that is not written in Arabic words.
    let written = word.replace("الله", "اللاه");
    let written = match word {
        "الهی" => "الاهی",
        "الهه" => "الاهه",
        _ => written.as_str(),
    };
    let letters = Match { letters: written.chars().collect() };
    if !letters.agrees(0, phonemes, "") {
        return Some("spelling and phonemes do not agree");
    }
    let single = phonemes.replace("tʃ", "c").replace("dʒ", "c");
    let is_vowel: Vec<bool> = single.chars().map(|c| VOWELS.contains(&c)).collect();
    if is_vowel.starts_with(&[false, false]) {
        return Some("two consonants at the beginning");
    }
    if is_vowel.windows(2).any(|pair| pair == [true, true]) {
        return Some("two vowels in a row");
    }
    is_vowel.windows(4).any(|four| four == [false; 4]).then_some("four consonants in a row")
}

#[test]
fn the_spelling_of_every_word_agrees_with_its_phonemes() {
    let faults: Vec<_> = rows()
        .filter_map(|(word, said, _)| Some(format!("{word} {said}: {}", fault(word, said)?)))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_typing_error_is_found() {
    for (word, wrong) in [
        ("کتاب", "ketɑp"),
        ("کتاب", "ketab"),
        ("کتاب", "ktɑb"),
        ("دولت", "dolɑt"),
        ("شهر", "ʃah"),
        ("شهر", "ʃahrn"),
        ("خانه", "xɑni"),
        ("سلام", "slɑm"),
    ] {
        assert!(fault(word, wrong).is_some(), "{word} {wrong}");
    }
}

#[test]
fn every_row_has_a_known_class_and_only_one_line() {
    let classes = [
        "noun",
        "adjective",
        "name",
        "pronoun",
        "preposition",
        "verb",
        "number",
        "other",
        "present",
        "past",
        "closed",
    ];
    let mut seen = std::collections::HashSet::new();
    for line in FILE.lines().filter(|line| !line.starts_with('#')) {
        assert_eq!(line.split('\t').count(), 3, "{line}");
    }
    for (word, said, class) in rows() {
        assert!(classes.contains(&class), "{word}: class {class}");
        let stem = if matches!(class, "present" | "past") { class } else { "word" };
        assert!(seen.insert((word, stem)), "{word} is listed twice");
        assert!(said.chars().all(|c| SYMBOLS.contains(c)), "{word} {said}");
    }
    assert!(seen.len() > 5_000, "{}", seen.len());
}
