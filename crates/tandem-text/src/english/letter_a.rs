//! Whether a capital `A` is the letter: `Plan A failed`, `A and B`, but not `A plan failed`.
//!
//! In: a scan at the letter. Inside a sentence a capital `A` is the letter, unless a capital follows as in a title; there, and
//! at the start, the words around it decide.

use super::super::scan::{Scan, letters};

/// Whether the `A` at `scan` is said by its name; `after` is the scan after it.
pub fn is_letter(scan: &Scan<'_>, after: &Scan<'_>) -> bool {
    let rest = after.rest();
    let next = rest.chars().next();
    let joined = rest.starts_with("'s")
        || next.is_some_and(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '/' | '&'));
    if joined || scan.before().is_some_and(|c| matches!(c, '/' | '-' | '&')) {
        return true;
    }
    let before = scan.name_before();
    let begins = scan.mark_before().is_none_or(|c| !c.is_alphanumeric() && c != ',');
    if !begins && (is_cue(before) || is_determiner(before)) {
        return true;
    }
    let next_word = letters(rest.trim_start_matches(' '));
    if next_word.is_empty() {
        // `an A.`, `A, B and C`; `A "good" idea` is an article.
        return !rest.trim_start_matches(' ').starts_with(['"', '\'', '(', '$', '£', '€']);
    }
    if matches!(next_word, "and" | "or" | "to" | "through" | "versus" | "vs" | "plus" | "minus") {
        return begins || is_listed(rest) || starts_lower(next_word);
    }
    match begins {
        true => matches!(
            next_word,
            "is" | "was" | "has" | "stands" | "comes" | "means" | "equals" | "isn't" | "in" | "for"
        ),
        false => starts_lower(next_word),
    }
}

/// Whether a single capital follows the next word: `A and B`.
fn is_listed(rest: &str) -> bool {
    let mut words = rest.trim_start_matches(' ').split(' ');
    let second = words.nth(1).unwrap_or_default().trim_end_matches(['.', ',', '?', '!']);
    second.len() == 1 && second.starts_with(|c: char| c.is_ascii_uppercase())
}

fn starts_lower(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
}

/// No article can follow these.
fn is_determiner(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "a", "an", "the", "this", "that", "my", "your", "his", "her", "our", "their", "every",
        "each", "straight",
    ];
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// What letters are names of.
pub fn is_cue(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "plan",
        "vitamin",
        "vitamins",
        "grade",
        "type",
        "group",
        "team",
        "section",
        "class",
        "hepatitis",
        "level",
        "option",
        "exhibit",
        "appendix",
        "point",
        "side",
        "part",
        "series",
        "schedule",
        "letter",
        "factor",
        "phase",
        "category",
        "model",
        "block",
        "building",
        "gate",
        "platform",
        "terminal",
        "track",
        "zone",
        "room",
        "unit",
        "influenza",
        "company",
        "figure",
        "table",
        "variant",
        "division",
        "tier",
        "form",
        "list",
        "row",
        "column",
        "player",
        "subject",
        "witness",
        "patient",
        "case",
        "question",
        "answer",
        "exit",
        "version",
        "step",
        "sample",
        "test",
        "line",
        "route",
        "bus",
        "train",
        "key",
        "note",
        "string",
        "blood",
        "wing",
        "hall",
        "deck",
        "seat",
        "serie",
    ];
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
}
