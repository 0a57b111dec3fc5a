//! Phone numbers and other codes, digit by digit with a pause between groups.
//!
//! In: a scan before a digit, `+` or `(`. Out: words, if the groups of digits are those of a phone
//! number: `555-1234`, `(212) 555-0147`, `+44 20 7946 0958`, `020 7946 0958`, with an extension.

use super::super::numeral::digits;
use super::super::phone_groups::{PhoneGroups, Separation, is_international, is_national};
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::numbers::{cardinal, one_by_one};
use super::years::is_counted;

/// Reads the phone number that begins here.
pub fn try_phone(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let Some(found) = PhoneGroups::parse(scan.rest(), is_phone) else {
        return try_cued(scan, out);
    };
    scan.skip(found.len);
    if found.plus {
        out.number("plus");
    }
    let read: Vec<_> = found.parts.iter().map(|part| one_by_one(part)).collect();
    out.number(&read.join(", "));
    extension(scan, out);
    true
}

fn is_phone(separation: Separation, parts: &[&str]) -> bool {
    let widths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let american = widths == [3, 3, 4];
    match separation {
        Separation::Plus => is_international(parts),
        Separation::Brackets => {
            (8..=12).contains(&widths.iter().sum::<usize>()) && (2..=5).contains(&parts.len())
        }
        // A zip code of nine digits is read in the same way.
        Separation::Hyphens => {
            // A social security number is read in the same way, too.
            matches!(widths.as_slice(), [3, 4] | [3, 3, 4] | [5, 4] | [3, 2, 4])
                // No date or range has so many parts: an ISBN, a serial number, a bank card.
                || parts.len() >= 4
                || is_national(parts)
        }
        Separation::Spaces => american || widths == [4; 4] || is_national(parts),
        Separation::Dots => american,
        Separation::Mixed => false,
    }
}

/// `call 911`, `phone 2125550147`, `code 90210`: a word says what the digits are.
fn try_cued(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let found = digits(text);
    let cue = scan.name_before();
    let is_any = |list: &[&str]| list.iter().any(|known| cue.eq_ignore_ascii_case(known));
    let calls = is_any(&["call", "dial", "phone", "tel", "telephone", "fax", "ring"]);
    // `a card ending in 8876`
    let ending = matches!(cue, "in" | "with")
        && matches!(scan.before_text(20).split_whitespace().rev().nth(1), Some("ending" | "ends"));
    let codes = ending || is_any(&["code", "zip", "pin", "postcode", "otp", "passcode"]);
    if calls && let Some((parts, len)) = spaced_groups(text) {
        scan.skip(len);
        let read: Vec<_> = parts.into_iter().map(one_by_one).collect();
        out.number(&read.join(", "));
        return true;
    }
    let fits = match found.len() {
        3 => calls,
        4..=6 => codes,
        7..=12 => calls || codes,
        _ => false,
    };
    let mut after = *scan;
    after.skip(found.len());
    let marked = |c: char| c.is_alphanumeric() || matches!(c, '%' | '-' | '.' | ',' | ':' | '/');
    let next = after.rest();
    // The mark may end the sentence.
    let ends = |c: char| matches!(c, '.' | ',' | ':');
    let alone = || {
        !next.starts_with(marked)
            || next.strip_prefix(ends).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    if !fits || !alone() || is_counted(after.word_after()) {
        return false;
    }
    *scan = after;
    out.number(&one_by_one(found));
    true
}

/// `555 123 456`: groups of digits, as a country writes them, and their length with the spaces.
fn spaced_groups(text: &str) -> Option<(Vec<&str>, usize)> {
    let mut parts = Vec::new();
    let mut len = 0;
    loop {
        let found = digits(&text[len..]);
        if !(2..=4).contains(&found.len()) {
            return None;
        }
        parts.push(found);
        len += found.len();
        match text[len..].strip_prefix(' ').filter(|rest| !digits(rest).is_empty()) {
            Some(_) if parts.len() < 6 => len += 1,
            Some(_) => return None,
            None => break,
        }
    }
    let total: usize = parts.iter().map(|part| part.len()).sum();
    let ends = !text[len..]
        .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '%' | ':' | '/'));
    (parts.len() > 1 && (7..=12).contains(&total) && ends).then_some((parts, len))
}

/// `ext. 12` or `x12` after a number.
fn extension(scan: &mut Scan<'_>, out: &mut Spoken) {
    let rest = scan.rest();
    let text = rest.trim_start_matches([' ', ',']);
    let word = letters(text);
    if !matches!(word, "ext" | "Ext" | "extension" | "x") {
        return;
    }
    let number = text[word.len()..].trim_start_matches('.').trim_start_matches(' ');
    let found = digits(number);
    if !found.is_empty() {
        scan.skip(rest.len() - number.len() + found.len());
        out.close(',');
        out.number(&format!("extension {}", cardinal(found)));
    }
}
