//! Normalisation of languages below level Full: lower case, one kind of quote and dash, numbers as words.
//!
//! In: folded text. Out: letters and the shared punctuation. Other signs stay in the text, because there are no rules for
//! them; the caller reports the first one.

mod dates; // 5. März, 05.03.2024, «в 1984 году»
mod clock; // 15:30, 15h30
mod ordinals; // 1er, «5-й»
mod money; // 5,50 €
mod numbers; // 1.234,5 and 20 %
mod noun; // the gender of what is counted
mod cardinals; // whole numbers as words
mod slavic; // their words in Russian, Ukrainian, Polish and Czech
mod arabic; // and in Arabic

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
        if may_be_number && number(&mut scan, &mut out, language)
            || may_be_money(next, &scan) && amount(&mut scan, &mut out, language)
        {
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
            '\'' if before.is_some_and(char::is_alphabetic)
                && scan.peek().is_some_and(|c| c.is_ascii_digit())
                && matches!(language, Language::French | Language::Italian) =>
            {
                out.elision();
            }
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

/// A number with its sign.
fn number(scan: &mut Scan<'_>, out: &mut Spoken, language: Language) -> bool {
    let text = scan.rest();
    let digits = text.strip_prefix(['-', '−']).unwrap_or(text);
    let signed = digits.len() < text.len();
    let free = scan.before().is_none_or(|c| c.is_whitespace() || c == '(');
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || signed && !free {
        return false;
    }
    let before = if free { scan.word_before() } else { "" };
    let (words, len) = dates::read(digits, language, before)
        .or_else(|| clock::read(digits, language, before))
        .or_else(|| ordinals::read(digits, language))
        .or_else(|| money::read(digits, language))
        .unwrap_or_else(|| numbers::read(digits, language, before));
    if signed {
        out.number(numbers::minus(language));
    }
    out.number(&words);
    scan.skip(text.len() - digits.len() + len);
    true
}

/// Whether a sign of money may begin here: `€`, `R$`, `US$`.
fn may_be_money(next: char, scan: &Scan<'_>) -> bool {
    let letter = || {
        let rest = scan.rest();
        (rest.starts_with("r$") || rest.starts_with("us$"))
            && !scan.before().is_some_and(char::is_alphabetic)
    };
    matches!(next, '€' | '$' | '£' | '₽' | '₴' | '₺' | '﷼') || matches!(next, 'r' | 'u') && letter()
}

/// Money with its sign before it, or a sign alone.
fn amount(scan: &mut Scan<'_>, out: &mut Spoken, language: Language) -> bool {
    let text = scan.rest();
    let Some((words, len)) = money::read(text, language).or_else(|| money::name(text, language))
    else {
        return false;
    };
    out.number(&words);
    scan.skip(len);
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
    use super::super::language::Level;
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
        check(Language::Spanish, "¿Tienes 21 años?", "¿tienes veintiún años?");
        check(Language::Turkish, "%", "%");
    }

    /// Digits that the scans look at, for each byte of a text.
    #[test]
    fn long_runs_of_numbers_and_signs_are_read_in_linear_time() {
        use super::super::numeral::LOOKED_AT;
        let units = [
            "1",
            "1.",
            "1 ",
            "1-",
            "1:",
            "12:30 ",
            "1/",
            "$1",
            "€ ",
            "1 €",
            "1h",
            "1º",
            "-",
            "'1",
            "2024 г. ",
            "5 марта ",
            "01.",
            "r$",
            "1 000 ",
            "1.000",
            "5 mio ",
        ];
        for language in Language::ALL.into_iter().filter(|of| of.level() == Level::Numbers) {
            for unit in units {
                let text = unit.repeat(500);
                LOOKED_AT.with(|count| count.set(0));
                std::hint::black_box(normalize(&text, language, DiacriticsPolicy::Strip));
                let looked_at = LOOKED_AT.with(std::cell::Cell::get);
                assert!(looked_at <= 100 * text.len(), "{language} {unit}: {looked_at}");
            }
        }
    }

    #[test]
    fn arabic_loses_vowel_signs_and_kashida() {
        check(Language::Arabic, "مُحَمَّــد، أين؟", "محمد, أين?");
    }
}
