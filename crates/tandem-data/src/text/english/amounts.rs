//! English numbers in context: times, dates, money, units, years, fractions.
//!
//! In: a scan before a digit. Out: words in [`Spoken`]. Each `try_*` handles one pattern and leaves the
//! scan unchanged if the text has another.

use super::super::numeral::{Clock, Groups, Numeral, digits, vulgar};
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::numbers::{cardinal, decimal, fraction, one_by_one, ordinal, plural, year};
use super::units::{Currency, currency, magnitude, unit};
use super::years::year_here;

/// Reads the next number.
pub fn number(scan: &mut Scan<'_>, out: &mut Spoken) {
    if let Some((top, bottom)) = scan.peek().and_then(vulgar) {
        scan.skip(scan.peek().map_or(0, char::len_utf8));
        return out.number(&fraction(top, bottom));
    }
    let shaped = try_clock(scan, out)
        || try_date(scan, out)
        || try_phone(scan, out)
        || try_slashed(scan, out)
        || try_version(scan, out);
    if !shaped {
        plain(scan, out);
    }
}

/// Reads `3.50` in `$3.50 million`, with the currency in its place.
pub fn money(scan: &mut Scan<'_>, out: &mut Spoken, kind: Currency) {
    let numeral = Numeral::parse(scan.rest());
    scan.skip(numeral.len);
    if let Some((name, len)) = magnitude(scan.rest()) {
        scan.skip(len);
        return out.number(&format!("{} {name} {}", value(&numeral), kind.many));
    }
    let coins = numeral.fraction.len() == 2 && !kind.small_one.is_empty();
    if !coins {
        let name = if numeral.is_one() { kind.one } else { kind.many };
        return out.number(&format!("{} {name}", value(&numeral)));
    }
    let count = |digits: &str, one: &str, many: &str| {
        let name = if digits.trim_start_matches('0') == "1" { one } else { many };
        format!("{} {name}", cardinal(digits))
    };
    let large = count(&numeral.whole, kind.one, kind.many);
    let small = count(numeral.fraction, kind.small_one, kind.small_many);
    match (cardinal(&numeral.whole).as_str(), numeral.fraction) {
        ("zero", _) => out.number(&small),
        (_, "00") => out.number(&large),
        _ => out.number(&format!("{large} and {small}")),
    }
}

fn value(numeral: &Numeral<'_>) -> String {
    numeral.words(cardinal, decimal)
}

fn try_clock(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let Some(clock) = Clock::parse(scan.rest()) else { return false };
    scan.skip(clock.len);
    let half = half_of_day(scan);
    let hour = cardinal(&clock.hour.to_string());
    let minute = clock.minute.to_string();
    let time = match (clock.minute, half) {
        (0, Some(_)) => hour,
        (0, None) if clock.hour <= 12 => format!("{hour} o'clock"),
        (0, None) => format!("{hour} hundred"),
        (1..10, _) => format!("{hour} oh {}", cardinal(&minute)),
        _ => format!("{hour} {}", cardinal(&minute)),
    };
    out.number(&time);
    if let Some(second) = clock.second {
        let name = if second == 1 { "second" } else { "seconds" };
        out.number(&format!("and {} {name}", cardinal(&second.to_string())));
    }
    if let Some(half) = half {
        out.number(half);
    }
    true
}

/// `am` or `pm` in any spelling, after an optional space. The scan moves past it.
fn half_of_day(scan: &mut Scan<'_>) -> Option<&'static str> {
    let rest = scan.rest();
    let text = rest.strip_prefix(' ').unwrap_or(rest);
    let half = match text.bytes().next()?.to_ascii_lowercase() {
        b'a' => "a m",
        b'p' => "p m",
        _ => return None,
    };
    let mut tail = &text[1..];
    let dotted = tail.starts_with('.');
    tail = tail.strip_prefix('.').unwrap_or(tail);
    tail = tail.strip_prefix(['m', 'M'])?;
    if tail.starts_with(|c: char| c.is_alphanumeric() || c == '\'') {
        return None;
    }
    scan.skip(rest.len() - tail.len());
    // The dot of `p.m.` may also end the sentence: then it stays.
    if dotted && tail.starts_with('.') && !ends_sentence(&tail[1..]) {
        scan.skip(1);
    }
    Some(half)
}

fn ends_sentence(rest: &str) -> bool {
    let next = rest.trim_start_matches([' ', '"', ')', '\'']);
    next.is_empty() || next.starts_with(char::is_uppercase)
}

/// `2024-05-12` -> `may twelfth twenty twenty-four`.
fn try_date(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let groups = Groups::parse(scan.rest(), '-');
    let (Some(in_year), Some(month), Some(day)) =
        (groups.value(0), groups.value(1), groups.value(2))
    else {
        return false;
    };
    let real = groups.widths() == [4, 2, 2]
        && (1000..3000).contains(&in_year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day);
    if real {
        scan.skip(groups.len);
        let month = MONTHS[month as usize - 1];
        out.number(&format!("{month} {} {}", ordinal(&day.to_string()), year(in_year)));
    }
    real
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// `555-1234` and `1-800-555-1234` digit by digit, with a pause between groups.
fn try_phone(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let groups = Groups::parse(scan.rest(), '-');
    let phone = matches!(groups.widths().as_slice(), [3, 4] | [3, 3, 4] | [1, 3, 3, 4]);
    if phone {
        scan.skip(groups.len);
        let read: Vec<_> = groups.parts.iter().map(|part| one_by_one(part)).collect();
        out.number(&read.join(", "));
    }
    phone
}

/// `3/4`, `24/7`, `12/25/2020`.
fn try_slashed(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let groups = Groups::parse(scan.rest(), '/');
    if groups.parts.len() < 2 || groups.widths().iter().any(|width| *width > 4) {
        return false;
    }
    scan.skip(groups.len);
    if let (2, Some(top), Some(bottom)) = (groups.parts.len(), groups.value(0), groups.value(1)) {
        let known = matches!((top, bottom), (24, 7) | (9, 11));
        if !known && (top < bottom || bottom == 2) && (2..=100).contains(&bottom) {
            out.number(&fraction(top, bottom));
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

/// `1.2.3` -> `one point two point three`.
fn try_version(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let groups = Groups::parse(scan.rest(), '.');
    if groups.parts.len() < 3 {
        return false;
    }
    scan.skip(groups.len);
    let read: Vec<_> = groups.parts.iter().map(|part| cardinal(part)).collect();
    out.number(&read.join(" point "));
    true
}

/// A number without a special pattern; the following text may still change its words.
fn plain(scan: &mut Scan<'_>, out: &mut Spoken) {
    let before = scan.word_before();
    let numeral = Numeral::parse(scan.rest());
    scan.skip(numeral.len);
    let read = try_mixed(scan, out, &numeral)
        || try_suffix(scan, out, &numeral)
        || try_measure(scan, out, &numeral);
    if !read {
        let words = if !numeral.is_plain() {
            value(&numeral)
        } else if let Some(found) = year_here(&numeral.whole, before, scan) {
            year(found)
        } else if numeral.whole.len() > 1 && numeral.whole.starts_with('0') {
            one_by_one(&numeral.whole)
        } else {
            cardinal(&numeral.whole)
        };
        out.number(&words);
        if let Some(half) = half_of_day(scan) {
            out.number(half);
        }
    }
    range(scan, out);
}

/// `3½`, `1 1/2`.
fn try_mixed(scan: &mut Scan<'_>, out: &mut Spoken, numeral: &Numeral<'_>) -> bool {
    if !numeral.fraction.is_empty() {
        return false;
    }
    let rest = scan.rest();
    let spaced = rest.strip_prefix(' ').unwrap_or(rest);
    let gap = rest.len() - spaced.len();
    let (parts, len) = match spaced.chars().next().and_then(vulgar) {
        Some(parts) => (parts, gap + spaced.chars().next().map_or(0, char::len_utf8)),
        None => {
            let groups = Groups::parse(spaced, '/');
            match (groups.parts.len(), groups.value(0), groups.value(1)) {
                (2, Some(top), Some(bottom))
                    if gap == 1 && 0 < top && top < bottom && bottom <= 16 =>
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
    true
}

/// `22nd`, `1990s`, `80's`.
fn try_suffix(scan: &mut Scan<'_>, out: &mut Spoken, numeral: &Numeral<'_>) -> bool {
    if !numeral.fraction.is_empty() {
        return false;
    }
    let rest = scan.rest();
    let word = letters(rest);
    if ["st", "nd", "rd", "th"].iter().any(|end| word.eq_ignore_ascii_case(end)) {
        scan.skip(2);
        out.number(&ordinal(&numeral.whole));
        return true;
    }
    let tail = rest.strip_prefix('\'').unwrap_or(rest);
    if letters(tail) != "s" || !numeral.is_plain() {
        return false;
    }
    let words = match numeral.whole.parse() {
        Ok(value @ 1000..2100) => year(value),
        _ => cardinal(&numeral.whole),
    };
    let len = rest.len() - tail.len() + 1;
    let decade = numeral.whole.ends_with('0');
    if !decade && len == 1 {
        return false;
    }
    scan.skip(len);
    out.number(&if decade { plural(&words) } else { format!("{words}'s") });
    true
}

/// `50 %`, `5 km`, `5 €`.
fn try_measure(scan: &mut Scan<'_>, out: &mut Spoken, numeral: &Numeral<'_>) -> bool {
    let rest = scan.rest();
    let text = rest.strip_prefix(' ').unwrap_or(rest);
    let gap = rest.len() - text.len();
    let next = text.chars().next();
    let (name, len) = if next == Some('%') {
        ("percent", 1)
    } else if let Some((kind, len)) = currency_after(text) {
        (if numeral.is_one() { kind.one } else { kind.many }, len)
    } else if let Some((one, many, len)) = unit(text) {
        (if numeral.is_one() { one } else { many }, len)
    } else {
        return false;
    };
    scan.skip(gap + len);
    out.number(&format!("{} {name}", value(numeral)));
    true
}

/// A currency sign that belongs to the number before it: not the `$` of `5 $6`.
fn currency_after(text: &str) -> Option<(Currency, usize)> {
    let sign = text.chars().next()?;
    let kind = currency(sign)?;
    let free = digits(&text[sign.len_utf8()..]).is_empty();
    free.then_some((kind, sign.len_utf8()))
}

/// `10-20`: the mark between two numbers becomes `to`; the second number is read next.
fn range(scan: &mut Scan<'_>, out: &mut Spoken) {
    if scan.take_range_mark().is_some() {
        out.number("to");
    }
}
