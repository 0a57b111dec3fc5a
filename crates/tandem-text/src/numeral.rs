//! Parses numbers as written, before a language turns them into words.
//!
//! In: folded text that begins with an ASCII digit. Out: [`Numeral`]. Knows separators
//! (`1,234,567`, `1٬234`), decimals (`3.5`, `3٫5`), clock times and digit groups.

use std::borrow::Cow;

/// A number as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numeral<'a> {
    /// Digits before the decimal mark, without separators.
    pub whole: Cow<'a, str>,
    /// Digits after the decimal mark; empty if there is none.
    pub fraction: &'a str,
    /// Length in bytes.
    pub len: usize,
}

impl<'a> Numeral<'a> {
    /// Reads the number at the beginning of `text`.
    pub fn parse(text: &'a str) -> Self {
        let (whole, mut len) = whole(text);
        let mut fraction = "";
        for mark in ['.', '٫'] {
            let after = text[len..].strip_prefix(mark).map_or("", digits);
            if !after.is_empty() {
                fraction = after;
                len += mark.len_utf8() + after.len();
                break;
            }
        }
        Self { whole, fraction, len }
    }

    /// True for a plain run of digits.
    pub fn is_plain(&self) -> bool {
        self.fraction.is_empty() && self.len == self.whole.len()
    }

    /// The value of a whole number that fits.
    pub fn value(&self) -> Option<u128> {
        if self.fraction.is_empty() { self.whole.parse().ok() } else { None }
    }

    /// The words of a whole number or of a decimal, by the rules of a language.
    pub fn words(&self, cardinal: fn(&str) -> String, decimal: fn(&str, &str) -> String) -> String {
        if self.fraction.is_empty() {
            cardinal(&self.whole)
        } else {
            decimal(&self.whole, self.fraction)
        }
    }

    /// True for exactly 1: a counted noun stays singular.
    pub fn is_one(&self) -> bool {
        self.value() == Some(1)
    }
}

fn whole(text: &str) -> (Cow<'_, str>, usize) {
    let first = digits(text);
    let mut len = first.len();
    if len > 3 {
        return (Cow::Borrowed(first), len);
    }
    let mut joined = String::new();
    while let Some((group, width)) = group(&text[len..]) {
        if joined.is_empty() {
            joined.push_str(first);
        }
        joined.push_str(group);
        len += width;
    }
    if joined.is_empty() { (Cow::Borrowed(first), len) } else { (Cow::Owned(joined), len) }
}

/// A separator and exactly three digits.
fn group(text: &str) -> Option<(&str, usize)> {
    let mark = text.chars().next().filter(|c| matches!(c, ',' | '٬' | '\''))?;
    let group = digits(&text[mark.len_utf8()..]);
    (group.len() == 3).then_some((group, mark.len_utf8() + 3))
}

#[cfg(test)]
thread_local! {
    /// Bytes that [`digits`] looked at: the work of all scans of numbers.
    pub static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The digits a text begins with.
pub fn digits(text: &str) -> &str {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    #[cfg(test)]
    LOOKED_AT.with(|count| count.set(count.get() + end + 1));
    &text[..end]
}

/// Groups of three digits from the left, each with its power of a thousand.
pub fn thousands(digits: &str) -> impl Iterator<Item = (usize, usize)> {
    let count = digits.len().div_ceil(3);
    (0..count).rev().map(move |power| {
        let end = digits.len() - 3 * power;
        let group = &digits[end.saturating_sub(3)..end];
        (group.bytes().fold(0, |value, b| value * 10 + usize::from(b - b'0')), power)
    })
}

/// A time of day as written: `15:30`, `3:05:20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// 0 to 24.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59, if given.
    pub second: Option<u8>,
    /// Length in bytes.
    pub len: usize,
}

impl Clock {
    /// Reads the time at the beginning of `text`, if there is one.
    pub fn parse(text: &str) -> Option<Self> {
        let hour = digits(text);
        let rest = text[hour.len()..].strip_prefix(':')?;
        let minute = digits(rest);
        let hour_value: u8 = hour.parse().ok().filter(|hour| *hour <= 24)?;
        if hour.len() > 2 || minute.len() != 2 {
            return None;
        }
        let len = hour.len() + 3;
        let second = text[len..].strip_prefix(':').map(digits).filter(|s| s.len() == 2);
        let sixty = |part: &str| part.parse::<u8>().ok().filter(|value| *value < 60);
        Some(Self {
            hour: hour_value,
            minute: sixty(minute)?,
            second: second.and_then(sixty),
            len: if second.and_then(sixty).is_some() { len + 3 } else { len },
        })
    }
}

/// Numbers with one kind of mark between them: `2024-05-12`, `3/4`, `555-1234`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups<'a> {
    /// The digits of each part.
    pub parts: Vec<&'a str>,
    /// Length in bytes.
    pub len: usize,
}

impl<'a> Groups<'a> {
    /// No date, version or score has more parts: a longer run is read part by part, in linear time.
    const MOST: usize = 24;

    /// Reads digits, mark, digits, ... at the beginning of `text`.
    pub fn parse(text: &'a str, mark: char) -> Self {
        let mut parts = vec![digits(text)];
        let mut len = parts[0].len();
        while let Some(rest) = text[len..].strip_prefix(mark).filter(|_| parts.len() < Self::MOST) {
            let next = digits(rest);
            if next.is_empty() {
                break;
            }
            len += mark.len_utf8() + next.len();
            parts.push(next);
        }
        Self { parts, len }
    }

    /// How many digits each part has.
    pub fn widths(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.len()).collect()
    }

    /// The value of part `index`, if it exists and fits.
    pub fn value(&self, index: usize) -> Option<u32> {
        self.parts.get(index)?.parse().ok()
    }
}

/// Numerator and denominator of a fraction character.
pub fn vulgar(c: char) -> Option<(u32, u32)> {
    Some(match c {
        '½' => (1, 2),
        '¼' => (1, 4),
        '¾' => (3, 4),
        '⅓' => (1, 3),
        '⅔' => (2, 3),
        '⅕' => (1, 5),
        '⅖' => (2, 5),
        '⅗' => (3, 5),
        '⅘' => (4, 5),
        '⅙' => (1, 6),
        '⅚' => (5, 6),
        '⅐' => (1, 7),
        '⅛' => (1, 8),
        '⅜' => (3, 8),
        '⅝' => (5, 8),
        '⅞' => (7, 8),
        '⅑' => (1, 9),
        '⅒' => (1, 10),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, whole: &str, fraction: &str, len: usize) {
        let found = Numeral::parse(text);
        assert_eq!((&*found.whole, found.fraction, found.len), (whole, fraction, len), "{text}");
    }

    #[test]
    fn separators_and_decimals_are_distinguished_from_punctuation() {
        check("1234", "1234", "", 4);
        check("1,234,567 x", "1234567", "", 9);
        check("1,23", "1", "", 1);
        check("1,2345", "1", "", 1);
        check("1234,567", "1234", "", 4);
        check("3.14.", "3", "14", 4);
        check("5.", "5", "", 1);
        check("1٬234٫5", "1234", "5", 9);
    }

    #[test]
    fn thousands_are_counted_from_the_right() {
        assert_eq!(thousands("1234567").collect::<Vec<_>>(), [(1, 2), (234, 1), (567, 0)]);
        assert_eq!(thousands("12").collect::<Vec<_>>(), [(12, 0)]);
    }

    #[test]
    fn only_real_times_are_times() {
        assert_eq!(Clock::parse("15:30").map(|c| (c.hour, c.minute, c.len)), Some((15, 30, 5)));
        assert_eq!(Clock::parse("3:05:20").and_then(|c| c.second), Some(20));
        assert_eq!(Clock::parse("25:00"), None);
        assert_eq!(Clock::parse("12:60"), None);
        assert_eq!(Clock::parse("3:1"), None);
        assert_eq!(Clock::parse("3:123"), None);
    }

    #[test]
    fn groups_end_where_the_digits_end() {
        let found = Groups::parse("555-1234-x", '-');
        assert_eq!((found.widths(), found.len), (vec![3, 4], 8));
    }
}
