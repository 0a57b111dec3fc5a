//! Fractions: `1/2`, `3/4ths`, `5 1/2`, `3½`, and other numbers with a slash: `24/7`, `2019/20`.
//!
//! In: a scan before a digit or after a whole number. Out: words, with the unit after them.

use super::super::numeral::{Groups, Numeral, vulgar};
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::measures::{Count, measure_after};
use super::numbers::{cardinal, fraction, ordinal, year};

/// Reads `3/4`, `24/7`, `2019/20`.
pub fn try_slashed(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let groups = Groups::parse(scan.rest(), '/');
    if groups.parts.len() < 2 || groups.widths().iter().any(|width| *width > 4) {
        return false;
    }
    scan.skip(groups.len);
    if let (2, Some(top), Some(bottom)) = (groups.parts.len(), groups.value(0), groups.value(1)) {
        let known = matches!((top, bottom), (24, 7) | (9, 11));
        // `50/50` and `20/20` are no fractions.
        if !known && top != bottom && (2..=1000).contains(&bottom) && top <= 1000 {
            let words = match take_suffix(scan) {
                true => parts_by_ordinal(top, bottom),
                false => fraction(top, bottom),
            };
            out.number(&words);
            measure_after(scan, out, Count::One);
            return true;
        }
    }
    let read: Vec<_> = groups.parts.iter().map(|part| date_part(part)).collect();
    out.number(&read.join(" "));
    true
}

fn date_part(digits: &str) -> String {
    match digits.parse() {
        Ok(value @ 1100..2100) => year(value),
        _ => cardinal(digits),
    }
}

/// `3/4ths`: the writer says which word is meant.
fn parts_by_ordinal(top: u32, bottom: u32) -> String {
    let plural = if top == 1 { "" } else { "s" };
    format!("{} {}{plural}", cardinal(&top.to_string()), ordinal(&bottom.to_string()))
}

fn take_suffix(scan: &mut Scan<'_>) -> bool {
    const SUFFIXES: [&str; 8] = ["th", "ths", "rd", "rds", "nd", "nds", "st", "sts"];
    let word = letters(scan.rest());
    let found = SUFFIXES.iter().any(|suffix| word.eq_ignore_ascii_case(suffix));
    if found {
        scan.skip(word.len());
    }
    found
}

/// A character such as `½`.
pub fn try_vulgar(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let Some(sign) = scan.peek() else { return false };
    let Some((top, bottom)) = vulgar(sign) else { return false };
    scan.skip_char(sign);
    out.number(&fraction(top, bottom));
    measure_after(scan, out, Count::One);
    true
}

/// `3½`, `1 1/2`, `5-1/2`: the scan is after the whole number.
pub fn try_mixed(scan: &mut Scan<'_>, out: &mut Spoken, numeral: &Numeral<'_>) -> bool {
    if !numeral.fraction.is_empty() {
        return false;
    }
    let rest = scan.rest();
    let spaced = rest.strip_prefix([' ', '-']).unwrap_or(rest);
    let gap = rest.len() - spaced.len();
    let first = spaced.chars().next();
    let (parts, len) = match first.and_then(vulgar) {
        Some(parts) => (parts, gap + first.map_or(0, char::len_utf8)),
        None => {
            let groups = Groups::parse(spaced, '/');
            match (groups.parts.len(), groups.value(0), groups.value(1)) {
                (2, Some(top), Some(bottom))
                    if gap == 1 && 0 < top && top < bottom && bottom <= 64 =>
                {
                    ((top, bottom), gap + groups.len)
                }
                _ => return false,
            }
        }
    };
    scan.skip(len);
    let part = match parts {
        (1, 2) => "a half".to_owned(),
        (1, 4) => "a quarter".to_owned(),
        (top, bottom) => fraction(top, bottom),
    };
    out.number(&format!("{} and {part}", cardinal(&numeral.whole)));
    measure_after(scan, out, Count::Many);
    true
}
