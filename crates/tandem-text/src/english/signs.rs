//! Single signs and Greek letters as words.
//!
//! In: a sign, or a scan at one. Out: what is said of it. Signs of numbers and money are read before.

use super::super::scan::{self, Scan};
use super::units;

/// What is said of a sign by itself.
pub fn spoken_sign(sign: char) -> Option<&'static str> {
    Some(match sign {
        '&' => "and",
        '@' => "at",
        '#' => "hash",
        '+' => "plus",
        '=' => "equals",
        '%' => "percent",
        '/' => "slash",
        '~' | '≈' => "about",
        '×' => "times",
        '÷' => "divided by",
        '±' => "plus or minus",
        '§' => "section",
        '<' => "less than",
        '>' => "greater than",
        '≤' => "less than or equal to",
        '≥' => "greater than or equal to",
        '≠' => "not equal to",
        '‰' => "per mille",
        '°' => "degrees",
        '√' => "the square root of",
        '∞' => "infinity",
        '_' => "underscore",
        '\\' => "backslash",
        _ => return units::currency(sign).map(|kind| kind.one),
    })
}

/// The name of a letter of formulas, small or capital.
pub fn greek(letter: char) -> Option<&'static str> {
    if letter.is_ascii() {
        return None;
    }
    Some(match letter.to_lowercase().next()? {
        'α' => "alpha",
        'β' => "beta",
        'γ' => "gamma",
        'δ' => "delta",
        'ε' => "epsilon",
        'θ' => "theta",
        'λ' => "lambda",
        'μ' | 'µ' => "mu",
        'π' => "pi",
        'ρ' => "rho",
        'σ' | 'ς' => "sigma",
        'τ' => "tau",
        'φ' => "phi",
        'ψ' => "psi",
        'ω' => "omega",
        _ => return None,
    })
}

/// `and/or`, `he/she`, `TCP/IP`: a slash that is not said. It is in `actor/director`.
pub fn is_silent_slash(scan: &Scan<'_>) -> bool {
    let (first, second) = (scan.word_before(), scan::letters(&scan.rest()[1..]));
    let capitals = |word: &str| word.bytes().all(|b| b.is_ascii_uppercase());
    let pair = |word: &str| {
        matches!(
            word,
            "or" | "both" | "he" | "she" | "his" | "her" | "him" | "hers" | "they" | "them"
        )
    };
    let letters = first.len() == 1 && second.len() == 1;
    letters || capitals(first) && capitals(second) || pair(second) || first == "or"
}
