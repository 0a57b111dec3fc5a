//! Addresses of the web: `www.example.com/news`, `info@example.com`.
//!
//! In: a scan before a word. Out: words, with `dot`, `slash` and `at`. The scheme (`https://`) is not
//! said. A dot or a comma at the end belongs to the sentence.

use super::super::numeral::digits;
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::abbreviations::{self, before_number, dotted};
use super::numbers::{cardinal, one_by_one};
use super::{acronyms, codes, roman};

/// The longest address, in bytes.
const LONGEST_ADDRESS: usize = 2000;

/// Reads the address that begins here.
pub fn try_web(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let reach = &text[..text.floor_char_boundary(LONGEST_ADDRESS)];
    let end = reach.find(|c: char| c.is_whitespace()).unwrap_or(reach.len());
    let token = text[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'']);
    if !token.contains('.') || !token.contains(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    let scheme = ["https://", "http://", "ftp://"].iter().find(|head| token.starts_with(*head));
    let address = &token[scheme.map_or(0, |head| head.len())..];
    let plain = address.bytes().all(|b| b.is_ascii_alphanumeric() || name_of(b as char).is_some());
    // The numeral of `Chapter IV.a`.
    if roman::reading(letters(text), scan).is_some() {
        return false;
    }
    if !plain || !(scheme.is_some() && !address.is_empty() || is_address(address)) {
        return false;
    }
    // The dot after it would make its last word an abbreviation.
    let last = &address[address.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len()..];
    if text[token.len()..].starts_with('.') && is_abbreviation(last) {
        return false;
    }
    scan.skip(token.len());
    say(address.trim_end_matches('/'), out);
    true
}

/// A host with a known ending, perhaps with a path, or a mail address.
fn is_address(address: &str) -> bool {
    if address.starts_with('@') {
        return false;
    }
    let (mail, host) = address.split_once('@').map_or((false, address), |(_, host)| (true, host));
    let host = host.split(['/', '?', '#', ':']).next().unwrap_or_default();
    let labels: Vec<&str> = host.split('.').collect();
    let named = labels.len() > 1
        && labels.iter().all(|label| !label.is_empty())
        && labels[0].bytes().any(|b| b.is_ascii_alphabetic());
    named
        && (mail || !address.contains('@'))
        && labels.last().is_some_and(|last| {
            let letters = last.len() >= 2 && last.bytes().all(|b| b.is_ascii_lowercase());
            mail && letters || ENDINGS.contains(last) || is_spelled_ending(last)
        })
}

/// `#MachineLearning`, `@jane_doe`: the words of a tag or of a name.
pub fn try_tag(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let sign = text.chars().next().unwrap_or_default();
    let body = &text[sign.len_utf8()..];
    let body = &body[..body.floor_char_boundary(LONGEST_ADDRESS)];
    let end = body.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(body.len());
    let free = scan.before().is_none_or(|c| !c.is_alphanumeric());
    let tag = body[..end].trim_end_matches('_');
    if !free || !tag.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return false;
    }
    scan.skip(sign.len_utf8() + tag.len());
    out.phrase(if sign == '#' { "hashtag" } else { "at" });
    for part in parts(tag) {
        match part.as_bytes()[0] {
            b'0'..=b'9' => out.number(&cardinal(part)),
            _ if part.len() > 1 && abbreviations::is_spelled(part) => codes::say_letters(part, out),
            _ => {
                out.gap();
                out.word(&part.to_ascii_lowercase());
            }
        }
    }
    out.apart();
    true
}

/// `MachineLearning2024` -> `Machine`, `Learning`, `2024`; `NASAImages` -> `NASA`, `Images`.
fn parts(tag: &str) -> Vec<&str> {
    let bytes = tag.as_bytes();
    let mut parts = Vec::new();
    let mut start = 0;
    for at in 1..=bytes.len() {
        let ends = match (bytes[at - 1], bytes.get(at)) {
            (_, None | Some(b'_')) | (b'_', _) => true,
            (before, Some(now)) if before.is_ascii_digit() != now.is_ascii_digit() => true,
            (before, Some(now)) if before.is_ascii_lowercase() && now.is_ascii_uppercase() => true,
            (before, Some(now)) => {
                let word_next = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
                before.is_ascii_uppercase() && now.is_ascii_uppercase() && word_next
            }
        };
        if ends {
            parts.push(tag[start..at].trim_matches('_'));
            start = at;
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn is_abbreviation(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    lower.len() < 2
        || matches!(lower.as_str(), "st" | "dr")
        || dotted(&lower).is_some()
        || before_number(&lower).is_some()
}

fn say(address: &str, out: &mut Spoken) {
    let mut rest = address;
    let (mut after_dot, mut in_path) = (false, false);
    let mail = address.contains('@');
    while let Some(c) = rest.chars().next() {
        let word = letters(rest);
        let number = digits(rest);
        let len = if !word.is_empty() {
            let lower = word.to_ascii_lowercase();
            let ends = !rest[word.len()..].starts_with(|c: char| c == '-' || c.is_ascii_digit());
            if lower == "www" || after_dot && ends && is_spelled_ending(&lower) {
                out.gap();
                lower.chars().for_each(|letter| {
                    out.gap();
                    out.letter(letter);
                });
                out.end_number();
            } else if !(after_dot && ENDINGS.contains(&lower.as_str()))
                && word.len() > 1
                && word.len() <= 5
                && acronyms::is_spelled(&word.to_ascii_uppercase())
            {
                codes::say_letters(word, out);
            } else {
                out.word(&lower);
            }
            word.len()
        } else if !number.is_empty() {
            out.number(&if number.len() < 3 { cardinal(number) } else { one_by_one(number) });
            number.len()
        } else {
            match c {
                '-' if rest.len() > 1 && !mail && !in_path => out.hyphen(),
                _ => out.phrase(name_of(c).unwrap_or_default()),
            }
            1
        };
        after_dot = c == '.';
        in_path |= c == '/';
        rest = &rest[len..];
    }
    out.apart();
}

fn name_of(c: char) -> Option<&'static str> {
    Some(match c {
        '.' => "dot",
        '/' => "slash",
        '@' => "at",
        '_' => "underscore",
        '-' => "dash",
        ':' => "colon",
        '~' => "tilde",
        '?' => "question mark",
        '=' => "equals",
        '&' => "and",
        '#' => "hash",
        '%' => "percent",
        '+' => "plus",
        _ => return None,
    })
}

const ENDINGS: &[&str] = &[
    "com", "org", "net", "edu", "gov", "mil", "info", "biz", "int", "co", "app", "dev", "news",
    "me",
];

/// Countries and other endings that are spelled.
fn is_spelled_ending(ending: &str) -> bool {
    matches!(
        ending,
        "uk" | "us"
            | "io"
            | "tv"
            | "ai"
            | "de"
            | "fr"
            | "ca"
            | "eu"
            | "ir"
            | "jp"
            | "cn"
            | "ch"
            | "nl"
            | "se"
            | "au"
            | "nz"
            | "fm"
    )
}
