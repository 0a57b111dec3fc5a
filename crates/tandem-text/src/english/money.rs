//! Money with the sign before the number: `$3.50`, `£2m`, `$250-$300`, `a $5 bill`, `USD 100`.
//!
//! In: a scan before the number and the currency. Out: words with the currency in its place. The
//! sign after the number is read in [`super::measures`].

use super::super::numeral::{Numeral, digits};
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::measures::{Count, is_attributive};
use super::numbers::{cardinal, value};
use super::units::{Currency, code, currency, foreign_dollar, magnitude};

/// A number and its magnitude.
struct Amount<'a> {
    numeral: Numeral<'a>,
    magnitude: Option<&'static str>,
}

/// `$5`, `US$5`, `A$5`, `USD 5`: moves past the number if the scan is before one with its currency.
pub fn try_money(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let Some((kind, len)) = prefix(scan.rest()) else { return false };
    let before = *scan;
    scan.skip(len);
    money(scan, out, kind, &before);
    true
}

/// The currency before a number, and its length with the space after it.
fn prefix(text: &str) -> Option<(Currency, usize)> {
    let first = text.chars().next()?;
    let (kind, len) = if first.is_ascii_uppercase() {
        let word = letters(text);
        match text[word.len()..].starts_with('$') {
            true => (foreign_dollar(word)?, word.len() + 1),
            false => (code(word)?, word.len()),
        }
    } else {
        (currency(first)?, first.len_utf8())
    };
    let rest = &text[len..];
    let number = rest.strip_prefix(' ').unwrap_or(rest);
    let cents = number.strip_prefix('.').is_some_and(|rest| !digits(rest).is_empty());
    let found = number.starts_with(|c: char| c.is_ascii_digit()) || cents;
    found.then_some((kind, text.len() - number.len()))
}

fn money(scan: &mut Scan<'_>, out: &mut Spoken, kind: Currency, before: &Scan<'_>) {
    let first = amount(scan);
    if !has_coins(&first, kind)
        && let Some(last) = range_end(scan, kind)
    {
        return say_range(&first, &last, kind, out);
    }
    let attributive = is_attributive(before, scan);
    let words = match attributive {
        true => format!("{} {}", words(&first), kind.one),
        false => full(&first, kind),
    };
    out.number(&words);
    if has_coins(&first, kind)
        && let Some(last) = range_end(scan, kind)
    {
        out.number(&format!("to {}", full(&last, kind)));
    }
    per(scan, out);
}

fn amount<'a>(scan: &mut Scan<'a>) -> Amount<'a> {
    let rest = scan.rest();
    // `.75` has no digit before its mark.
    let numeral = match rest.strip_prefix('.') {
        Some(cents) => {
            let fraction = digits(cents);
            Numeral { whole: "0".into(), fraction, len: 1 + fraction.len() }
        }
        None => {
            let numeral = Numeral::parse(rest);
            // `€10,50`
            let cents = rest[numeral.len..].strip_prefix(',').map_or("", digits);
            match cents.len() == 2 && numeral.is_plain() {
                true => Numeral { fraction: cents, len: numeral.len + 3, ..numeral },
                false => numeral,
            }
        }
    };
    scan.skip(numeral.len);
    // `$20.500`: no more digits than there are cents.
    let zeros = numeral.fraction.get(2..).is_some_and(|rest| rest.bytes().all(|b| b == b'0'));
    let fraction = if zeros { &numeral.fraction[..2] } else { numeral.fraction };
    let numeral = Numeral { fraction, ..numeral };
    let magnitude = magnitude(scan.rest()).map(|(name, len)| {
        scan.skip(len);
        name
    });
    Amount { numeral, magnitude }
}

/// The second amount of `$250-$300` or `$5-10 million`.
fn range_end<'a>(scan: &mut Scan<'a>, kind: Currency) -> Option<Amount<'a>> {
    let rest = scan.rest();
    let trimmed = rest.strip_prefix(' ').unwrap_or(rest);
    let after = trimmed.strip_prefix(['-', '–'])?;
    let next = after.strip_prefix(' ').unwrap_or(after);
    let spaced = trimmed.len() < rest.len();
    let number = match prefix(next) {
        Some((same, len)) if same == kind => &next[len..],
        // Without a second sign, spaces would make it a pause: `$5 - 10 people`.
        None if !spaced && next.len() == after.len() => next,
        _ => return None,
    };
    if !number.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    scan.skip(rest.len() - number.len());
    Some(amount(scan))
}

fn say_range(first: &Amount<'_>, last: &Amount<'_>, kind: Currency, out: &mut Spoken) {
    if has_coins(last, kind) {
        return out.number(&format!("{} to {}", full(first, kind), full(last, kind)));
    }
    out.number(&format!("{} to {} {}", words(first), words(last), kind.many));
}

fn has_coins(amount: &Amount<'_>, kind: Currency) -> bool {
    amount.magnitude.is_none()
        && matches!(amount.numeral.fraction.len(), 1 | 2)
        && !kind.small_one.is_empty()
}

/// The number without its currency.
fn words(amount: &Amount<'_>) -> String {
    match amount.magnitude {
        Some(name) => format!("{} {name}", value(&amount.numeral)),
        None => value(&amount.numeral),
    }
}

/// The number with its currency.
fn full(amount: &Amount<'_>, kind: Currency) -> String {
    let numeral = &amount.numeral;
    if amount.magnitude.is_some() {
        return format!("{} {}", words(amount), kind.many);
    }
    if !has_coins(amount, kind) {
        return format!("{} {}", value(numeral), Count::of(numeral).of_currency(kind));
    }
    let count = |digits: &str, one: &str, many: &str| {
        let name = if digits.trim_start_matches('0') == "1" { one } else { many };
        format!("{} {name}", cardinal(digits))
    };
    let large = count(&numeral.whole, kind.one, kind.many);
    // `$20.5` is twenty dollars and fifty cents.
    let cents = format!("{:0<2}", numeral.fraction);
    let small = count(&cents, kind.small_one, kind.small_many);
    match (cardinal(&numeral.whole).as_str(), cents.as_str()) {
        ("zero", "00") => large,
        ("zero", _) => small,
        (_, "00") => large,
        _ => format!("{large} and {small}"),
    }
}

/// `$20/month`, `$15/hr`.
fn per(scan: &mut Scan<'_>, out: &mut Spoken) {
    let Some(text) = scan.rest().strip_prefix('/') else { return };
    let word = letters(text);
    let name = match word {
        "hr" | "h" => "hour",
        "d" => "day",
        "mo" => "month",
        "yr" => "year",
        "wk" => "week",
        "lb" => "pound",
        "oz" => "ounce",
        "kg" => "kilogram",
        "hour" | "day" | "week" | "month" | "year" | "night" | "person" | "head" | "minute"
        | "gallon" | "pound" | "mile" => word,
        _ => return,
    };
    scan.skip(1 + word.len());
    out.number(&format!("per {name}"));
}
