//! Powers: `10^6`, `1.5e-3`. Arithmetic: `1-2=5`, `6/2 = 3`, `2*3=6`. Elsewhere `1-2` is a range and `6/2` a date or a fraction.
//!
//! In: a scan before a digit. Out: the whole expression as words, if there is an equals sign in it.

use super::super::numeral::{Numeral, digits};
use super::super::scan::Scan;
use super::super::spoken::Spoken;
use super::numbers::{ordinal, value};

/// Numbers of one expression.
const MOST: usize = 12;

/// Reads the expression that begins here.
pub fn try_arithmetic(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let mut words = Vec::new();
    let mut at = 0;
    let (mut signs, mut equals) = (0, 0);
    loop {
        let numeral = Numeral::parse(&text[at..]);
        words.push(value(&numeral));
        at += numeral.len;
        let Some((name, len)) = sign(&text[at..]).filter(|_| words.len() < 2 * MOST) else { break };
        words.push(name.to_owned());
        match name {
            "equals" | "equals minus" => equals += 1,
            _ => signs += 1,
        }
        at += len;
    }
    let ends =
        !text[at..].starts_with(|c: char| c.is_alphanumeric() || matches!(c, '=' | '%' | '$'));
    let found = equals > 0 && signs > 0 && ends;
    if found {
        scan.skip(at);
        out.number(&words.join(" "));
    }
    found
}

/// `10^6`, `10⁶`, `2^-3`, and numbers with an exponent: `1.5e-3`, `6.02e23`.
pub fn try_power(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let numeral = Numeral::parse(text);
    let Some((words, len)) = power(&text[numeral.len..]) else { return false };
    scan.skip(numeral.len + len);
    out.number(&format!("{} {words}", value(&numeral)));
    true
}

/// What is said of an exponent after its base, and its length.
pub fn power(text: &str) -> Option<(String, usize)> {
    let mark = text.chars().next()?;
    if raised(mark).is_some() {
        let written: String = text.chars().map_while(raised).collect();
        let len: usize =
            text.chars().take_while(|c| raised(*c).is_some()).map(char::len_utf8).sum();
        let minus = written.strip_prefix('-');
        return exponent(minus.unwrap_or(&written), minus.is_some()).map(|words| (words, len));
    }
    let times_ten = matches!(mark, 'e' | 'E');
    if !times_ten && mark != '^' {
        return None;
    }
    let rest = &text[1..];
    let signed = rest.strip_prefix(['-', '−', '+']);
    let number = digits(signed.unwrap_or(rest));
    let minus = signed.is_some() && !rest.starts_with('+');
    let len = text.len() - signed.unwrap_or(rest).len() + number.len();
    let ends = !text[len..].starts_with(|c: char| c.is_alphanumeric());
    // `2E5` may be a part number.
    if !ends || mark == 'E' && signed.is_none() || number.len() > 3 {
        return None;
    }
    match exponent(number, minus)? {
        words if !times_ten => Some((words, len)),
        _ => Some((format!("times ten to the {}", in_order(number, minus)), len)),
    }
}

/// `squared`, `to the sixth`, `to the minus third`.
fn exponent(number: &str, minus: bool) -> Option<String> {
    match (number, minus) {
        ("", _) => None,
        (_, _) if number.len() > 3 || !number.bytes().all(|b| b.is_ascii_digit()) => None,
        ("2", false) => Some("squared".into()),
        ("3", false) => Some("cubed".into()),
        _ => Some(format!("to the {}", in_order(number, minus))),
    }
}

fn in_order(number: &str, minus: bool) -> String {
    format!("{}{}", if minus { "minus " } else { "" }, ordinal(number))
}

/// The character that a superscript stands for.
fn raised(c: char) -> Option<char> {
    Some(match c {
        '⁰' => '0',
        '¹' => '1',
        '²' => '2',
        '³' => '3',
        '⁴'..='⁹' => char::from(b'4' + u8::try_from(u32::from(c) - u32::from('⁴')).ok()?),
        '⁻' => '-',
        _ => return None,
    })
}

/// A sign with a number after it, and the length up to the number.
fn sign(text: &str) -> Option<(&'static str, usize)> {
    let trimmed = text.trim_start_matches(' ');
    let mark = trimmed.chars().next()?;
    let name = match mark {
        '+' => "plus",
        '-' | '−' | '–' => "minus",
        '*' | '×' | 'x' | '·' => "times",
        '/' | '÷' => "divided by",
        '=' => "equals",
        _ => return None,
    };
    let rest = &trimmed[mark.len_utf8()..];
    let number = rest.trim_start_matches(' ');
    let gap = (text.len() - trimmed.len()).max(rest.len() - number.len());
    if gap > 1 {
        return None;
    }
    // `5 = -3`
    let (name, number) = match number.strip_prefix(['-', '−']).filter(|_| name == "equals") {
        Some(number) => ("equals minus", number),
        None => (name, number),
    };
    number.starts_with(|c: char| c.is_ascii_digit()).then(|| (name, text.len() - number.len()))
}
