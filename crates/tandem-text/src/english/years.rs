//! Decides whether a number is a year or a quantity, from the words around it.

use super::super::scan::Scan;

/// The year that `digits` represent, if the context indicates one. `scan` is after them, `start` before them.
pub fn year_here(digits: &str, start: &Scan<'_>, scan: &Scan<'_>) -> Option<u32> {
    let value: u32 = digits.parse().ok().filter(|_| matches!(digits.len(), 3 | 4))?;
    let before = start.word_before();
    if is_era(scan.rest().trim_start()) || is_era(start.token_before()) {
        return (100..2100).contains(&value).then_some(value);
    }
    if digits.len() == 3 {
        return None;
    }
    if is_any(before, YEAR_CUES) && (1000..2100).contains(&value) {
        return Some(value);
    }
    let counted = is_any(before, QUANTITY_CUES) || is_counted(scan.word_after());
    ((1100..2100).contains(&value) && !counted).then_some(value)
}

/// `AD`, `B.C.` at the beginning of a text.
fn is_era(text: &str) -> bool {
    ["AD", "CE", "BC", "BCE", "A.D", "B.C", "C.E", "B.C.E"].iter().any(|era| {
        text.strip_prefix(era).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    })
}

/// A plural noun after the number counts it: `1500 soldiers`.
pub fn is_counted(next: &str) -> bool {
    if is_any(next, COUNTED) {
        return true;
    }
    let plural = next.len() > 3
        && next.ends_with('s')
        && !next.ends_with("ss")
        && next.starts_with(|c: char| c.is_ascii_lowercase());
    plural && !is_any(next, NOT_PLURAL)
}

fn is_any(word: &str, list: &[&str]) -> bool {
    list.iter().any(|known| word.eq_ignore_ascii_case(known))
}

#[rustfmt::skip]
const YEAR_CUES: &[&str] = &[
    "in", "since", "until", "till", "year", "years", "during", "circa", "before", "after", "early",
    "late", "mid", "circa", "established", "spring", "summer", "autumn", "fall", "winter", "christmas", "january", "february",
    "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
];

#[rustfmt::skip]
const QUANTITY_CUES: &[&str] = &[
    "about", "nearly", "almost", "over", "than", "exactly", "only", "approximately", "roughly", "some",
    "another", "every", "least", "most", "number", "numbers", "page", "pages", "times", "these", "those",
];

#[rustfmt::skip]
const COUNTED: &[&str] = &[
    "people", "men", "women", "children", "feet", "percent", "million", "billion", "thousand", "sheep",
    "fish", "cattle", "horsepower", "head", "troops", "times", "yen", "kilohertz", "hertz",
];

#[rustfmt::skip]
const NOT_PLURAL: &[&str] = &[
    "this", "thus", "does", "always", "perhaps", "besides", "across", "towards", "afterwards",
    "plus", "minus", "versus", "sometimes", "hers", "ours", "theirs", "olympics", "census", "elections",
    "series", "sees", "marks", "brings", "comes", "saw",
];
