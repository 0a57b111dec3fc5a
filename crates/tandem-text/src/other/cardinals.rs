//! Whole numbers as words, in all languages below level Full.
//!
//! In: a value and the gender of what is counted. Out: words. Knows no context.

use super::super::language::Language;
use super::{arabic, slavic};

/// What a number counts. Languages where the word for one (or two) does not change ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gender {
    /// Nothing: `eins`, `uno`.
    Counting,
    Masculine,
    Feminine,
    Neuter,
}

/// Whole numbers have fewer digits than this; longer ones are read digit by digit.
pub const LONGEST: usize = 12;

/// A whole number below a million million.
pub fn cardinal(language: Language, value: u64, gender: Gender) -> String {
    let words = match language {
        Language::German => german(value),
        Language::Dutch => dutch(value),
        Language::Swedish => swedish(value),
        Language::French => french(value),
        Language::Spanish => spanish(value),
        Language::Italian => italian(value),
        Language::Portuguese => portuguese(value),
        Language::Turkish => turkish(value),
        Language::Arabic => return arabic::cardinal(value),
        _ => return slavic::cardinal(language, value, gender),
    };
    agree(language, value, words, gender)
}

/// The last word changed to the gender of the noun: `ein Apfel`, `veintiuna casas`, `duas horas`.
fn agree(language: Language, value: u64, words: String, gender: Gender) -> String {
    use Gender::{Counting, Feminine, Masculine, Neuter};
    let with = |old: &str, new: &str| {
        words.strip_suffix(old).map_or_else(|| words.clone(), |head| format!("{head}{new}"))
    };
    let one = value % 10 == 1 && value % 100 != 11;
    match (language, gender) {
        (_, Counting) => words,
        (Language::German, Feminine) if value == 1 => with("eins", "eine"),
        (Language::German, _) if value == 1 => with("eins", "ein"),
        (Language::Swedish, Masculine | Feminine) if one => with("ett", "en"),
        (Language::French, Feminine) if one => with("un", "une"),
        (Language::Italian, Feminine) if value == 1 => with("uno", "una"),
        (Language::Italian, _) if value == 1 => with("uno", "un"),
        (Language::Spanish, Feminine) => {
            let words = words.replace("cientos", "cientas").replace("quinientos", "quinientas");
            match words.strip_suffix("uno").filter(|_| one) {
                Some(head) => format!("{head}una"),
                None => words,
            }
        }
        (Language::Spanish, Masculine | Neuter) if one => match words.strip_suffix("veintiuno") {
            Some(head) => format!("{head}veintiún"),
            None => with("uno", "un"),
        },
        (Language::Portuguese, Feminine) => {
            let words = words.replace("entos", "entas");
            match (value % 10, value % 100) {
                (1, ones) if ones != 11 => format!("{}a", words),
                (2, ones) if ones != 12 => {
                    words.strip_suffix("dois").map_or(words.clone(), |head| format!("{head}duas"))
                }
                _ => words,
            }
        }
        _ => words,
    }
}

/// The word at this place of a list that is separated by spaces.
pub fn list(words: &'static str, index: u64) -> &'static str {
    words.split(' ').nth(index as usize).unwrap_or_default()
}

/// Millions and thousands of millions as words of their own, and the rest. `names` are those of one and of many.
fn with_millions(
    value: u64,
    million: (&str, &str),
    milliard: (&str, &str),
    cardinal: fn(u64) -> String,
) -> String {
    let (factor, (one, many)) = match value {
        1_000_000_000.. => (1_000_000_000, milliard),
        _ => (1_000_000, million),
    };
    let (count, rest) = (value / factor, value % factor);
    let head = if count == 1 { one.to_owned() } else { format!("{} {many}", cardinal(count)) };
    if rest == 0 { head } else { format!("{head} {}", cardinal(rest)) }
}

fn german(value: u64) -> String {
    const ONES: &str = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn";
    const TENS: &str = "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig";
    let tail = |rest: u64| if rest == 0 { String::new() } else { german(rest) };
    match value {
        1 => "eins".into(),
        0..20 => list(ONES, value).into(),
        20..100 if value.is_multiple_of(10) => list(TENS, value / 10).into(),
        20..100 => format!("{}und{}", list(ONES, value % 10), list(TENS, value / 10)),
        100..1000 => format!("{}hundert{}", list(ONES, value / 100), tail(value % 100)),
        1000..1_000_000 => {
            let head = german(value / 1000);
            let head = head.strip_suffix("eins").map_or(head.clone(), |head| format!("{head}ein"));
            format!("{head}tausend{}", tail(value % 1000))
        }
        _ => with_millions(
            value,
            ("eine million", "millionen"),
            ("eine milliarde", "milliarden"),
            german,
        ),
    }
}

fn dutch(value: u64) -> String {
    const ONES: &str = "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien achttien negentien";
    const TENS: &str = "- - twintig dertig veertig vijftig zestig zeventig tachtig negentig";
    let tail = |rest: u64, gap: &str| {
        if rest == 0 { String::new() } else { format!("{gap}{}", dutch(rest)) }
    };
    let head = |count: u64| if count == 1 { String::new() } else { dutch(count) };
    match value {
        0..20 => list(ONES, value).into(),
        20..100 if value.is_multiple_of(10) => list(TENS, value / 10).into(),
        20..100 => {
            let one = list(ONES, value % 10);
            let and = if one.ends_with('e') { "ën" } else { "en" };
            format!("{one}{and}{}", list(TENS, value / 10))
        }
        100..1000 => format!("{}honderd{}", head(value / 100), tail(value % 100, "")),
        1000..1_000_000 => format!("{}duizend{}", head(value / 1000), tail(value % 1000, " ")),
        _ => with_millions(value, ("een miljoen", "miljoen"), ("een miljard", "miljard"), dutch),
    }
}

fn swedish(value: u64) -> String {
    const ONES: &str = "noll ett två tre fyra fem sex sju åtta nio tio elva tolv tretton fjorton femton sexton sjutton arton nitton";
    const TENS: &str = "- - tjugo trettio fyrtio femtio sextio sjuttio åttio nittio";
    let tail = |rest: u64| if rest == 0 { String::new() } else { swedish(rest) };
    match value {
        0..20 => list(ONES, value).into(),
        20..100 => format!("{}{}", list(TENS, value / 10), tail(value % 10)),
        100..1000 => format!("{}hundra{}", swedish(value / 100), tail(value % 100)),
        1000..2000 => format!("ettusen{}", tail(value % 1000)),
        2000..1_000_000 => format!("{}tusen{}", swedish(value / 1000), tail(value % 1000)),
        _ => with_millions(value, ("en miljon", "miljoner"), ("en miljard", "miljarder"), swedish),
    }
}

fn french(value: u64) -> String {
    const ONES: &str = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf";
    const TENS: &str =
        "- - vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt";
    let tail = |rest: u64| if rest == 0 { String::new() } else { format!(" {}", french(rest)) };
    match value {
        0..20 => list(ONES, value).into(),
        80 => "quatre-vingts".into(),
        20..100 => {
            let ten = value / 10;
            let rest = if matches!(ten, 7 | 9) { value % 10 + 10 } else { value % 10 };
            match rest {
                0 => list(TENS, ten).into(),
                1 | 11 if ten < 8 => format!("{} et {}", list(TENS, ten), list(ONES, rest)),
                _ => format!("{}-{}", list(TENS, ten), list(ONES, rest)),
            }
        }
        100..200 => format!("cent{}", tail(value % 100)),
        200..1000 if value.is_multiple_of(100) => format!("{} cents", list(ONES, value / 100)),
        200..1000 => format!("{} cent{}", list(ONES, value / 100), tail(value % 100)),
        1000..2000 => format!("mille{}", tail(value % 1000)),
        2000..1_000_000 => {
            // `quatre-vingts` and `cents` lose their `s` before `mille`.
            let head = french(value / 1000);
            let head = match value / 1000 % 100 {
                0 | 80 => head.trim_end_matches('s').to_owned(),
                _ => head,
            };
            format!("{head} mille{}", tail(value % 1000))
        }
        _ => with_millions(value, ("un million", "millions"), ("un milliard", "milliards"), french),
    }
}

fn spanish(value: u64) -> String {
    const ONES: &str = "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve";
    const TENS: &str = "- - - treinta cuarenta cincuenta sesenta setenta ochenta noventa";
    const HUNDREDS: &str = "- ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos";
    let tail = |rest: u64| if rest == 0 { String::new() } else { format!(" {}", spanish(rest)) };
    // `veintiún mil`, `treinta y un mil`
    let short = |count: u64| {
        let words = spanish(count);
        match words.strip_suffix("uno") {
            Some("veinti") => "veintiún".to_owned(),
            Some(head) => head
                .strip_suffix("veinti")
                .map_or(format!("{head}un"), |head| format!("{head}veintiún")),
            None => words,
        }
    };
    match value {
        0..30 => list(ONES, value).into(),
        30..100 if value.is_multiple_of(10) => list(TENS, value / 10).into(),
        30..100 => format!("{} y {}", list(TENS, value / 10), list(ONES, value % 10)),
        100 => "cien".into(),
        101..1000 => format!("{}{}", list(HUNDREDS, value / 100), tail(value % 100)),
        1000..2000 => format!("mil{}", tail(value % 1000)),
        2000..1_000_000 => format!("{} mil{}", short(value / 1000), tail(value % 1000)),
        1_000_000..2_000_000 => format!("un millón{}", tail(value % 1_000_000)),
        _ => format!("{} millones{}", short(value / 1_000_000), tail(value % 1_000_000)),
    }
}

fn italian(value: u64) -> String {
    const ONES: &str = "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici diciassette diciotto diciannove";
    const TENS: &str = "- - venti trenta quaranta cinquanta sessanta settanta ottanta novanta";
    let tail = |rest: u64| match rest {
        0 => String::new(),
        3 => "tré".to_owned(),
        _ => italian(rest),
    };
    let head = |count: u64| if count == 1 { String::new() } else { italian(count) };
    match value {
        0..20 => list(ONES, value).into(),
        20..100 => {
            let ten = list(TENS, value / 10);
            // `ventuno`, `ventotto`
            let ten = if matches!(value % 10, 1 | 8) { &ten[..ten.len() - 1] } else { ten };
            format!("{ten}{}", tail(value % 10))
        }
        100..1000 => format!("{}cento{}", head(value / 100), tail(value % 100)),
        1000..2000 => format!("mille{}", tail(value % 1000)),
        2000..1_000_000 => format!("{}mila{}", italian(value / 1000), tail(value % 1000)),
        _ => with_millions(value, ("un milione", "milioni"), ("un miliardo", "miliardi"), italian),
    }
}

fn portuguese(value: u64) -> String {
    const ONES: &str = "zero um dois três quatro cinco seis sete oito nove dez onze doze treze quatorze quinze dezesseis dezessete dezoito dezenove";
    const TENS: &str = "- - vinte trinta quarenta cinquenta sessenta setenta oitenta noventa";
    const HUNDREDS: &str = "- cento duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos";
    let and =
        |rest: u64| if rest == 0 { String::new() } else { format!(" e {}", portuguese(rest)) };
    // `mil e cem`, `mil cento e um`
    let tail = |rest: u64| match rest {
        1..=100 => and(rest),
        _ if rest < 1000 && rest.is_multiple_of(100) => and(rest),
        _ => format!(" {}", portuguese(rest)),
    };
    match value {
        0..20 => list(ONES, value).into(),
        20..100 => format!("{}{}", list(TENS, value / 10), and(value % 10)),
        100 => "cem".into(),
        101..1000 => format!("{}{}", list(HUNDREDS, value / 100), and(value % 100)),
        1000..1_000_000 => {
            let head = if value < 2000 {
                "mil".into()
            } else {
                format!("{} mil", portuguese(value / 1000))
            };
            format!("{head}{}", tail(value % 1000))
        }
        _ => with_millions(value, ("um milhão", "milhões"), ("um bilhão", "bilhões"), portuguese),
    }
}

fn turkish(value: u64) -> String {
    const ONES: &str = "sıfır bir iki üç dört beş altı yedi sekiz dokuz";
    const TENS: &str = "- on yirmi otuz kırk elli altmış yetmiş seksen doksan";
    let tail = |rest: u64| if rest == 0 { String::new() } else { format!(" {}", turkish(rest)) };
    let head = |count: u64| if count == 1 { String::new() } else { format!("{} ", turkish(count)) };
    match value {
        0..10 => list(ONES, value).into(),
        10..100 => format!("{}{}", list(TENS, value / 10), tail(value % 10)),
        100..1000 => format!("{}yüz{}", head(value / 100), tail(value % 100)),
        1000..1_000_000 => format!("{}bin{}", head(value / 1000), tail(value % 1000)),
        _ => with_millions(value, ("bir milyon", "milyon"), ("bir milyar", "milyar"), turkish),
    }
}
