//! Inserts the zero-width non-joiner where a space was typed instead: «می روم», «کتاب ها».
//!
//! Only if another reading is very rare; docs/languages.md lists the rules.

use super::super::symbols::ZWNJ;

/// True if `word` and the previous word are one word written as two.
pub fn joins(before: &str, word: &str) -> bool {
    if !before.ends_with(is_persian) {
        return false;
    }
    match before {
        "می" | "نمی" => is_verb_stem(word) || is_suffix(word),
        _ => is_suffix(word) || after_silent_he(before, word),
    }
}

fn is_persian(c: char) -> bool {
    matches!(c, '\u{621}'..='\u{64A}' | '\u{671}'..='\u{6D3}')
}

/// Plural and comparison: «کتاب ها», «بزرگ ترین».
fn is_suffix(word: &str) -> bool {
    matches!(
        word,
        "ها" | "های"
            | "هایی"
            | "هایم"
            | "هایت"
            | "هایش"
            | "هایمان"
            | "هایتان"
            | "هایشان"
            | "تر"
            | "ترین"
            | "تری"
    )
}

/// What may follow «می» as its verb. The noun «می» (wine) is rare and mostly followed by
/// something else: «می ناب».
fn is_verb_stem(word: &str) -> bool {
    let stem = word.split(ZWNJ).next().unwrap_or_default();
    let long_enough = stem.chars().count() >= 2;
    long_enough && stem.ends_with(['م', 'ی', 'د', 'ت', 'ن', 'ه']) && !NOT_VERBS.contains(&stem)
}

/// Frequent words with a verb's ending.
const NOT_VERBS: &[&str] = &[
    "به", "که", "نه", "چه", "من", "این", "آن", "هم", "همه", "است", "نیست", "صد", "بیست", "هشت",
    "هفت",
];

/// «رفته ام», «خسته ای», «خانه ی»: endings of words in a he that is not spoken.
fn after_silent_he(before: &str, word: &str) -> bool {
    if !matches!(word, "ام" | "ای" | "اند" | "ایم" | "اید" | "ی" | "اش" | "ات") {
        return false;
    }
    let mut letters = before.chars().rev();
    let he = letters.next() == Some('ه');
    // After a long vowel the he is spoken: «راه», «کوه».
    let short = !matches!(letters.next(), Some('ا' | 'آ' | 'و' | 'ی') | None);
    he && short && before.chars().count() >= 3 && !matches!(before, "البته" | "ولیکه" | "هرچه")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_suffixes_join() {
        for (before, word) in [
            ("می", "روم"),
            ("نمی", "دانست"),
            ("می", "کنند"),
            ("کتاب", "ها"),
            ("کتاب", "های"),
            ("بزرگ", "ترین"),
            ("رفته", "ام"),
            ("خسته", "ای"),
            ("خانه", "ی"),
        ] {
            assert!(joins(before, word), "{before} {word}");
        }
    }

    #[test]
    fn other_words_stay_apart() {
        for (before, word) in [
            ("می", "ناب"),
            ("می", "که"),
            ("راه", "ای"),
            ("به", "ای"),
            ("کتاب", "من"),
            ("book", "ها"),
            ("دوست", "ام"),
        ] {
            assert!(!joins(before, word), "{before} {word}");
        }
    }
}
