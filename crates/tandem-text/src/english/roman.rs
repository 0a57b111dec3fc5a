//! Roman numerals: `Henry VIII`, `Chapter IV`, `World War II`, `the XXI century`.
//!
//! In: a word and the words around it. Out: number words, if the word is a numeral there. A single
//! `V` or `X` after another name stays a letter: `Malcolm X`.

use super::super::roman_numeral::value;
use super::super::scan::{Scan, letters};
use super::numbers;

/// The reading of `word`, at which `scan` is, if it is a numeral here.
pub fn reading(word: &str, scan: &Scan<'_>) -> Option<String> {
    let value = value(word)?;
    let digits = value.to_string();
    let after = &scan.rest()[word.len()..];
    let before = scan.name_before();
    let counted = counts_in_roman(before) || scan.mark_before() == Some('§');
    if counted && (word != "I" || is_name_end(after)) {
        return Some(numbers::cardinal(&digits));
    }
    // `MMXX`, `MCMXC`: no word of so many letters is written by these rules.
    if word.len() >= 4 && word.bytes().all(|b| b.is_ascii_uppercase()) && value > 39 {
        return Some(match value {
            1100..2100 => numbers::year(value),
            _ => numbers::cardinal(&digits),
        });
    }
    // Lower case and long numerals are words too often: `mix`, `vi`, `CD`.
    if !word.bytes().all(|b| matches!(b, b'I' | b'V' | b'X')) || value > 39 {
        return None;
    }
    let next = letters(after.trim_start_matches(' '));
    if value > 1 && matches!(next.to_ascii_lowercase().as_str(), "century" | "centuries") {
        return Some(numbers::ordinal(&digits));
    }
    // The initial of `John V. Smith`.
    if word.len() == 1 && after.starts_with('.') {
        return None;
    }
    let ruler = scan.names_before(3).any(is_regnal);
    if ruler && (word != "I" || is_name_end(after)) {
        return Some(format!("the {}", numbers::ordinal(&digits)));
    }
    let long = word.len() >= 3 && word != "XXX";
    let title = word.len() > 1 && (long || before.starts_with(|c: char| c.is_ascii_uppercase()));
    title.then(|| numbers::cardinal(&digits))
}

/// Whether a name may end before `after`: the pronoun `I` is followed by a verb.
fn is_name_end(after: &str) -> bool {
    let next = letters(after.trim_start_matches(' '));
    let ends = next.is_empty() || after.starts_with('\'');
    ends || matches!(next, "of" | "was" | "and" | "is" | "died" | "ruled" | "reigned" | "in")
}

/// Words that are followed by a numeral read as a plain number: `Chapter IV`.
pub fn counts_in_roman(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "chapter", "part", "volume", "vol", "act", "scene", "book", "section", "article",
        "appendix", "war", "type", "phase", "stage", "level", "grade", "class", "bowl", "title",
        "episode", "canto", "table", "figure", "fig", "chap", "psalm", "mark", "apollo",
        "division", "tier", "unit", "group",
    ];
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Names of rulers and popes: `Henry VIII` is `henry the eighth`.
fn is_regnal(word: &str) -> bool {
    const NAMES: &[&str] = &[
        "Henry",
        "Louis",
        "George",
        "Edward",
        "Charles",
        "Richard",
        "James",
        "William",
        "Elizabeth",
        "Philip",
        "Frederick",
        "Francis",
        "Napoleon",
        "Alexander",
        "Nicholas",
        "Peter",
        "Catherine",
        "Paul",
        "John",
        "Pius",
        "Benedict",
        "Leo",
        "Gregory",
        "Clement",
        "Innocent",
        "Otto",
        "Leopold",
        "Albert",
        "Gustav",
        "Darius",
        "Xerxes",
        "Ramses",
        "King",
        "Queen",
        "Pope",
        "Cyrus",
        "Mary",
        "Ivan",
        "Wilhelm",
        "Victor",
        "Mehmed",
        "Murad",
        "Selim",
        "Artaxerxes",
        "Shapur",
        "Khosrow",
        "Robert",
        "Thomas",
        "David",
        "Michael",
        "Joseph",
        "Urban",
        "Boniface",
        "Ferdinand",
        "Alfonso",
        "Margrethe",
        "Harald",
        "Olaf",
        "Christian",
        "Carl",
        "Karl",
        "Juan",
        "Pedro",
        "Maximilian",
    ];
    NAMES.iter().any(|known| word.eq_ignore_ascii_case(known))
}
