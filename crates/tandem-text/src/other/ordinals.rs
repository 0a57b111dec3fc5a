//! Ordinals as they are written: `1er`, `3e`, `2:a`, «5-й», `4º`.
//!
//! In: text at a digit. Out: words. A number and a dot is an ordinal only before a month ([`super::dates`]), because it may
//! end a sentence.

use super::super::language::Language;
use super::super::numeral::digits;
use super::super::scan::letters;
use super::cardinals::{Gender, cardinal, list};
use super::slavic::{Form, ordinal};

/// The ordinal that `text` begins with, and its length.
pub fn read(text: &str, language: Language) -> Option<(String, usize)> {
    let number = digits(text);
    let value: u64 = number.parse().ok().filter(|value| (1..3000).contains(value))?;
    let rest = &text[number.len()..];
    let east = matches!(language, Language::Russian | Language::Ukrainian);
    let mark = match language {
        Language::Swedish => ":",
        _ if east => "-",
        _ => "",
    };
    let sign = rest.chars().next().filter(|sign| matches!(sign, 'º' | 'ª' | '°'));
    let suffix = match sign.map(|sign| &rest[..sign.len_utf8()]) {
        Some(sign) => sign,
        None => letters(rest.strip_prefix(mark)?),
    };
    let feminine = matches!(suffix, "ª" | "re" | "ère" | "nde");
    let words = match (language, suffix) {
        (Language::French, "er" | "re" | "ère") if value == 1 => {
            if feminine {
                "première".into()
            } else {
                "premier".into()
            }
        }
        (Language::French, "e" | "ème" | "ième" | "nd" | "nde") => french(value),
        (Language::Dutch, "e" | "de" | "ste") => dutch(value),
        (Language::Swedish, "a" | "e") if value < 100 => swedish(value),
        (Language::Spanish, "º" | "ª" | "°") => spanish(value, feminine)?,
        (Language::Italian, "º" | "ª" | "°") if sign != Some('°') => italian(value, feminine),
        (Language::Portuguese, "º" | "ª" | "°") => portuguese(value, feminine)?,
        _ if east => ordinal(language, value, form(suffix)?),
        _ => return None,
    };
    let used = if sign.is_some() { 0 } else { mark.len() };
    Some((words, number.len() + used + suffix.len()))
}

/// The form that the letters after a hyphen show: «5-й», «5-го».
fn form(suffix: &str) -> Option<Form> {
    Some(match suffix {
        "й" | "ый" | "ий" | "ой" => Form::Masculine,
        "я" | "ая" | "а" => Form::Feminine,
        "е" | "ое" | "є" => Form::Neuter,
        "го" | "ого" => Form::Genitive,
        "му" | "ому" => Form::Dative,
        "м" | "ом" => Form::Locative,
        "ым" | "им" => Form::Instrumental,
        _ => return None,
    })
}

/// `fünft`, `zwanzigst` and an ending.
pub fn german(value: u64, ending: &str) -> String {
    let words = cardinal(Language::German, value, Gender::Counting);
    let stem = match (value, value % 100) {
        (_, 1) => format!("{}erst", words.strip_suffix("eins").unwrap_or_default()),
        (_, 3) => format!("{}dritt", words.strip_suffix("drei").unwrap_or_default()),
        (_, 7) => format!("{}siebt", words.strip_suffix("sieben").unwrap_or_default()),
        (_, 8) => words,
        (_, 1..20) => format!("{words}t"),
        _ => format!("{words}st"),
    };
    format!("{stem}{ending}")
}

/// An ordinal below 100.
pub fn swedish(value: u64) -> String {
    const ONES: &str = "- första andra tredje fjärde femte sjätte sjunde åttonde nionde tionde elfte tolfte trettonde fjortonde femtonde sextonde sjuttonde artonde nittonde";
    let tens = |value| cardinal(Language::Swedish, value, Gender::Counting);
    match (value, value % 10) {
        (0..20, _) => list(ONES, value).into(),
        (_, 0) => format!("{}nde", tens(value)),
        (_, ones) => format!("{}{}", tens(value - ones), list(ONES, ones)),
    }
}

fn french(value: u64) -> String {
    let words = cardinal(Language::French, value, Gender::Counting);
    let stem = match words.strip_suffix("cinq") {
        Some(head) => format!("{head}cinqu"),
        None => match words.strip_suffix("neuf") {
            Some(head) => format!("{head}neuv"),
            None => words.trim_end_matches('s').trim_end_matches('e').to_owned(),
        },
    };
    let stem = if words.ends_with("trois") { words.clone() } else { stem };
    format!("{stem}ième")
}

fn dutch(value: u64) -> String {
    let words = cardinal(Language::Dutch, value, Gender::Counting);
    match value % 100 {
        1 => format!("{}eerste", words.strip_suffix("een").unwrap_or_default()),
        3 => format!("{}derde", words.strip_suffix("drie").unwrap_or_default()),
        8 => format!("{words}ste"),
        2..20 => format!("{words}de"),
        _ => format!("{words}ste"),
    }
}

fn italian(value: u64, feminine: bool) -> String {
    const ONES: &str = "- primo secondo terzo quarto quinto sesto settimo ottavo nono decimo";
    let words = match value {
        0..=10 => list(ONES, value).to_owned(),
        _ => {
            let words = cardinal(Language::Italian, value, Gender::Counting);
            let stem = match words.strip_suffix('é') {
                Some(head) => format!("{head}e"),
                None if words.ends_with("sei") => words,
                None => words[..words.len() - 1].to_owned(),
            };
            format!("{stem}esimo")
        }
    };
    in_gender(words, feminine)
}

fn spanish(value: u64, feminine: bool) -> Option<String> {
    const ONES: &str = "- primero segundo tercero cuarto quinto sexto séptimo octavo noveno décimo undécimo duodécimo";
    const TENS: &str = "- décimo vigésimo trigésimo cuadragésimo quincuagésimo sexagésimo septuagésimo octogésimo nonagésimo";
    Some(match value {
        0..=12 => in_gender(list(ONES, value).into(), feminine),
        13..20 => in_gender(format!("decimo{}", list(ONES, value % 10)), feminine),
        _ => in_tens(value, ONES, TENS, feminine)?,
    })
}

fn portuguese(value: u64, feminine: bool) -> Option<String> {
    const ONES: &str = "- primeiro segundo terceiro quarto quinto sexto sétimo oitavo nono";
    const TENS: &str = "- décimo vigésimo trigésimo quadragésimo quinquagésimo sexagésimo septuagésimo octogésimo nonagésimo";
    in_tens(value, ONES, TENS, feminine)
}

/// An ordinal below 100 of which both words have a gender.
fn in_tens(value: u64, ones: &'static str, tens: &'static str, feminine: bool) -> Option<String> {
    let one = in_gender(list(ones, value % 10).into(), feminine);
    let ten = in_gender(list(tens, value / 10).into(), feminine);
    match (value / 10, value % 10) {
        (0, _) => Some(one),
        (1..10, 0) => Some(ten),
        (1..10, _) => Some(format!("{ten} {one}")),
        _ => None,
    }
}

fn in_gender(word: String, feminine: bool) -> String {
    match word.strip_suffix('o').filter(|_| feminine) {
        Some(head) => format!("{head}a"),
        None => word,
    }
}
