//! Formulas inside a text: `f(x)`, `sin(x)`, `mc²`, `a/b`, `NaCl`.
//!
//! In: a scan before a word. Out: letters by their names, and the words between them. Only what cannot be a word of a sentence
//! is read so: `and/or`, `book(s)` and `b/c` are not formulas.

use super::super::numeral::digits;
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::arithmetic;
use super::numbers::cardinal;
use super::signs::greek;
use super::units::unit;

/// Reads the formula that begins here.
pub fn try_formula(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let joined = |c: char| c.is_alphanumeric() || matches!(c, '/' | '-' | '\'' | '&' | '.' | '@');
    if scan.before().is_some_and(joined) {
        return false;
    }
    try_function(scan, out)
        || try_ratio(scan, out)
        || try_product(scan, out)
        || try_compound(scan, out)
}

/// `f(x)`, `cos(2t)`, `log(10)`: the argument is one variable or one number.
fn try_function(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let name = letters(text);
    let Some((argument, after)) =
        text[name.len()..].strip_prefix('(').and_then(|rest| rest.split_once(')'))
    else {
        return false;
    };
    let number = digits(argument);
    let variable = &argument[number.len()..];
    let mut symbols = variable.chars();
    let known = match (symbols.next(), symbols.next()) {
        (None, _) => !number.is_empty(),
        (Some(symbol), None) => symbol.is_ascii_alphabetic() || greek(symbol).is_some(),
        _ => false,
    };
    let function = match name {
        "sin" => "sine",
        "cos" => "cosine",
        "tan" => "tangent",
        "ln" => "natural log",
        "log" => "log",
        "exp" => "exponential",
        "sqrt" => "square root",
        "f" | "g" | "h" | "u" | "v" | "F" | "G" | "H" | "P" if !variable.is_empty() => "",
        _ => return false,
    };
    if !known || number.len() > 4 || after.starts_with(char::is_alphanumeric) {
        return false;
    }
    scan.skip(text.len() - after.len());
    match function {
        "" => spell(name, out),
        words => out.phrase(words),
    }
    out.phrase("of");
    if !number.is_empty() {
        out.number(&cardinal(number));
    }
    match variable.chars().next().and_then(greek) {
        Some(words) => out.phrase(words),
        None => spell(variable, out),
    }
    true
}

/// `a/b`: one variable over another.
fn try_ratio(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    // `b/c`, `n/a`, `y/n` and the like are short for words.
    const TOP: [&str; 9] = ["a", "d", "f", "m", "p", "q", "u", "v", "x"];
    const BOTTOM: [&str; 9] = ["b", "d", "g", "n", "q", "r", "t", "x", "y"];
    let text = scan.rest();
    let top = letters(text);
    let Some(rest) = text[top.len()..].strip_prefix('/') else { return false };
    let bottom = letters(rest);
    let ends = !rest[bottom.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '/');
    let found = TOP.contains(&top) && BOTTOM.contains(&bottom) && top != bottom && ends;
    if found {
        scan.skip(top.len() + 1 + bottom.len());
        spell(top, out);
        out.phrase("over");
        spell(bottom, out);
    }
    found
}

/// The `mc` of `mc²`: the power is read next.
fn try_product(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let text = scan.rest();
    let word = letters(text);
    let variables = word.len() == 2 && word.bytes().all(|b| b.is_ascii_lowercase());
    let raised = text[word.len()..].starts_with(['^', '²', '³']);
    if !variables || !raised || unit(word).is_some() {
        return false;
    }
    let found = arithmetic::power(&text[word.len()..]).is_some();
    if found {
        scan.skip(word.len());
        spell(word, out);
    }
    found
}

/// `NaCl`, `CaCO3`: two or more elements, one of them with two letters; others look like acronyms.
fn try_compound(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    #[rustfmt::skip]
    const ELEMENTS: &[&str] = &[
        "Li", "Be", "Na", "Mg", "Al", "Si", "Cl", "Ca", "Ti", "Cr", "Mn", "Fe", "Ni", "Cu", "Zn", "Br", "Ag", "Sn",
        "Ba", "Au", "Hg", "Pb", "H", "B", "C", "N", "O", "F", "P", "S", "K", "I",
    ];
    let text = scan.rest();
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(element) = ELEMENTS.iter().find(|element| text[at..].starts_with(**element)) {
        at += element.len();
        let count = digits(&text[at..]);
        at += count.len();
        parts.push((*element, count));
    }
    let whole = !text[at..].starts_with(|c: char| c.is_alphanumeric() || c == '\'');
    let telling = parts.iter().any(|(element, _)| element.len() == 2);
    if parts.len() < 2 || parts.len() > 6 || !whole || !telling {
        return false;
    }
    scan.skip(at);
    for (element, count) in parts {
        spell(element, out);
        if !count.is_empty() {
            out.number(&cardinal(count));
        }
    }
    true
}

/// Letters by their names.
fn spell(letters: &str, out: &mut Spoken) {
    for letter in letters.chars() {
        out.gap();
        out.letter(letter.to_ascii_lowercase());
    }
    out.end_number();
}
