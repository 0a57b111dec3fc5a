//! Letters or a word: `U C L A`, `NATO`.
//!
//! In: a word in capitals. Out: how it is said. The dictionary decides first; for others the weights of
//! `english.acronyms`, one per pair of letters, which `xtask/generators/train_acronyms.py` trains. Their sum is above zero for a word.

use super::super::pronunciation::{ListedAs, listed_english};

static FILE: &[u8] = include_bytes!("../../pronunciation/english.acronyms");

/// Magic of the file.
const HEAD: usize = 4;
/// Letters and the edge of a word.
const SIDE: usize = 27;
/// Shorter ones that no dictionary has are letters, longer ones are names in capitals.
const JUDGED: std::ops::RangeInclusive<usize> = 4..=6;

/// Sounds that are written in capitals, too.
const INTERJECTIONS: &[&str] = &[
    "HMM", "HM", "MM", "MMM", "SHH", "SH", "PSST", "PST", "TSK", "BRR", "GRR", "GRRR", "PFFT",
    "ZZZ", "UGH", "UH", "AHH", "AAH", "OOH", "EEK", "EW", "EWW", "AW", "AWW", "HAH", "HEH", "NAH",
    "YAY", "YEP", "YUP", "WOW", "OOPS",
];

/// Said as words, though the table takes them for letters.
const WORDS: &[&str] = &[
    "UEFA", "YAML", "TOML", "CAPTCHA", "NIMBY", "YOLO", "FOMO", "LIDAR", "NVIDIA", "CERN", "WASM",
    "IATA", "ICAO",
];

/// Words of two letters that are written in capitals for emphasis.
const TWO_LETTER_WORDS: &[&str] = &[
    "AM", "AN", "AS", "AT", "BE", "BY", "DO", "GO", "HE", "HI", "IF", "IN", "IS", "IT", "ME", "MY",
    "NO", "OF", "OH", "ON", "OR", "SO", "TO", "UP", "US", "WE", "MA", "PA", "AD", "OX", "AH", "EH",
    "HA", "HO", "YO", "LO", "AX",
];

/// Whether the letters of `word`, all capitals, are said one by one.
pub fn is_spelled(word: &str) -> bool {
    let capitals = word.len() >= 2 && word.bytes().all(|b| b.is_ascii_uppercase());
    if !capitals || is_interjection(word) {
        return false;
    }
    // `LA` and `ED` are in the dictionary, but hardly ever written so as words.
    if word.len() == 2 {
        return !TWO_LETTER_WORDS.contains(&word);
    }
    if WORDS.contains(&word) {
        return false;
    }
    let lower = word.to_ascii_lowercase();
    match listed_english(&lower) {
        Some(ListedAs::Letters) => true,
        Some(ListedAs::Word) => false,
        None if word.len() < *JUDGED.start() => true,
        None if JUDGED.contains(&word.len()) => !is_pronounceable(&lower),
        None => false,
    }
}

/// `the IT department`, `an IT job`: what is before and after `IT` shows that it is no pronoun.
pub fn is_information_technology(before: &str, after: &str) -> bool {
    const FIELDS: &[&str] = &[
        "department",
        "team",
        "guy",
        "support",
        "staff",
        "manager",
        "industry",
        "company",
        "companies",
        "professional",
        "professionals",
        "service",
        "services",
        "sector",
        "systems",
        "infrastructure",
        "job",
        "jobs",
        "skills",
        "project",
        "projects",
        "security",
        "consultant",
        "specialist",
        "budget",
        "equipment",
    ];
    FIELDS.contains(&after)
        || matches!(before, "the" | "The" | "an" | "An" | "our" | "my" | "your" | "their")
}

/// Whether `word` is a sound: `HMM`, `PSST`.
pub fn is_interjection(word: &str) -> bool {
    INTERJECTIONS.contains(&word)
}

/// Whether letters in lower case look like a word.
pub fn is_pronounceable(lower: &str) -> bool {
    let edge = std::iter::once(0);
    let numbers = lower.bytes().map(|b| usize::from(b.saturating_sub(b'a') + 1));
    let numbers: Vec<usize> = edge.clone().chain(numbers).chain(edge).collect();
    let weight = |pair: &[usize]| {
        FILE.get(HEAD + SIDE * pair[0] + pair[1]).map_or(0, |b| i32::from(b.cast_signed()))
    };
    numbers.windows(2).map(weight).sum::<i32>() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_weight_for_each_pair() {
        assert!(FILE.starts_with(b"ACR1"));
        assert_eq!(FILE.len(), HEAD + SIDE * SIDE);
    }

    #[test]
    fn acronyms_are_told_from_words() {
        for word in ["UCLA", "JSON", "AWS", "NY", "OMG", "DIY", "FAQ", "CNBC", "UTSA", "HTTPD"] {
            assert!(is_spelled(word), "{word}");
        }
        for word in [
            "NATO", "STOP", "NEVER", "HMM", "OPEC", "FIFA", "UNICEF", "BLARP", "HUAWEI", "Abc", "A",
        ] {
            assert!(!is_spelled(word), "{word}");
        }
    }
}
