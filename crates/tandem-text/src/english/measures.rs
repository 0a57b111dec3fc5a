//! What follows a number and belongs to it: `50 %`, `5 km`, `20 €`, `100 USD`, `a 5-km run`.
//!
//! In: a scan after a number. Out: the name, singular or plural. Names are in [`super::units`].

use super::super::numeral::{Numeral, digits};
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::clock::ends_sentence;
use super::numbers::value;
use super::units::{Currency, Unit, code, currency, unit};

/// How far the other mark of a quotation is looked for, in bytes.
const LONGEST_QUOTE: usize = 2000;

/// How many there are, for the form of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    One,
    Many,
}

impl Count {
    pub fn of(numeral: &Numeral<'_>) -> Count {
        if numeral.is_one() { Count::One } else { Count::Many }
    }

    fn of_unit(self, found: &Unit) -> &str {
        if self == Count::One { &found.one } else { &found.many }
    }

    pub fn of_currency(self, kind: Currency) -> &'static str {
        if self == Count::One { kind.one } else { kind.many }
    }
}

/// Writes the number and what belongs to it. `before` is the scan before the number.
pub fn try_measure(
    scan: &mut Scan<'_>,
    out: &mut Spoken,
    numeral: &Numeral<'_>,
    before: &Scan<'_>,
) -> bool {
    if try_compound(scan, out, numeral)
        || try_height(scan, out, numeral)
        || try_inches(scan, out, numeral, before)
    {
        return true;
    }
    let measure = next_measure(scan, numeral).or_else(|| inches(scan, before));
    let Some((found, after)) = measure else { return false };
    *scan = after;
    if found.many == "degrees" && degrees_follow(scan) {
        out.number(&value(numeral));
        return true;
    }
    let count = if is_attributive(before, scan) { Count::One } else { Count::of(numeral) };
    out.number(&format!("{} {}", value(numeral), count.of_unit(&found)));
    true
}

/// `20°–25°C`: the second number has the name for both.
fn degrees_follow(scan: &Scan<'_>) -> bool {
    let Some(text) = scan.rest().strip_prefix(['-', '–']) else { return false };
    let number = Numeral::parse(text);
    number.len > 0 && text[number.len..].starts_with('°')
}

/// Writes what belongs to a fraction that was written before.
pub fn measure_after(scan: &mut Scan<'_>, out: &mut Spoken, count: Count) {
    let numeral = Numeral::parse("2");
    if let Some((found, after)) = next_measure(scan, &numeral) {
        *scan = after;
        out.number(count.of_unit(&found));
    }
}

/// The measure after the number, and the scan after it.
fn next_measure<'a>(scan: &Scan<'a>, numeral: &Numeral<'_>) -> Option<(Unit, Scan<'a>)> {
    let rest = scan.rest();
    let text = rest.strip_prefix(' ').unwrap_or(rest);
    let gap = rest.len() - text.len();
    let mut after = *scan;
    let plain = |name: &str| Unit { one: name.into(), many: name.into(), len: 0, dotted: false };
    let found = match text.chars().next()? {
        '%' => Unit { len: 1, ..plain("percent") },
        '‰' => Unit { len: 3, ..plain("per mille") },
        'p' if gap == 0 && is_pence(text, numeral) => {
            Unit { one: "penny".into(), many: "pence".into(), len: 1, dotted: false }
        }
        _ => match currency_after(text) {
            Some((kind, len)) => {
                Unit { one: kind.one.into(), many: kind.many.into(), len, dotted: false }
            }
            None => temperature(text, numeral).or_else(|| unit(text))?,
        },
    };
    after.skip(gap + found.len);
    if found.dotted && after.rest().starts_with('.') && !ends_sentence(&after.rest()[1..]) {
        after.skip(1);
    }
    Some((found, after))
}

/// `5 ft 10 in`: after feet, `in` needs no dot to be inches.
fn inches<'a>(scan: &Scan<'a>, before: &Scan<'_>) -> Option<(Unit, Scan<'a>)> {
    let after_feet = matches!(before.word_before(), "ft" | "feet" | "foot");
    let rest = scan.rest();
    let text = rest.strip_prefix(' ').unwrap_or(rest);
    if !after_feet || letters(text) != "in" {
        return None;
    }
    let mut after = *scan;
    after.skip(rest.len() - text.len() + 2);
    Some((Unit { one: "inch".into(), many: "inches".into(), len: 2, dotted: false }, after))
}

/// `98.6 F`: with decimals a letter is a temperature.
fn temperature(text: &str, numeral: &Numeral<'_>) -> Option<Unit> {
    let scale = match letters(text) {
        "F" => "fahrenheit",
        "C" => "celsius",
        _ => return None,
    };
    let name = format!("degrees {scale}");
    (!numeral.fraction.is_empty()).then(|| Unit {
        one: name.clone(),
        many: name,
        len: 1,
        dotted: false,
    })
}

/// `50p`, but not `1080p`.
fn is_pence(text: &str, numeral: &Numeral<'_>) -> bool {
    letters(text) == "p"
        && numeral.is_plain()
        && numeral.whole.len() <= 2
        && !text[1..].starts_with('.')
}

/// A currency that belongs to the number before it: not the `$` of `5 $6`.
fn currency_after(text: &str) -> Option<(Currency, usize)> {
    let sign = text.chars().next()?;
    if sign.is_ascii_uppercase() {
        let word = letters(text);
        return code(word).map(|kind| (kind, word.len()));
    }
    let kind = currency(sign)?;
    let free = digits(&text[sign.len_utf8()..]).is_empty();
    free.then_some((kind, sign.len_utf8()))
}

/// `a 5-km run`: the unit stays singular.
fn try_compound(scan: &mut Scan<'_>, out: &mut Spoken, numeral: &Numeral<'_>) -> bool {
    let Some(text) = scan.rest().strip_prefix('-') else { return false };
    let Some(found) = unit(text) else { return false };
    if text[found.len..].starts_with('-') {
        return false;
    }
    scan.skip(1 + found.len);
    out.number(&value(numeral));
    out.hyphen();
    out.number(&found.one);
    true
}

/// `5'10"`: feet and inches.
fn try_height(scan: &mut Scan<'_>, out: &mut Spoken, numeral: &Numeral<'_>) -> bool {
    let Some(text) = scan.rest().strip_prefix('\'') else { return false };
    let inches = digits(text);
    let whole = numeral.is_plain() && (1..=2).contains(&inches.len());
    if !whole || !text[inches.len()..].starts_with('"') {
        return false;
    }
    scan.skip(2 + inches.len());
    let feet = if numeral.is_one() { "foot" } else { "feet" };
    let inch = if inches == "1" { "inch" } else { "inches" };
    let inches = super::numbers::cardinal(inches);
    out.number(&format!("{} {feet} {inches} {inch}", value(numeral)));
    true
}

/// `12"`: inches, where no quotation is open.
fn try_inches(
    scan: &mut Scan<'_>,
    out: &mut Spoken,
    numeral: &Numeral<'_>,
    before: &Scan<'_>,
) -> bool {
    let Some(after) = scan.rest().strip_prefix('"') else { return false };
    let closes = scan.before_text(LONGEST_QUOTE).matches('"').count() % 2 == 1;
    // `say 5" and "six"`: the marks after it are a pair without this one.
    let after = &after[..after.floor_char_boundary(LONGEST_QUOTE)];
    let paired = after.matches('"').count() % 2 == 1;
    if closes || paired || after.starts_with(|c: char| c.is_alphanumeric()) {
        return false;
    }
    scan.skip(1);
    let one = numeral.is_one() || is_attributive(before, scan);
    let name = if one { "inch" } else { "inches" };
    out.number(&format!("{} {name}", value(numeral)));
    true
}

/// `a 12V battery`, `a $5 bill`: between an article and a noun the name is singular.
pub fn is_attributive(before: &Scan<'_>, after: &Scan<'_>) -> bool {
    let article = before.word_before();
    let rest = after.rest();
    let noun = after.word_after();
    let joined = rest.starts_with('-') && letters(&rest[1..]).starts_with(char::is_lowercase);
    let noun = noun.starts_with(|c: char| c.is_ascii_lowercase()) && !is_function_word(noun);
    (article.eq_ignore_ascii_case("a") || article.eq_ignore_ascii_case("an")) && (noun || joined)
}

fn is_function_word(word: &str) -> bool {
    matches!(
        word,
        "of" | "in"
            | "on"
            | "at"
            | "and"
            | "or"
            | "to"
            | "from"
            | "per"
            | "a"
            | "an"
            | "each"
            | "for"
            | "more"
            | "less"
            | "by"
            | "off"
            | "is"
            | "was"
    )
}
