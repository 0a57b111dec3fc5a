//! Letters without their accents.
//!
//! In: folded text. Out: the same text in the letters that English voices are trained with.

use super::super::symbols::ZWNJ;
use super::super::words::{PHONEMES_BEGIN, PHONEMES_END};
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// Removes accents from Latin letters: the few French words in English text would otherwise use
/// symbols that are hardly ever trained.
pub fn without_accents(folded: &str) -> String {
    let mut out = String::with_capacity(folded.len());
    let mut in_phonemes = false;
    for c in folded.chars() {
        in_phonemes = c == PHONEMES_BEGIN || in_phonemes && c != PHONEMES_END;
        match c {
            _ if c.is_ascii() || in_phonemes => out.push(c),
            ZWNJ => {}
            '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}' => {
                decompose_canonical(c, |part| push_base(part, &mut out));
            }
            _ => push_base(c, &mut out),
        }
    }
    out
}

fn push_base(c: char, out: &mut String) {
    match c {
        'æ' => out.push_str("ae"),
        'Æ' => out.push_str("Ae"),
        'œ' => out.push_str("oe"),
        'Œ' => out.push_str("Oe"),
        'ß' | 'ẞ' => out.push_str("ss"),
        'ø' => out.push('o'),
        'Ø' => out.push('O'),
        'ł' => out.push('l'),
        'Ł' => out.push('L'),
        'đ' | 'ð' => out.push('d'),
        'Đ' | 'Ð' => out.push('D'),
        'þ' => out.push_str("th"),
        'Þ' => out.push_str("Th"),
        'ı' => out.push('i'),
        _ if is_combining_mark(c) => {}
        _ => out.push(c),
    }
}
