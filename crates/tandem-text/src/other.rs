//! Normalisation of languages below level Full: lower case, one kind of quote and dash, numbers where there are rules.
//!
//! In: folded text. Out: letters and the shared punctuation. Other signs stay in the text, and digits at level Basic, because
//! there are no rules for them; the caller reports the first one.

mod numbers; // digits as words, in eight languages

use super::DiacriticsPolicy;
use super::folding::push_lower;
use super::language::Language;
use super::scan::Scan;
use super::spoken::Spoken;
use super::symbols::ZWNJ;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Converts folded text to lower case by the rules of `language` and normalises its punctuation.
pub fn normalize(folded: &str, language: Language, policy: DiacriticsPolicy) -> String {
    let lower = lower_case(folded, language, policy);
    let mut scan = Scan::new(&lower);
    let mut out = Spoken::with_capacity(lower.len());
    while let Some(next) = scan.peek() {
        let may_be_number = next.is_ascii_digit() || matches!(next, '-' | '−');
        if may_be_number && number(&mut scan, &mut out, language) {
            continue;
        }
        if next == '.' {
            dots(&mut scan, &mut out);
            continue;
        }
        let before = scan.before();
        scan.skip_char(next);
        let letter_next = scan.peek().is_some_and(char::is_alphabetic);
        let inside = before.is_some_and(char::is_alphabetic) && letter_next;
        match next {
            _ if next.is_alphabetic() => {
                out.begin_word();
                out.letters().push(next);
            }
            _ if next.is_whitespace() => out.gap(),
            ',' | '!' | '?' | ';' | ':' | ')' | '…' => out.close(next),
            ']' | '}' => out.close(')'),
            '(' | '[' | '{' => out.open('('),
            '¿' | '¡' => out.open(next),
            '"' => out.quote(),
            '\'' if inside => out.letters().push('\''),
            '\'' | '`' => out.gap(),
            '-' if inside => out.hyphen(),
            '-' if before.is_some_and(char::is_alphabetic) => out.gap(),
            '-' | '–' | '—' => out.dash(),
            _ => out.unknown(next),
        }
    }
    out.finish()
}

/// Letters first, so that the rules for marks see the final letters.
fn lower_case(folded: &str, language: Language, policy: DiacriticsPolicy) -> String {
    let mut lower = String::with_capacity(folded.len());
    for c in folded.chars() {
        match (language, c) {
            (Language::Turkish, 'I') => lower.push('ı'),
            (_, ZWNJ) => {}
            (_, '\u{64B}'..='\u{652}' | '\u{670}') if policy == DiacriticsPolicy::Strip => {}
            _ => push_lower(c, &mut lower),
        }
    }
    // A removed character may have separated a letter from its combining mark.
    if lower.chars().any(is_combining_mark) { lower.nfc().collect() } else { lower }
}

/// A number with its sign, in a language with rules for them.
fn number(scan: &mut Scan<'_>, out: &mut Spoken, language: Language) -> bool {
    let text = scan.rest();
    let digits = text.trim_start_matches(['-', '−']);
    let signed = digits.len() < text.len();
    let free = scan.before().is_none_or(|c| c.is_whitespace() || c == '(');
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || signed && !free {
        return false;
    }
    let Some((words, len)) = numbers::read(digits, language) else { return false };
    if let Some(minus) = numbers::minus(language).filter(|_| signed) {
        out.number(minus);
    }
    out.number(&words);
    scan.skip(text.len() - digits.len() + len);
    true
}

fn dots(scan: &mut Scan<'_>, out: &mut Spoken) {
    let rest = scan.rest();
    let run = rest.len() - rest.trim_start_matches('.').len();
    scan.skip(run);
    out.close(if run < 3 { '.' } else { '…' });
}

#[cfg(test)]
mod tests {
    use super::super::folding::fold;
    use super::*;

    #[track_caller]
    fn check(language: Language, raw: &str, spoken: &str) {
        let read = |raw: &str| normalize(&fold(raw), language, DiacriticsPolicy::Strip);
        assert_eq!(read(raw), spoken);
        assert_eq!(read(spoken), spoken, "reading it again");
    }

    #[test]
    fn each_language_gets_its_own_lower_case() {
        check(Language::German, "Schöne Grüße, „Straße“!", "schöne grüße, \"straße\"!");
        check(Language::French, "L’été — c’est l'Œuvre...", "l'été — c'est l'œuvre…");
        check(Language::Spanish, "¿Qué tal?  ¡Bien!", "¿qué tal? ¡bien!");
        check(Language::Turkish, "IŞIK ve İstanbul", "ışık ve istanbul");
        check(Language::Russian, "Привет, Мир!", "привет, мир!");
        check(Language::Ukrainian, "Пʼять під’їздів", "п'ять під'їздів");
        check(Language::Polish, "Zażółć GĘŚLĄ jaźń", "zażółć gęślą jaźń");
        check(Language::Czech, "Příliš ŽLUŤOUČKÝ kůň", "příliš žluťoučký kůň");
        check(Language::Dutch, "Zo-even, 's avonds", "zo-even, s avonds");
        check(Language::Swedish, "Räksmörgås (Å)", "räksmörgås (å)");
    }

    #[test]
    fn numbers_are_read_inside_a_sentence() {
        check(Language::German, "Ich habe 3 Äpfel.", "ich habe drei äpfel.");
        check(
            Language::German,
            "Es sind -5 Grad, 20 %!",
            "es sind minus fünf grad, zwanzig prozent!",
        );
        check(
            Language::French,
            "En 1984, il a 2,5 kilos",
            "en mille neuf cent quatre-vingt-quatre, il a deux virgule cinq kilos",
        );
        check(Language::Spanish, "¿Tienes 21 años?", "¿tienes veintiuno años?");
        check(Language::Turkish, "%", "%");
    }

    #[test]
    fn arabic_loses_vowel_signs_and_kashida() {
        check(Language::Arabic, "مُحَمَّــد، أين؟", "محمد, أين?");
    }
}
