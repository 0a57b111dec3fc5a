//! One spelling for Persian letters: Arabic code points folded, diacritics by policy.
//!
//! Rules (see docs/languages.md): ي ى ے -> ی, ك -> ک, ة ہ ھ ە -> ه, ۀ and هٔ -> ه‌ی,
//! إ ٱ -> ا, أ -> ا at the beginning of a word. ئ ؤ ء آ and أ inside a word stay.

use super::super::DiacriticsPolicy;
use super::super::symbols::ZWNJ;

const FATHATAN: char = '\u{64B}';
const HAMZA_ABOVE: char = '\u{654}';

/// True for characters inside a word of Arabic letters.
#[inline]
pub fn in_word(c: char) -> bool {
    matches!(u32::from(c), 0x300..=0x36F | 0x621..=0x63F | 0x641..=0x65F | 0x66E..=0x6D3 | 0x6D5 | 0x6FA..=0x6FF | 0x200C)
}

/// True for a vowel sign or another mark above or below a letter.
pub fn is_mark(c: char) -> bool {
    matches!(u32::from(c), 0x64B..=0x65F | 0x670)
}

/// Folds every word of a text; other characters are unchanged.
pub fn fold_text(text: &str, policy: DiacriticsPolicy) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut word = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !in_word(c)).unwrap_or(rest.len());
        if rest[..end].chars().all(is_plain) {
            out.push_str(&rest[..end]);
        } else {
            word.clear();
            fold_word(&rest[..end], policy, &mut word);
            out.push_str(&word);
        }
        rest = &rest[end..];
        let end = rest.find(in_word).unwrap_or(rest.len());
        out.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

/// True for letters that no rule changes: most words have no others.
#[inline]
fn is_plain(c: char) -> bool {
    matches!(c, 'ا'..='غ' | 'ف' | 'ق' | 'ل'..='و' | 'آ' | 'ئ' | 'ؤ' | 'ء' | 'پ' | 'چ' | 'ژ' | 'ک' | 'گ' | 'ی')
        && c != 'ة'
}

/// Writes the folded letters of `word` into `out`, which is empty.
fn fold_word(word: &str, policy: DiacriticsPolicy, out: &mut String) {
    for c in word.chars() {
        match c {
            // Accents of other scripts: no Persian letter has one.
            '\u{300}'..='\u{36F}' => {}
            'ي' | 'ى' | 'ے' => out.push('ی'),
            'ك' | 'ڪ' => out.push('ک'),
            'ة' | 'ہ' | 'ھ' | 'ە' | 'ۃ' => out.push('ه'),
            'ۀ' | 'ۂ' => out.push_str("ه\u{200C}ی"),
            'إ' | 'ٱ' => push_alef(out),
            'أ' if out.is_empty() || out.ends_with(ZWNJ) => push_alef(out),
            'ا' => push_alef(out),
            ZWNJ => {
                if !out.is_empty() && !out.ends_with(ZWNJ) {
                    out.push(ZWNJ);
                }
            }
            HAMZA_ABOVE => hamza(out),
            _ if is_mark(c) => mark(c, policy, out),
            _ => out.push(c),
        }
    }
    let end = out.trim_end_matches(ZWNJ).len();
    out.truncate(end);
}

/// «ًا» and «اً» are one spelling: the tanvin goes after its alef.
fn push_alef(out: &mut String) {
    if out.ends_with(FATHATAN) {
        out.pop();
        out.push('ا');
        out.push(FATHATAN);
    } else {
        out.push('ا');
    }
}

/// A hamza that Unicode does not compose with the letter before it.
fn hamza(out: &mut String) {
    if out.ends_with('ه') {
        out.push_str("\u{200C}ی");
    } else if out.ends_with('ی') {
        out.pop();
        out.push('ئ');
    }
}

/// Tanvin fathe is part of the spelling («حتماً») and stays; short vowels go by policy.
fn mark(c: char, policy: DiacriticsPolicy, out: &mut String) {
    let kept = match policy {
        DiacriticsPolicy::Keep => matches!(u32::from(c), 0x64B..=0x652 | 0x670),
        DiacriticsPolicy::Strip => c == FATHATAN,
    };
    let doubled = out.ends_with(c);
    if kept && !out.is_empty() && !out.ends_with(ZWNJ) && !doubled {
        out.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, policy: DiacriticsPolicy, folded: &str) {
        let mut out = String::new();
        fold_word(word, policy, &mut out);
        assert_eq!(out, folded, "{word}");
    }

    #[test]
    fn arabic_code_points_become_persian_letters() {
        for (word, folded) in [
            ("علي", "علی"),
            ("كتاب", "کتاب"),
            ("موسى", "موسی"),
            ("دايرة", "دایره"),
            ("خانۀ", "خانه\u{200C}ی"),
            ("خانه\u{654}", "خانه\u{200C}ی"),
            ("أحمد", "احمد"),
            ("إيران", "ایران"),
            ("تأثیر", "تأثیر"),
            ("مسئول", "مسئول"),
            ("رؤیا", "رؤیا"),
            ("جزء", "جزء"),
            ("آب", "آب"),
        ] {
            check(word, DiacriticsPolicy::Strip, folded);
        }
    }

    #[test]
    fn short_vowels_follow_the_policy_and_tanvin_stays() {
        check("کِتابِ", DiacriticsPolicy::Strip, "کتاب");
        check("کِتابِ", DiacriticsPolicy::Keep, "کِتابِ");
        check("مُحَمَّد", DiacriticsPolicy::Strip, "محمد");
        check("حتماً", DiacriticsPolicy::Strip, "حتماً");
        check("حتمًا", DiacriticsPolicy::Strip, "حتماً");
    }

    #[test]
    fn zwnj_is_single_and_inside() {
        check("\u{200C}می\u{200C}\u{200C}روم\u{200C}", DiacriticsPolicy::Strip, "می\u{200C}روم");
    }
}
