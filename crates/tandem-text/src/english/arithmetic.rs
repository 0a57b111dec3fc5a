//! Arithmetic: `1-2=5`, `6/2 = 3`, `2*3=6`. Elsewhere `1-2` is a range and `6/2` a date or a fraction.
//!
//! In: a scan before a digit. Out: the whole expression as words, if there is an equals sign in it.

use super::super::numeral::Numeral;
use super::super::scan::Scan;
use super::super::spoken::Spoken;
use super::numbers::value;

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
