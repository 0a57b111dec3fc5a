//! Times of day: `3:05 pm EST`, `15:30`, `7.30pm`, `0800 hours`; durations: `1h 30m`.
//!
//! In: a scan before a digit. Out: words, and `to` where a range follows.

use super::super::numeral::{Clock, digits};
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::amounts::range;
use super::numbers::cardinal;

/// Reads a time with a colon, or with a dot before `am` or `pm`.
pub fn try_clock(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let Some(clock) = Clock::parse(scan.rest()).or_else(|| with_dot(scan)) else {
        return try_military(scan, out);
    };
    scan.skip(clock.len);
    let half = half_of_day(scan);
    let hour = cardinal(&clock.hour.to_string());
    let minute = clock.minute.to_string();
    // After the `T` of an ISO date it is a time of day.
    if let (Some(second), None) = (clock.second, half)
        && scan.before_text(clock.len + 1).as_bytes().first() != Some(&b'T')
    {
        let [hours, minutes, seconds] =
            [(clock.hour, "hour"), (clock.minute, "minute"), (second, "second")].map(counted);
        out.number(&format!("{hours} {minutes} and {seconds}"));
        take_zone(scan, out);
        range(scan, out);
        return true;
    }
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
    take_zone(scan, out);
    range(scan, out);
    true
}

/// `1 hour`, `5 minutes`.
fn counted((count, name): (u8, &str)) -> String {
    format!("{} {name}{}", cardinal(&count.to_string()), if count == 1 { "" } else { "s" })
}

/// `8:00 a.m. EST`, `3 pm PT`: the letters of a time zone after a time.
pub fn take_zone(scan: &mut Scan<'_>, out: &mut Spoken) {
    let Some(zone) = zone(scan.rest()) else { return };
    scan.skip(1 + zone.len());
    for letter in zone.chars() {
        out.gap();
        out.letter(letter.to_ascii_lowercase());
    }
    out.end_number();
}

/// The time zone after the space that `text` begins with.
fn zone(text: &str) -> Option<&str> {
    const ZONES: &[&str] = &[
        "ET", "PT", "CT", "MT", "EST", "EDT", "PST", "PDT", "CST", "CDT", "MST", "MDT", "GMT",
        "UTC", "CET", "CEST", "EET", "EEST", "BST", "IST", "JST", "AEST", "HST", "AKST",
    ];
    let word = letters(text.strip_prefix(' ')?);
    let more = text[1 + word.len()..].starts_with(|c: char| c.is_alphanumeric());
    (ZONES.contains(&word) && !more).then_some(word)
}

/// `1h 30m`, `2h15m30s`, `5m 20s`: a length of time in short units.
pub fn try_duration(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let mut words: Vec<String> = Vec::new();
    let mut at = 0;
    for (spellings, name) in [
        (&["hrs", "hr", "h"][..], "hour"),
        (&["mins", "min", "m"][..], "minute"),
        (&["secs", "sec", "s"][..], "second"),
    ] {
        let part = &text[at..];
        let part = part.strip_prefix(' ').filter(|_| at > 0).unwrap_or(part);
        let number = digits(part);
        let spelling = letters(&part[number.len()..]);
        // `2h15m`: the next number follows at once.
        let found = !number.is_empty() && number.len() <= 3 && spellings.contains(&spelling);
        if found {
            let plural = if number == "1" { "" } else { "s" };
            words.push(format!("{} {name}{plural}", cardinal(number)));
            at = text.len() - part.len() + number.len() + spelling.len();
        }
    }
    let whole = !text[at..].starts_with(|c: char| c.is_alphanumeric() || c == '/');
    let found = words.len() > 1 && whole;
    if found {
        scan.skip(at);
        out.number(&words.join(" "));
    }
    found
}

/// `7.30pm`: British writing, only where `am` or `pm` shows that it is a time.
fn with_dot(scan: &Scan<'_>) -> Option<Clock> {
    let text = scan.rest();
    let hour = digits(text);
    let minute = digits(text[hour.len()..].strip_prefix('.')?);
    let clock = Clock::parse(&format!("{hour}:{minute}"))?;
    let mut after = *scan;
    after.skip(clock.len);
    half_of_day(&mut after).is_some().then_some(clock)
}

/// `0800 hours`, `1430 hours`.
fn try_military(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let found = digits(text);
    let Some(after) = text[found.len()..].strip_prefix(' ').filter(|_| found.len() == 4) else {
        return false;
    };
    let word = letters(after);
    let (Ok(hour), Ok(minute)) = (found[..2].parse::<u8>(), found[2..].parse::<u8>()) else {
        return false;
    };
    // `2000 hours` is rather a duration.
    let time = hour < 24 && minute < 60 && (hour < 10 || minute > 0);
    if !time || !matches!(word, "hours" | "hrs") {
        return false;
    }
    scan.skip(text.len() - after.len() + word.len());
    let lead = if hour < 10 { "zero " } else { "" };
    let minutes = match minute {
        0 => "hundred".to_owned(),
        1..10 => format!("oh {}", cardinal(&minute.to_string())),
        _ => cardinal(&minute.to_string()),
    };
    let hours = if hour == 0 { "zero".into() } else { cardinal(&hour.to_string()) };
    out.number(&format!("{lead}{hours} {minutes} hours"));
    true
}

/// `am` or `pm` in any spelling, after an optional space. The scan moves past it.
pub fn half_of_day(scan: &mut Scan<'_>) -> Option<&'static str> {
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
    let followed = |tail: &str| zone(tail).is_some() || !ends_sentence(tail);
    if dotted && tail.starts_with('.') && followed(&tail[1..]) {
        scan.skip(1);
    }
    Some(half)
}

/// Whether a dot before `rest` ends a sentence.
pub fn ends_sentence(rest: &str) -> bool {
    let next = rest.trim_start_matches([' ', '"', ')', '\'']);
    next.is_empty() || next.starts_with(char::is_uppercase)
}
