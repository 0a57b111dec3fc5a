//! Dates: `July 25, 2012`, `25 jul 2012`, `July 4-6`, `2024-05-12`, `12/25/2020`, `Mon-Fri`.
//!
//! In: a scan before a digit or a word. Out: words up to the day; the year after it is read as any
//! year. The day of a month is an ordinal, and with the day first it has its `the` and `of`.

use super::super::numeral::{Clock, Groups, digits};
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::numbers::{ordinal, year};
use super::years::is_counted;

/// Full names, in order.
pub const MONTHS: [&str; 12] = [
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

/// `2024-05-12`, `12/25/2020`, `11/17/05`, `25.12.2020`, `2024-05-12T10:30`, `15-Jan-2020`.
pub fn try_numeric_date(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let numeric = ['-', '/', '.'].into_iter().find_map(|mark| numeric(text, mark));
    let Some((words, len)) = numeric.or_else(|| named_month(text)) else { return false };
    if text[len..].starts_with(|c: char| c.is_alphabetic() && c != 'T') {
        return false;
    }
    scan.skip(len);
    out.number(&words);
    take_iso_time(scan, out);
    true
}

/// The time of `2024-05-12T10:30:00Z`: the `T` is not said, and `Z` is.
fn take_iso_time(scan: &mut Scan<'_>, out: &mut Spoken) {
    let mut after = *scan;
    if after.take('T') && Clock::parse(after.rest()).is_some() {
        *scan = after;
        super::clock::try_clock(scan, out);
        if scan.rest().starts_with('Z') && letters(scan.rest()).len() == 1 {
            scan.skip(1);
            out.number("u t c");
        }
    }
}

/// `15-Jan-2020`, `2020-Jan-15`.
fn named_month(text: &str) -> Option<(String, usize)> {
    let first = digits(text);
    let rest = text[first.len()..].strip_prefix('-')?;
    let (name, width) = month(rest).filter(|_| first.len() <= 4)?;
    let third = digits(rest[width..].strip_prefix('-')?);
    let (day, in_year) = if first.len() == 4 { (third, first) } else { (first, third) };
    let in_year = full_year(in_year)?;
    let real = day.len() <= 2 && (1..=31).contains(&day.parse::<u32>().ok()?);
    real.then(|| {
        (
            format!("{name} {} {}", ordinal(day), year(in_year)),
            first.len() + width + third.len() + 2,
        )
    })
}

/// `Jan-15-2020`, `Jan-15`.
fn dashed_month_first(text: &str) -> Option<(String, usize)> {
    let (name, width) = month(text)?;
    let rest = text[width..].strip_prefix(['-', '/'])?;
    let number = digits(rest);
    let real = number.len() <= 2 && (1..=31).contains(&number.parse::<u32>().ok()?);
    let after = &rest[number.len()..];
    let more_follows = |c: char| c.is_alphanumeric() || matches!(c, '-' | '/' | ':' | '%');
    // `May-5` may be a name with a number.
    if real && !after.starts_with(more_follows) && is_capital(text) && name != "may" {
        return Some((format!("{name} {}", ordinal(number)), width + 1 + number.len()));
    }
    let third = digits(after.strip_prefix(['-', '/'])?);
    let in_year = full_year(third)?;
    real.then(|| {
        (
            format!("{name} {} {}", ordinal(number), year(in_year)),
            width + number.len() + third.len() + 2,
        )
    })
}

/// A year of four digits, or of two in this century or the last one.
fn full_year(digits: &str) -> Option<u32> {
    let value: u32 = digits.parse().ok()?;
    match digits.len() {
        4 => (1000..3000).contains(&value).then_some(value),
        2 if value < 50 => Some(2000 + value),
        2 => Some(1900 + value),
        _ => None,
    }
}

fn numeric(text: &str, mark: char) -> Option<(String, usize)> {
    let groups = Groups::parse(text, mark);
    if groups.parts.len() != 3 {
        return None;
    }
    let widths = groups.widths();
    let (first, second, third) = (groups.value(0)?, groups.value(1)?, groups.value(2)?);
    let year_first = widths[0] == 4
        && widths[1..].iter().all(|width| *width <= 2)
        && (mark != '.' || widths[1..] == [2, 2]);
    let short = widths[2] == 2 && (mark == '/' || mark == '-' && widths == [2, 2, 2]);
    let year_last = (widths[2] == 4 || short) && widths[0] <= 2 && widths[1] <= 2;
    let (day, month, in_year, day_first) = match (mark, first, second) {
        _ if year_first => (third, second, first, false),
        _ if !year_last => return None,
        ('.', ..) => (first, second, third, true),
        (_, 13.., _) => (first, second, third, true),
        // Where both could be the month, it is first, as Americans write.
        _ => (second, first, third, false),
    };
    let in_year = if year_first { in_year } else { full_year(groups.parts[2])? };
    let real = (1..=31).contains(&day) && (1..=12).contains(&month);
    if !real || !(1000..3000).contains(&in_year) {
        return None;
    }
    let (month, day) = (MONTHS[month as usize - 1], ordinal(&day.to_string()));
    let words = match day_first {
        true => format!("the {day} of {month} {}", year(in_year)),
        false => format!("{month} {day} {}", year(in_year)),
    };
    Some((words, groups.len))
}

/// `25 July`, `25th jul.`, `4-6 July`.
pub fn try_day_first(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let Some((first, mut len)) = day(text) else { return false };
    let range = text[len..].strip_prefix(['-', '–']).and_then(|rest| {
        let (last, width) = day(rest)?;
        Some((last, text.len() - len - rest.len() + width))
    });
    if let Some((_, width)) = range {
        len += width;
    }
    let Some(rest) = text[len..].strip_prefix(' ') else { return false };
    let Some((month, width)) = month(rest) else { return false };
    let after = &rest[width..];
    if is_lower_word(rest, month) && !year_or_end(after) || after.starts_with(['\'', '-']) {
        return false;
    }
    let article = if scan.word_before().eq_ignore_ascii_case("the") { "" } else { "the " };
    let days = match range {
        Some((last, _)) => format!("{article}{} to the {}", ordinal(first), ordinal(last)),
        None => format!("{article}{}", ordinal(first)),
    };
    scan.skip(text.len() - after.len());
    skip_dot(scan);
    out.number(&format!("{days} of {month}"));
    true
}

/// `July 25`, `jul 25 2012`, `Jan. 5`, `July 4-6`, `Jul 2012`, `Jan-Mar`.
pub fn try_month_first(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    if let Some((words, len)) = dashed_month_first(text) {
        scan.skip(len);
        out.number(&words);
        return true;
    }
    let Some((month_name, len)) = month(text) else { return false };
    let mut after = *scan;
    after.skip(len);
    if is_capital(text)
        && let Some((last, width)) = after.rest().strip_prefix(['-', '–']).and_then(|rest| {
            let (name, width) = month(rest).filter(|_| is_capital(rest))?;
            Some((name, after.rest().len() - rest.len() + width))
        })
    {
        after.skip(width);
        *scan = after;
        out.number(&format!("{month_name} to {last}"));
        skip_dot(scan);
        return true;
    }
    after.take('.');
    let Some(number) = after.rest().strip_prefix(' ') else { return false };
    let lower = is_lower_word(text, month_name);
    let Some((first, width)) = day(number) else {
        let is_year = digits(number).len() == 4 && !lower;
        if is_year {
            *scan = after;
            out.number(month_name);
        }
        return is_year;
    };
    after.skip(1 + width);
    let counted = is_counted(after.word_after()) || after.rest().starts_with([':', '%', '/']);
    if counted || lower && !year_or_end(after.rest()) {
        return false;
    }
    *scan = after;
    out.number(&format!("{month_name} {}", ordinal(first)));
    if let Some(rest) = scan.rest().strip_prefix(['-', '–']) {
        let mark = scan.rest().len() - rest.len();
        if let Some((last, width)) = day(rest) {
            scan.skip(mark + width);
            out.number(&format!("to {}", ordinal(last)));
        } else if month(rest).is_some() {
            scan.skip(mark);
            out.number("to");
        }
    }
    true
}

/// `Mon., June 5`, `Sat 12 May`, `Mon-Fri`.
pub fn try_weekday(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let Some((name, len)) = weekday(text) else { return false };
    let rest = &text[len..];
    if let Some(end) = rest.strip_prefix(['-', '–'])
        && let Some((last, width)) = weekday(end)
    {
        scan.skip(text.len() - end.len() + width);
        out.number(&format!("{name} to {last}"));
        return true;
    }
    let dotted = rest.strip_prefix('.').unwrap_or(rest);
    let next = dotted.trim_start_matches([',', ' ']);
    let date = next.len() < dotted.len()
        && (month(next).is_some_and(|(_, width)| next[width..].starts_with([' ', '.']))
            || day(next).is_some_and(|(_, width)| {
                next[width..].strip_prefix(' ').is_some_and(|rest| month(rest).is_some())
            }));
    if date {
        scan.skip(text.len() - dotted.len());
        out.number(name);
    }
    date
}

/// A day of a month and its length, with or without `th`.
fn day(text: &str) -> Option<(&str, usize)> {
    let found = digits(text);
    let value: u32 = found.parse().ok().filter(|_| found.len() <= 2)?;
    let suffix = letters(&text[found.len()..]);
    let ordinal = ["st", "nd", "rd", "th"].iter().any(|end| suffix.eq_ignore_ascii_case(end));
    let len = found.len() + if ordinal { 2 } else { 0 };
    let whole = !text[len..].starts_with(|c: char| c.is_alphanumeric())
        && text[len..].strip_prefix(['.', ',']).is_none_or(|rest| digits(rest).is_empty());
    (whole && (1..=31).contains(&value)).then_some((found, len))
}

/// The month that `text` begins with, in full or short, and the length of its letters.
pub fn month(text: &str) -> Option<(&'static str, usize)> {
    let word = letters(text);
    let lower = word.to_ascii_lowercase();
    let number = MONTHS.iter().position(|name| {
        lower == *name
            || lower.len() == 3 && name.starts_with(&lower)
            || lower == "sept" && name.starts_with("sept")
    })?;
    Some((MONTHS[number], word.len()))
}

fn weekday(text: &str) -> Option<(&'static str, usize)> {
    let word = letters(text);
    let name = match word {
        "Mon" => "monday",
        "Tue" | "Tues" => "tuesday",
        "Wed" => "wednesday",
        "Thu" | "Thur" | "Thurs" => "thursday",
        "Fri" => "friday",
        "Sat" => "saturday",
        "Sun" => "sunday",
        _ => return None,
    };
    Some((name, word.len()))
}

fn is_capital(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase())
}

/// `may` and `march` are verbs too, unless they have a capital.
fn is_lower_word(text: &str, month: &str) -> bool {
    matches!(month, "may" | "march") && !is_capital(text)
}

/// A year or a mark follows, or nothing.
fn year_or_end(rest: &str) -> bool {
    let next = rest.trim_start_matches(' ');
    digits(next).len() == 4 || !next.starts_with(|c: char| c.is_alphanumeric())
}

/// The dot of `Jan.` inside a date.
fn skip_dot(scan: &mut Scan<'_>) {
    if scan.rest().starts_with('.') && !super::clock::ends_sentence(&scan.rest()[1..]) {
        scan.skip(1);
    }
}
