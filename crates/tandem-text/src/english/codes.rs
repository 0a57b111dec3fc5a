//! Numbers that are names: `10.0.0.1`, `401(k)`, `1-800-FLOWERS`, `XJ9-441-B`, `v1.2`.
//!
//! In: a scan before a digit or a word. Out: letters by their names, digits one by one or in groups.

use super::super::numeral::{Groups, digits};
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::acronyms;
use super::numbers::{cardinal, one_by_one};
use super::units::unit;
use std::ops::RangeInclusive;

/// Codes of other lengths are words or numbers.
const CODE: RangeInclusive<usize> = 5..=40;

/// `192.168.0.1`, perhaps with `:8080` or `/24`.
pub fn try_ip(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let groups = Groups::parse(text, '.');
    let version = matches!(
        scan.name_before().to_ascii_lowercase().as_str(),
        "version" | "release" | "v" | "build"
    );
    if groups.parts.len() != 4 || groups.widths().iter().any(|width| *width > 3) || version {
        return false;
    }
    scan.skip(groups.len);
    let words: Vec<String> = groups.parts.iter().map(|part| one_by_one(part)).collect();
    out.number(&words.join(" dot "));
    for (mark, name) in [(':', "port"), ('/', "slash")] {
        let Some(number) =
            scan.rest().strip_prefix(mark).map(digits).filter(|number| !number.is_empty())
        else {
            continue;
        };
        scan.skip(1 + number.len());
        let words = if mark == ':' { one_by_one(number) } else { cardinal(number) };
        out.number(&format!("{name} {words}"));
    }
    true
}

/// `401(k)`, `501(c)(3)`: the number in pairs, then what is in the brackets.
pub fn try_paragraph(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let number = digits(text);
    let Some((first, mut len)) = bracketed(&text[number.len()..]) else { return false };
    let is_letter = first.bytes().all(|b| b.is_ascii_lowercase());
    if !(2..=4).contains(&number.len()) || number.starts_with('0') || !is_letter {
        return false;
    }
    let mut parts = vec![first];
    while let Some((part, more)) =
        bracketed(&text[number.len() + len..]).filter(|_| parts.len() < 4)
    {
        parts.push(part);
        len += more;
    }
    let after = &text[number.len() + len..];
    let plural = letters(after) == "s";
    if !plural && after.starts_with(|c: char| c.is_alphanumeric()) {
        return false;
    }
    scan.skip(number.len() + len + usize::from(plural));
    out.number(&in_pairs(number));
    for part in parts {
        match part.as_bytes() {
            [letter @ b'a'..=b'z'] => {
                out.apart();
                out.letter(char::from(*letter));
                out.end_number();
            }
            _ => out.number(&cardinal(part)),
        }
    }
    if plural {
        out.letters().push_str("'s");
    }
    true
}

/// One letter or up to two digits in brackets, and its length with them.
fn bracketed(text: &str) -> Option<(&str, usize)> {
    let inside = text.strip_prefix('(')?;
    let number = digits(inside);
    let part = if number.is_empty() { inside.get(..1)? } else { number };
    let fits =
        part.len() <= 2 && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    (fits && inside[part.len()..].starts_with(')')).then_some((part, part.len() + 2))
}

/// `401` -> `four oh one`, `529` -> `five twenty-nine`, `1031` -> `ten thirty-one`.
fn in_pairs(number: &str) -> String {
    if number.len() < 3 {
        return cardinal(number);
    }
    let (head, tail) = number.split_at(number.len() - 2);
    match tail {
        "00" => format!("{} hundred", cardinal(head)),
        _ if tail.starts_with('0') => format!("{} oh {}", cardinal(head), cardinal(tail)),
        _ => format!("{} {}", cardinal(head), cardinal(tail)),
    }
}

/// `1-800-GO-U-HAUL`, `1-800-FLOWERS`, `555-CALL-NOW`: groups of capitals in a phone number.
pub fn try_phone_word(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let token = token(scan.rest());
    let token = token.trim_end_matches('-');
    let parts: Vec<&str> = token.split('-').collect();
    let is_number = |part: &&str| part.bytes().all(|b| b.is_ascii_digit()) && part.len() <= 4;
    let is_word = |part: &&str| part.bytes().all(|b| b.is_ascii_uppercase()) && part.len() <= 10;
    let lead = parts.iter().take_while(|part| !part.is_empty() && is_number(part)).count();
    let rest = &parts[lead..];
    let area = parts.iter().take(lead).any(|part| part.len() == 3);
    let total: usize = rest.iter().map(|part| part.len()).sum();
    let mixed = rest.iter().all(|part| !part.is_empty() && (is_word(part) || is_number(part)));
    if lead == 0 || !area || rest.is_empty() || !mixed || !(4..=12).contains(&total) {
        return false;
    }
    scan.skip(token.len());
    for (place, part) in parts.iter().enumerate() {
        if place > 0 && place <= lead {
            out.close(',');
        }
        match is_number(part) {
            true if *part == "800" || *part == "900" => {
                out.number(&format!("{} hundred", one_by_one(&part[..1])))
            }
            true => out.number(&one_by_one(part)),
            false => say_letters(part, out),
        }
    }
    out.apart();
    true
}

/// `SN-4023-XR`, `4CE0460D0G`: letters and digits in turns, said one by one.
pub fn try_serial(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let first = text.as_bytes().first().copied().unwrap_or_default();
    if !(first.is_ascii_uppercase() || first.is_ascii_digit()) {
        return false;
    }
    let token = token(text);
    if !CODE.contains(&token.len()) || !is_serial(token, scan.name_before()) {
        return false;
    }
    if text[token.len()..]
        .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '\'' | '@' | '/'))
    {
        return false;
    }
    scan.skip(token.len());
    let mut rest = token;
    while !rest.is_empty() {
        let (word, number) = (letters(rest), digits(rest));
        let len = if !word.is_empty() {
            spell(&word.to_ascii_lowercase(), out);
            word.len()
        } else if !number.is_empty() {
            // `C6H12O6`
            let small = number.len() < 3 && !number.starts_with('0') && !token.contains('-');
            out.number(&if small { cardinal(number) } else { one_by_one(number) });
            number.len()
        } else {
            out.close(',');
            1
        };
        rest = &rest[len..];
    }
    out.apart();
    true
}

/// Whether letters and digits change often enough, or a word before says what it is.
fn is_serial(token: &str, before: &str) -> bool {
    let runs = runs(token);
    let all_letters: Vec<&str> = runs
        .iter()
        .copied()
        .filter(|run| run.starts_with(|c: char| c.is_ascii_uppercase()))
        .collect();
    let numbers = runs.len() - all_letters.len();
    let capitals = all_letters.iter().all(|run| run.bytes().all(|b| b.is_ascii_uppercase()));
    if all_letters.is_empty()
        || numbers == 0
        || !capitals
        || token.ends_with('-')
        || token.contains("--")
    {
        return false;
    }
    // `10AM-5PM`, `5KG-10KG`, `B-52`: not codes. A word (`COVID`) is not either.
    let is_unit = |run: &str| {
        let measure = unit(run).is_some_and(|found| found.len == run.len() && run.len() > 1);
        measure || matches!(run, "AM" | "PM" | "AD" | "BC" | "X")
    };
    let after_number =
        |pair: &[&str]| pair[0].starts_with(|c: char| c.is_ascii_digit()) && is_unit(pair[1]);
    let is_name = |run: &&str| run.len() >= 3 && !acronyms::is_spelled(run);
    if runs.windows(2).any(after_number) || all_letters.iter().any(is_name) {
        return false;
    }
    let cue = [
        "serial", "number", "part", "model", "sn", "code", "vin", "plate", "sku", "no", "id", "ref",
    ];
    let cued = cue.iter().any(|known| before.eq_ignore_ascii_case(known));
    runs.len() >= 4 || runs.len() == 3 && token.len() >= 6 || cued
}

fn runs(token: &str) -> Vec<&str> {
    let mut runs = Vec::new();
    let mut rest = token;
    while !rest.is_empty() {
        let len = letters(rest).len().max(digits(rest).len());
        if len > 0 {
            runs.push(&rest[..len]);
        }
        rest = &rest[len.max(1)..];
    }
    runs
}

/// The letters, digits and hyphens that `text` begins with, without a hyphen at the end.
fn token(text: &str) -> &str {
    let most = text.floor_char_boundary(*CODE.end() + 1);
    let end = text[..most].find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(most);
    text[..end].trim_end_matches('-')
}

/// A word, or its letters by their names.
pub fn say_letters(part: &str, out: &mut Spoken) {
    let lower = part.to_ascii_lowercase();
    if part.len() > 1 && !acronyms::is_spelled(&part.to_ascii_uppercase()) {
        out.gap();
        out.apart();
        return out.word(&lower);
    }
    spell(&lower, out);
}

fn spell(lower: &str, out: &mut Spoken) {
    for letter in lower.chars() {
        out.gap();
        out.letter(letter);
    }
    out.end_number();
}

/// `v1.2`, `v2`: the version of something.
pub fn try_version_letter(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let free = scan.before().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '"'));
    let text = scan.rest();
    let number = text.strip_prefix(['v', 'V']).map_or("", digits);
    // `V8` is an engine.
    let engine = text.starts_with('V') && !text[1 + number.len()..].starts_with('.');
    let found = free && !engine && !number.is_empty() && number.len() <= 3;
    if found {
        scan.skip(1);
        out.phrase("version");
    }
    found
}
