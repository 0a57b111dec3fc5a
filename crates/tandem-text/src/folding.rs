//! Unicode normalisation for all languages: one encoding for each character.
//!
//! In: raw text. Out: composed text with plain quotes, spaces and digits, without invisible
//! controls. Keeps case, ZWNJ and the signs that number rules need (`½`, `²`, `°`): their
//! meaning depends on the language. Next on the path: [`super::english`] and others.

use super::symbols::ZWNJ;
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::decompose_compatible;

/// Folds everything that does not depend on the language. ASCII is unchanged.
pub fn fold(raw: &str) -> Cow<'_, str> {
    if raw.is_ascii() {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len() + 8);
    if is_settled(raw) {
        raw.chars().for_each(|c| fold_char(c, &mut out));
    } else {
        // Removed first: a joiner between a letter and its mark would prevent composition.
        let mut parts = String::with_capacity(raw.len() + 8);
        raw.chars().filter(|c| !is_dropped(*c)).for_each(|c| push_compatible(c, &mut parts));
        parts.nfc().for_each(|c| fold_char(c, &mut out));
    }
    Cow::Owned(out)
}

/// True if normalisation would change nothing. A false negative only costs time.
fn is_settled(raw: &str) -> bool {
    let mut after_mark = false;
    raw.chars().all(|c| {
        let mark = matches!(c, '\u{64B}'..='\u{652}');
        // One vowel sign composes with nothing; two may be in the wrong order.
        let settled =
            if mark { !after_mark } else { is_composed(c) && !(after_mark && is_dropped(c)) };
        after_mark = mark;
        settled
    })
}

/// True for characters that normalisation never changes, whatever their neighbours are.
#[inline]
fn is_composed(c: char) -> bool {
    matches!(u32::from(c),
        0..=0x9F | 0xA1..=0xA7 | 0xA9 | 0xAB..=0xAE | 0xB0 | 0xB1 | 0xB6 | 0xB7 | 0xBB | 0xBF
        | 0xC0..=0x131 | 0x134..=0x13E | 0x141..=0x148 | 0x14A..=0x17E
        | 0x400..=0x482 | 0x48A..=0x52F
        | 0x600..=0x64A | 0x660..=0x66F | 0x671..=0x674 | 0x679..=0x6D4 | 0x6F0..=0x6FF
        | 0x200B..=0x2010 | 0x2012..=0x2016 | 0x2018..=0x2022 | 0x2026 | 0x2028..=0x202E
        | 0x2066..=0x2069)
}

/// One character's compatibility form, unless that would lose the meaning:
/// `10²` is not `102`, `½` is read as a fraction, `™` is not spoken `TM`.
fn push_compatible(c: char, out: &mut String) {
    let kept = matches!(u32::from(c),
        0xA8 | 0xAA | 0xAF | 0xB2..=0xB4 | 0xB8..=0xBA | 0xBC..=0xBE | 0x2026 | 0x2032..=0x2037
        | 0x2070..=0x207F | 0x2120 | 0x2122 | 0x2150..=0x215F | 0xFDFC);
    if kept || is_composed(c) {
        out.push(c);
    } else {
        decompose_compatible(c, |part| {
            if !is_dropped(part) {
                out.push(part);
            }
        });
    }
}

#[inline]
fn fold_char(c: char, out: &mut String) {
    if c.is_ascii() {
        out.push(c);
        return;
    }
    match c {
        // The common letters first, past the long list below.
        ZWNJ | '\u{620}'..='\u{63F}' | '\u{641}'..='\u{64A}' | '\u{671}'..='\u{6D3}' => out.push(c),
        '٠'..='٩' => out.push(digit(u32::from(c) - u32::from('٠'))),
        '۰'..='۹' => out.push(digit(u32::from(c) - u32::from('۰'))),
        '،' => out.push(','),
        '؛' => out.push(';'),
        '؟' | '⸮' => out.push('?'),
        '۔' | '。' => out.push('.'),
        '٪' => out.push('%'),
        '\u{2018}'..='\u{201B}' | '\u{2039}' | '\u{203A}' | '´' | 'ʼ' | 'ʹ' | '′' => {
            out.push('\'')
        }
        '\u{201C}'..='\u{201F}' | '«' | '»' | '″' => out.push('"'),
        '\u{2010}' | '\u{2011}' => out.push('-'),
        '\u{2012}' | '\u{2013}' => out.push('–'),
        '\u{2014}' | '\u{2015}' | '⸺' | '⸻' => out.push('—'),
        '\u{2044}' | '\u{2215}' => out.push('/'),
        _ if is_dropped(c) => {}
        _ if c.is_whitespace() => out.push(' '),
        _ => out.push(c),
    }
}

/// Invisible characters: kashida, soft hyphen, joiners, direction and variation controls.
#[inline]
fn is_dropped(c: char) -> bool {
    matches!(u32::from(c),
        0x640 | 0xAD | 0x61C | 0x200B | 0x200D..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F
        | 0xFE00..=0xFE0F | 0xFEFF)
}

fn digit(value: u32) -> char {
    char::from_digit(value, 10).unwrap_or('0')
}

/// Lower case of one character, without the dot that `İ` would leave behind.
#[inline]
pub fn push_lower(c: char, out: &mut String) {
    if c.is_ascii() {
        out.push(c.to_ascii_lowercase());
    } else if c == 'İ' {
        out.push('i');
    } else {
        out.extend(c.to_lowercase());
    }
}

/// Which character of `raw`, counted from 1, gave `symbol` in the normalised text.
pub fn locate(raw: &str, symbol: char) -> usize {
    let gives = |part: &str| {
        let mut lower = String::new();
        fold(part).chars().for_each(|c| push_lower(c, &mut lower));
        lower.contains(symbol)
    };
    let chars: Vec<char> = raw.chars().collect();
    let alone = chars.iter().position(|c| gives(c.encode_utf8(&mut [0; 4])));
    // Not found: two characters were composed into one.
    let composed = || chars.windows(2).position(|pair| gives(&String::from_iter(pair)));
    alone.or_else(composed).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(raw: &str, folded: &str) {
        assert_eq!(fold(raw), folded, "{}", raw.escape_unicode());
    }

    #[test]
    fn equivalent_characters_get_one_encoding() {
        check("caf\u{65}\u{301}", "café");
        check("\u{627}\u{653}ب", "آب");
        check("ﬁne ﬂow", "fine flow");
        check("Ｆｕｌｌ　ｗｉｄｔｈ １２", "Full width 12");
        check("“a” ‘b’ «c»", "\"a\" 'b' \"c\"");
        check("a\u{a0}b\u{2009}c", "a b c");
        check("۱۲۳ ٤٥٦", "123 456");
        check("کتـــاب", "کتاب");
        check("ﻛﺘﺎﺏ", "كتاب");
        check("a،b؛c؟", "a,b;c?");
        check("Ⅳ", "IV");
        check("H₂O", "H2O");
    }

    #[test]
    fn invisible_controls_are_removed_and_zwnj_stays() {
        check("\u{feff}a\u{200b}b\u{200f}c\u{ad}d\u{202a}e", "abcde");
        check("می\u{200c}روم", "می\u{200c}روم");
    }

    #[test]
    fn signs_that_number_rules_need_stay() {
        for sign in ["½", "x²", "5°", "10⁶", "™", "﷼"] {
            check(sign, sign);
        }
    }

    #[test]
    fn plain_text_is_not_copied() {
        assert!(matches!(fold("plain"), Cow::Borrowed(_)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn folding_twice_changes_nothing(raw in "\\PC{0,40}") {
            let once = fold(&raw).into_owned();
            prop_assert_eq!(fold(&once), once.as_str());
        }
    }
}
