//! Addresses of the web: `www.example.com/news`, `info@example.com`.
//!
//! In: a scan before a word. Out: words, with `dot`, `slash` and `at`. The scheme (`https://`) is not
//! said. A dot or a comma at the end belongs to the sentence.

use super::super::numeral::digits;
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::abbreviations::{before_number, dotted};
use super::numbers::cardinal;
use super::roman;

/// Reads the address that begins here.
pub fn try_web(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let end = text.find(|c: char| c.is_whitespace()).unwrap_or(text.len());
    let token = text[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'']);
    if !token.contains('.') {
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
    let host = address.split_once('@').map_or(address, |(_, host)| host);
    let host = host.split(['/', '?', '#', ':']).next().unwrap_or_default();
    let labels: Vec<&str> = host.split('.').collect();
    let named = labels.len() > 1
        && labels.iter().all(|label| !label.is_empty())
        && labels[0].bytes().any(|b| b.is_ascii_alphabetic());
    named && labels.last().is_some_and(|last| ENDINGS.contains(last) || is_spelled_ending(last))
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
    let mut after_dot = false;
    while let Some(c) = rest.chars().next() {
        let word = letters(rest);
        let number = digits(rest);
        let len = if !word.is_empty() {
            let lower = word.to_ascii_lowercase();
            let ends = !rest[word.len()..].starts_with(|c: char| c == '-' || c.is_ascii_digit());
            if lower == "www" || after_dot && ends && is_spelled_ending(&lower) {
                out.gap();
                lower.chars().for_each(|letter| out.phrase(letter.encode_utf8(&mut [0; 4])));
            } else {
                out.word(&lower);
            }
            word.len()
        } else if !number.is_empty() {
            out.number(&cardinal(number));
            number.len()
        } else {
            match c {
                '-' if rest.len() > 1 => out.hyphen(),
                _ => out.phrase(name_of(c).unwrap_or_default()),
            }
            1
        };
        after_dot = c == '.';
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
