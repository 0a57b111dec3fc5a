//! English numbers in context: the class of a number decides its words.
//!
//! In: a scan before a digit. Out: words in [`Spoken`]. Each class has its own file and a `try_*` that
//! leaves the scan unchanged if the text has another pattern; here they are listed in order, and what
//! is left is a plain number.

use super::super::numeral::{Groups, Numeral, digits};
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::arithmetic::{try_arithmetic, try_power};
use super::clock::{half_of_day, take_zone, try_clock, try_duration};
use super::codes::{try_ip, try_paragraph, try_phone_word, try_serial};
use super::dates::{month, try_day_first, try_numeric_date};
use super::fractions::{try_mixed, try_slashed, try_vulgar};
use super::measures::try_measure;
use super::numbers::{cardinal, one_by_one, ordinal, plural, value, year};
use super::phone::try_phone;
use super::streets::try_house_number;
use super::units::{bare_magnitude, divisor, unit};
use super::web::try_web;
use super::years::year_here;

/// Reads the next number.
pub fn number(scan: &mut Scan<'_>, out: &mut Spoken) {
    // The more a pattern fixes, the earlier it is tried.
    let shaped = try_web(scan, out)
        || try_vulgar(scan, out)
        || try_clock(scan, out)
        || try_duration(scan, out)
        || try_numeric_date(scan, out)
        || try_arithmetic(scan, out)
        || try_phone_word(scan, out)
        || try_phone(scan, out)
        || try_ip(scan, out)
        || try_paragraph(scan, out)
        || try_power(scan, out)
        || try_serial(scan, out)
        || try_spaced_thousands(scan, out)
        || try_day_first(scan, out)
        || try_slashed(scan, out)
        || try_version(scan, out)
        || try_house_number(scan, out);
    if !shaped {
        plain(scan, out);
    }
}

/// `1.2.3` -> `one point two point three`.
fn try_version(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let groups = Groups::parse(scan.rest(), '.');
    if groups.parts.len() < 3 {
        return false;
    }
    scan.skip(groups.len);
    // `1.000.000`, as in much of Europe.
    let thousands = groups.parts[1..].iter().all(|part| part.len() == 3);
    if thousands && groups.parts[0].len() <= 3 && !groups.parts[0].starts_with('0') {
        out.number(&cardinal(&groups.parts.concat()));
        return true;
    }
    let read: Vec<_> = groups.parts.iter().map(|part| cardinal(part)).collect();
    out.number(&read.join(" point "));
    true
}

/// `1 000 000`, `25 000 km`: spaces between thousands, as in the International System of Units.
fn try_spaced_thousands(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let first = digits(text);
    let mut len = first.len();
    let mut whole = first.to_owned();
    // A longer run is a list of digits, not one number.
    while whole.len() < 30
        && let Some(group) =
            text[len..].strip_prefix(' ').map(digits).filter(|group| group.len() == 3)
    {
        whole.push_str(group);
        len += 4;
    }
    let groups = (len - first.len()) / 4;
    let ends = !text[len..]
        .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | ':' | '/'))
        && text[len..].strip_prefix(' ').is_none_or(|rest| digits(rest).is_empty());
    let after_number = scan.token_before().ends_with(|c: char| c.is_ascii_digit());
    let fits =
        (1..=3).contains(&first.len()) && !first.starts_with('0') && (2..=8).contains(&groups);
    if !(fits
        || groups == 1 && first.len() <= 3 && !first.starts_with('0') && whole.ends_with("000"))
        || !ends
        || after_number
    {
        return false;
    }
    let before = *scan;
    scan.skip(len);
    let numeral = Numeral { whole: whole.into(), fraction: "", len };
    if !try_measure(scan, out, &numeral, &before) {
        out.number(&value(&numeral));
    }
    true
}

/// A number without a special pattern; the following text may still change its words.
fn plain(scan: &mut Scan<'_>, out: &mut Spoken) {
    let before = *scan;
    let numeral = Numeral::parse(scan.rest());
    scan.skip(numeral.len);
    let read = try_mixed(scan, out, &numeral)
        || try_suffix(scan, out, &numeral, &before)
        || !(scan.rest().starts_with('m') && bare_magnitude(scan.rest()).is_some())
            && try_measure(scan, out, &numeral, &before);
    if !read {
        let words = if let Some((name, len)) = bare_magnitude(scan.rest()) {
            scan.skip(len);
            format!("{} {name}", value(&numeral))
        } else if !numeral.is_plain() {
            value(&numeral)
        } else if let Some(found) =
            year_here(&numeral.whole, &before, scan).filter(|_| !has_unit_after_range(scan))
        {
            year(found)
        } else if is_code(&numeral.whole, &before) {
            one_by_one(&numeral.whole)
        } else {
            cardinal(&numeral.whole)
        };
        out.number(&words);
        scaled_measure(scan, out);
        rate(scan, out);
        if let Some(half) = half_of_day(scan) {
            out.number(half);
            take_zone(scan, out);
        }
        by(scan, out);
    }
    range(scan, out);
}

/// Digits that are no quantity: `007`, `1234567890123124`, `ab9453`.
fn is_code(whole: &str, before: &Scan<'_>) -> bool {
    let separated = digits(before.rest()).len() < whole.len();
    let lettered = before.before().is_some_and(|c| c.is_ascii_lowercase()) && whole.len() >= 4;
    let year = whole.starts_with("19") || whole.starts_with("20");
    whole.len() > 1 && whole.starts_with('0')
        || whole.len() > 10 && !separated && !whole.ends_with("000")
        || lettered && !whole.ends_with("00") && !year
}

/// `-123kg` after a number: it is a quantity, too.
fn has_unit_after_range(scan: &Scan<'_>) -> bool {
    let Some(text) = scan.rest().strip_prefix(['-', '–']) else { return false };
    let numeral = Numeral::parse(text);
    let after = &text[numeral.len..];
    let name = after.strip_prefix(' ').unwrap_or(after);
    // `1990-95 in` is a place or a time.
    numeral.len > 0 && unit(name).is_some_and(|found| found.len > 1 && letters(name) != "in")
}

/// `million kg` after a number: the unit belongs to the scale word.
fn scaled_measure(scan: &mut Scan<'_>, out: &mut Spoken) {
    let word = scan.word_after();
    if !matches!(word, "hundred" | "thousand" | "million" | "billion" | "trillion" | "dozen") {
        return;
    }
    let mut after = *scan;
    after.skip(1 + word.len());
    let mut told = after;
    let text = after.rest().strip_prefix([' ', '-']).unwrap_or_default();
    let Some(found) = unit(text) else { return };
    told.skip(1 + found.len);
    *scan = told;
    out.number(word);
    out.number(&found.many);
}

/// `12/kg`, `3/day`: a rate without a unit of its own.
fn rate(scan: &mut Scan<'_>, out: &mut Spoken) {
    let Some(text) = scan.rest().strip_prefix('/') else { return };
    let word = letters(text);
    let name = match word {
        "day" | "week" | "month" | "year" | "hour" | "minute" | "second" | "person" | "night"
        | "item" | "box" => word.to_owned(),
        "mo" => "month".to_owned(),
        "wk" => "week".to_owned(),
        "kg" | "g" | "lb" | "oz" | "km" | "mi" | "hr" | "h" | "min" | "s" | "sec" | "yr" | "ml"
        | "l" | "gal" | "m" => match divisor(text) {
            Some((name, len)) if len == word.len() => name,
            _ => return,
        },
        _ => return,
    };
    scan.skip(1 + word.len());
    out.number(&format!("per {name}"));
}

/// `.5` and `.300`, where no digit is before the mark.
pub fn try_bare_decimal(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let Some(text) = scan.rest().strip_prefix('.') else { return false };
    let digits = super::super::numeral::digits(text);
    let free = scan.before().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '-' | '"'));
    if digits.is_empty() || !free {
        return false;
    }
    scan.skip(1 + digits.len());
    out.number(&format!("point {}", one_by_one(digits)));
    true
}

/// `'69` and `'05`: a year without its century. `'80s` is left to [`try_suffix`].
pub fn try_short_year(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let Some(text) = scan.rest().strip_prefix('\'') else { return false };
    let digits = super::super::numeral::digits(text);
    let free = scan.before().is_none_or(|c| c.is_whitespace() || c == '(');
    let more = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '.' | ',' | ':' | '/' | '%');
    let ends = text[digits.len()..].trim_end_matches(['.', ',']).is_empty()
        || !text[digits.len()..].starts_with(more)
        || text[digits.len()..].starts_with(". ")
        || text[digits.len()..].starts_with(", ");
    if digits.len() != 2 || !free || !ends {
        return false;
    }
    scan.skip(3);
    let oh = if digits.starts_with('0') && digits != "00" { "oh " } else { "" };
    out.number(&format!("{oh}{}", cardinal(digits)));
    true
}

/// `22nd`, `1990s`, `80's`, `B-52s`.
fn try_suffix(
    scan: &mut Scan<'_>,
    out: &mut Spoken,
    numeral: &Numeral<'_>,
    before: &Scan<'_>,
) -> bool {
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
    // `2 nd`, as a tokenizer writes it; `2 St` is a street.
    let apart = letters(rest.strip_prefix(' ').unwrap_or_default());
    let of_month = || {
        let of = rest.strip_prefix(" of ").unwrap_or_default();
        numeral.whole.len() <= 2
            && before.word_before().eq_ignore_ascii_case("the")
            && of.starts_with(|c: char| c.is_ascii_uppercase())
            && month(of).is_some()
    };
    if ["nd", "rd", "th"].contains(&apart) && numeral.whole.len() <= 4 {
        scan.skip(3);
        out.number(&ordinal(&numeral.whole));
        return true;
    }
    if of_month() {
        out.number(&ordinal(&numeral.whole));
        return true;
    }
    // `1980 s`, as a tokenizer writes it.
    let spaced = numeral.whole.len() == 4 && numeral.whole.ends_with('0') && rest.starts_with(" s");
    let tail = rest.strip_prefix(if spaced { ' ' } else { '\'' }).unwrap_or(rest);
    if letters(tail) != "s" || !numeral.is_plain() {
        return false;
    }
    let words = match numeral.whole.parse() {
        Ok(value @ 1000..2100) => year(value),
        _ => cardinal(&numeral.whole),
    };
    let len = rest.len() - tail.len() + 1;
    let decade = numeral.whole.ends_with('0');
    let named = before.before() == Some('-');
    if !decade && len == 1 && !named {
        return false;
    }
    scan.skip(len);
    out.number(&if decade || named && len == 1 { plural(&words) } else { format!("{words}'s") });
    true
}

/// `4x4` and `4*4`: the sign between two numbers.
fn by(scan: &mut Scan<'_>, out: &mut Spoken) {
    let rest = scan.rest();
    // `0x1F`
    let zero = scan.before_text(2).strip_suffix('0');
    if zero.is_some_and(|lead| !lead.ends_with(|c: char| c.is_ascii_digit() || c == '.')) {
        return;
    }
    if rest.strip_prefix('*').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        scan.skip(1);
        return out.number("times");
    }
    let spaced = rest.strip_prefix(' ').filter(|rest| rest.starts_with("x "));
    let number = spaced.unwrap_or(rest).strip_prefix(['x', '×']).unwrap_or_default();
    let number =
        if spaced.is_some() { number.strip_prefix(' ').unwrap_or_default() } else { number };
    if number.starts_with(|c: char| c.is_ascii_digit()) {
        scan.skip(rest.len() - number.len());
        out.number("by");
    }
}

/// `10-20`: the mark between two numbers becomes `to`; the second number is read next.
pub fn range(scan: &mut Scan<'_>, out: &mut Spoken) {
    if is_in_code(scan) {
        return;
    }
    if scan.take_range_mark().is_some() || take_time_mark(scan) {
        out.number("to");
    }
}

/// `b-c-1-5-b-s`, `1-413-te-b`: a hyphen between numbers of a code is no `to`.
fn is_in_code(scan: &Scan<'_>) -> bool {
    let Some(next) = scan.rest().strip_prefix('-') else { return false };
    let is_letters = |part: &str| (1..3).contains(&part.len()) && letters(part) == part;
    let last = next[digits(next).len()..].strip_prefix('-').map_or("", letters);
    let mut parts = scan.token_before().rsplit('-').skip(1);
    let hyphen_before = parts.next().is_some_and(is_letters) && parts.next().is_some();
    hyphen_before || is_letters(last) && !matches!(last, "m" | "ft" | "in" | "km" | "kg")
}

/// `9 am - 5 pm` and `10am-noon`, after a time.
fn take_time_mark(scan: &mut Scan<'_>) -> bool {
    let rest = scan.rest();
    let after_half = scan.before().is_some_and(|c| matches!(c, 'm' | 'M' | '.'));
    let trimmed = rest.strip_prefix(' ').unwrap_or(rest);
    let Some(next) = trimmed.strip_prefix(['-', '–']).filter(|_| after_half) else {
        return false;
    };
    let next = next.strip_prefix(' ').unwrap_or(next);
    let digits = super::super::numeral::digits(next);
    let mut time = Scan::new(next);
    time.skip(digits.len());
    let to_number = !digits.is_empty()
        && digits.len() <= 2
        && (half_of_day(&mut time).is_some() || time.rest().starts_with(':'));
    let found = to_number || matches!(letters(next), "noon" | "midnight");
    if found {
        scan.skip(rest.len() - next.len());
    }
    found
}
