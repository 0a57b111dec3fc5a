//! Whole numbers, decimals and percentages in all languages below level Full.
//!
//! In: text at a digit, and the word before it. Out: words. Years of four digits are read as people say them; one and two
//! have the gender that the ending of the next word shows. Numbers in other cases than the nominative are not covered.

use super::super::language::Language;
use super::super::numeral::digits;
use super::cardinals::{Gender, LONGEST, cardinal};
use super::noun::gender;
use super::slavic::plural;
use super::{arabic, dates};

/// The words of the number that `text` begins with, and its length. `before` is the word before it.
pub fn read(text: &str, language: Language, before: &str) -> (String, usize) {
    let Amount { whole, decimals, mut len } = Amount::parse(text, language);
    let rest = text[len..].strip_prefix(' ').unwrap_or(&text[len..]);
    let percent = rest.starts_with('%');
    let value = short(&whole);
    let gender = match (percent, language) {
        (true, Language::Czech) => Gender::Neuter,
        (true, Language::German | Language::Spanish | Language::Italian | Language::Swedish) => {
            Gender::Counting
        }
        (true, _) => Gender::Masculine,
        _ => gender(language, value.unwrap_or_default(), rest),
    };
    let plain_year = value.filter(|_| len == 4 && decimals.is_empty());
    if let Some((words, taken)) =
        plain_year.and_then(|value| dates::year(language, value, before, &text[len..]))
    {
        return (words, len + taken);
    }
    let mut words = match (value, decimals) {
        (Some(value), "") if len == 4 => year_or_count(language, value, gender),
        (Some(value), "") => cardinal(language, value, gender),
        (Some(value), decimals) => decimal(language, value, decimals),
        (None, decimals) => {
            let mut words = one_by_one(language, &whole);
            if !decimals.is_empty() {
                words = format!("{words} {} {}", marks(language).1, one_by_one(language, decimals));
            }
            words
        }
    };
    if percent {
        len = text.len() - rest.len() + 1;
        let name = percent_name(language, value.filter(|_| decimals.is_empty()));
        words = match language {
            Language::Turkish => format!("{name} {words}"),
            _ => format!("{words} {name}"),
        };
    }
    (words, len)
}

/// A number as written.
pub struct Amount<'a> {
    /// Without marks between thousands.
    pub whole: String,
    pub decimals: &'a str,
    pub len: usize,
}

impl<'a> Amount<'a> {
    /// Reads `1.234,5`, `1 234,5` and, in Arabic, `1,234.5` at the beginning of `text`.
    pub fn parse(text: &'a str, language: Language) -> Self {
        let (whole, mut len) = grouped(text, digits(text), language);
        let decimals = text[len..].strip_prefix([',', '.', '٫']).map_or("", digits);
        if !decimals.is_empty() {
            len += text[len..].chars().next().map_or(0, char::len_utf8) + decimals.len();
        }
        Self { whole, decimals, len }
    }
}

/// `1.234.567` and `1 234 567`: digits with one kind of mark between thousands, and the length.
fn grouped(text: &str, first: &str, language: Language) -> (String, usize) {
    let (mut whole, mut len) = (first.to_owned(), first.len());
    let mark = text[len..].chars().next().filter(|mark| match mark {
        '.' => language != Language::Arabic,
        ',' => language == Language::Arabic,
        _ => matches!(mark, ' ' | '٬'),
    });
    let Some(mark) = mark.filter(|_| (1..=3).contains(&first.len()) && first != "0") else {
        return (whole, len);
    };
    while whole.len() <= LONGEST
        && let Some(group) =
            text[len..].strip_prefix(mark).map(digits).filter(|group| group.len() == 3)
    {
        whole.push_str(group);
        len += mark.len_utf8() + 3;
    }
    (whole, len)
}

/// The value of digits that have words of their own: not too long, and without a leading zero.
pub fn short(digits: &str) -> Option<u64> {
    let plain = digits == "0" || !digits.starts_with('0');
    digits.parse().ok().filter(|_| plain && digits.len() <= LONGEST)
}

/// Minus and decimal mark.
fn marks(language: Language) -> (&'static str, &'static str) {
    match language {
        Language::German | Language::Swedish => ("minus", "komma"),
        Language::Dutch => ("min", "komma"),
        Language::French => ("moins", "virgule"),
        Language::Spanish => ("menos", "coma"),
        Language::Italian => ("meno", "virgola"),
        Language::Portuguese => ("menos", "vírgula"),
        Language::Turkish => ("eksi", "virgül"),
        Language::Russian => ("минус", "запятая"),
        Language::Ukrainian => ("мінус", "кома"),
        Language::Polish => ("minus", "przecinek"),
        Language::Czech => ("minus", "čárka"),
        _ => ("ناقص", "فاصلة"),
    }
}

/// The word for a minus sign.
pub fn minus(language: Language) -> &'static str {
    marks(language).0
}

/// The name of percent after a whole number, or after decimals.
fn percent_name(language: Language, value: Option<u64>) -> &'static str {
    let forms = match language {
        Language::German => return "prozent",
        Language::Dutch | Language::Swedish => return "procent",
        Language::French => return "pour cent",
        Language::Spanish => return "por ciento",
        Language::Portuguese => return "por cento",
        Language::Italian => return "per cento",
        Language::Turkish => return "yüzde",
        Language::Arabic => return "بالمئة",
        Language::Polish => return "procent",
        Language::Russian => ["процент", "процента", "процентов"],
        Language::Ukrainian => ["відсоток", "відсотки", "відсотків"],
        _ => ["procento", "procenta", "procent"],
    };
    match value {
        Some(value) => forms[plural(language, value)],
        None if language == Language::Ukrainian => "відсотка",
        None => forms[1],
    }
}

/// `3,5`: in Russian and Ukrainian by tenths, elsewhere by the mark.
fn decimal(language: Language, whole: u64, decimals: &str) -> String {
    let east = matches!(language, Language::Russian | Language::Ukrainian);
    let part = short(decimals.trim_start_matches('0')).filter(|_| east && decimals.len() <= 3);
    if let Some(part) = part {
        let names = match language {
            Language::Russian => ["десят", "сот", "тысячн"],
            _ => ["десят", "сот", "тисячн"],
        };
        let one = |value| plural(language, value) == 0;
        let (single, many, of_whole) = match language {
            Language::Russian => ("ая", "ых", ["целая", "целых"]),
            _ => ("а", "их", ["ціла", "цілих"]),
        };
        return format!(
            "{} {} {} {}{}",
            cardinal(language, whole, Gender::Feminine),
            of_whole[usize::from(!one(whole))],
            cardinal(language, part, Gender::Feminine),
            names[decimals.len() - 1],
            if one(part) { single } else { many }
        );
    }
    let mark = match (language, whole) {
        (Language::Czech, 0 | 1) => "celá",
        (Language::Czech, 2..5) => "celé",
        (Language::Czech, _) => "celých",
        _ => marks(language).1,
    };
    let gender = if language == Language::Czech { Gender::Feminine } else { Gender::Counting };
    let after = match short(decimals).filter(|_| decimals.len() <= 2) {
        // «ثلاثة فاصلة أربعة عشر», `tři celé čtrnáct`, `trzy przecinek czternaście`
        Some(value)
            if matches!(language, Language::Arabic | Language::Czech | Language::Polish) =>
        {
            cardinal(language, value, Gender::Counting)
        }
        _ => one_by_one(language, decimals),
    };
    format!("{} {mark} {after}", cardinal(language, whole, gender))
}

pub fn one_by_one(language: Language, digits: &str) -> String {
    let words: Vec<String> =
        digits.bytes().map(|b| cardinal(language, u64::from(b - b'0'), Gender::Counting)).collect();
    words.join(" ")
}

/// `1984` -> `neunzehnhundertvierundachtzig` where people say hundreds.
pub fn year_or_count(language: Language, value: u64, gender: Gender) -> String {
    let hundred = match language {
        Language::German => "hundert",
        Language::Dutch => "honderd",
        Language::Swedish => "hundra",
        _ => return cardinal(language, value, gender),
    };
    if !(1100..2000).contains(&value) {
        return cardinal(language, value, gender);
    }
    let counted = |value| cardinal(language, value, Gender::Counting);
    let rest = if value.is_multiple_of(100) { String::new() } else { counted(value % 100) };
    format!("{}{hundred}{rest}", counted(value / 100))
}

/// The words of a number after a preposition, where the language has a rule for it.
pub fn oblique(language: Language, words: String) -> String {
    if language == Language::Arabic { arabic::oblique(&words) } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(language: Language, pairs: &[(&str, &str)]) {
        for (written, spoken) in pairs {
            let (words, len) = read(written, language, "");
            assert_eq!((words.as_str(), len), (*spoken, written.len()), "{written}");
        }
    }

    #[test]
    fn german_dutch_and_swedish_write_numbers_as_one_word() {
        check(
            Language::German,
            &[
                ("0", "null"),
                ("1", "eins"),
                ("16", "sechzehn"),
                ("17", "siebzehn"),
                ("21", "einundzwanzig"),
                ("30", "dreißig"),
                ("100", "einhundert"),
                ("101", "einhunderteins"),
                ("342", "dreihundertzweiundvierzig"),
                ("1.000", "eintausend"),
                ("1984", "neunzehnhundertvierundachtzig"),
                ("2024", "zweitausendvierundzwanzig"),
                ("1900", "neunzehnhundert"),
                ("21.001", "einundzwanzigtausendeins"),
                ("101.000", "einhunderteintausend"),
                ("1.000.000", "eine million"),
                ("2.500.000", "zwei millionen fünfhunderttausend"),
                ("3,14", "drei komma eins vier"),
                ("50 %", "fünfzig prozent"),
                ("007", "null null sieben"),
            ],
        );
        check(
            Language::Dutch,
            &[
                ("0", "nul"),
                ("1", "een"),
                ("14", "veertien"),
                ("21", "eenentwintig"),
                ("22", "tweeëntwintig"),
                ("33", "drieëndertig"),
                ("80", "tachtig"),
                ("99", "negenennegentig"),
                ("100", "honderd"),
                ("101", "honderdeen"),
                ("250", "tweehonderdvijftig"),
                ("1.000", "duizend"),
                ("1984", "negentienhonderdvierentachtig"),
                ("2024", "tweeduizend vierentwintig"),
                ("12.345", "twaalfduizend driehonderdvijfenveertig"),
                ("1.000.000", "een miljoen"),
                ("2.000.000", "twee miljoen"),
                ("2,5", "twee komma vijf"),
                ("10%", "tien procent"),
                ("05", "nul vijf"),
            ],
        );
        check(
            Language::Swedish,
            &[
                ("0", "noll"),
                ("1", "ett"),
                ("18", "arton"),
                ("21", "tjugoett"),
                ("40", "fyrtio"),
                ("100", "etthundra"),
                ("101", "etthundraett"),
                ("342", "trehundrafyrtiotvå"),
                ("1 000", "ettusen"),
                ("1984", "nittonhundraåttiofyra"),
                ("2024", "tvåtusentjugofyra"),
                ("12 000", "tolvtusen"),
                ("1 000 000", "en miljon"),
                ("3 000 000", "tre miljoner"),
                ("3,5", "tre komma fem"),
                ("25 %", "tjugofem procent"),
                ("99", "nittionio"),
                ("7", "sju"),
                ("1500", "femtonhundra"),
                ("02", "noll två"),
            ],
        );
    }

    #[test]
    fn french_counts_in_twenties_above_sixty() {
        check(
            Language::French,
            &[
                ("0", "zéro"),
                ("1", "un"),
                ("16", "seize"),
                ("17", "dix-sept"),
                ("21", "vingt et un"),
                ("22", "vingt-deux"),
                ("70", "soixante-dix"),
                ("71", "soixante et onze"),
                ("77", "soixante-dix-sept"),
                ("80", "quatre-vingts"),
                ("81", "quatre-vingt-un"),
                ("91", "quatre-vingt-onze"),
                ("99", "quatre-vingt-dix-neuf"),
                ("100", "cent"),
                ("101", "cent un"),
                ("200", "deux cents"),
                ("201", "deux cent un"),
                ("1984", "mille neuf cent quatre-vingt-quatre"),
                ("2024", "deux mille vingt-quatre"),
                ("80 000", "quatre-vingt mille"),
                ("200 000", "deux cent mille"),
                ("1 000 000", "un million"),
                ("3,14", "trois virgule un quatre"),
                ("50 %", "cinquante pour cent"),
                ("3 000", "trois mille"),
            ],
        );
    }

    #[test]
    fn spanish_italian_and_portuguese_have_their_own_hundreds() {
        check(
            Language::Spanish,
            &[
                ("0", "cero"),
                ("1", "uno"),
                ("16", "dieciséis"),
                ("21", "veintiuno"),
                ("31", "treinta y uno"),
                ("100", "cien"),
                ("101", "ciento uno"),
                ("500", "quinientos"),
                ("742", "setecientos cuarenta y dos"),
                ("1984", "mil novecientos ochenta y cuatro"),
                ("2024", "dos mil veinticuatro"),
                ("21.000", "veintiún mil"),
                ("31.000", "treinta y un mil"),
                ("100.000", "cien mil"),
                ("121.000", "ciento veintiún mil"),
                ("1.000.000", "un millón"),
                ("2.000.000", "dos millones"),
                ("3,5", "tres coma cinco"),
                ("50 %", "cincuenta por ciento"),
                ("007", "cero cero siete"),
            ],
        );
        check(
            Language::Italian,
            &[
                ("0", "zero"),
                ("1", "uno"),
                ("17", "diciassette"),
                ("21", "ventuno"),
                ("23", "ventitré"),
                ("28", "ventotto"),
                ("33", "trentatré"),
                ("100", "cento"),
                ("101", "centouno"),
                ("200", "duecento"),
                ("1.000", "mille"),
                ("1984", "millenovecentoottantaquattro"),
                ("2024", "duemilaventiquattro"),
                ("1.000.000", "un milione"),
                ("2.000.000", "due milioni"),
                ("3,14", "tre virgola uno quattro"),
                ("50%", "cinquanta per cento"),
                ("12.000", "dodicimila"),
                ("99", "novantanove"),
                ("03", "zero tre"),
            ],
        );
        check(
            Language::Portuguese,
            &[
                ("0", "zero"),
                ("1", "um"),
                ("16", "dezesseis"),
                ("21", "vinte e um"),
                ("100", "cem"),
                ("101", "cento e um"),
                ("342", "trezentos e quarenta e dois"),
                ("1000", "mil"),
                ("1100", "mil e cem"),
                ("1101", "mil cento e um"),
                ("1984", "mil novecentos e oitenta e quatro"),
                ("2000", "dois mil"),
                ("2024", "dois mil e vinte e quatro"),
                ("12.000", "doze mil"),
                ("1.000.000", "um milhão"),
                ("2.000.000", "dois milhões"),
                ("3,5", "três vírgula cinco"),
                ("50 %", "cinquenta por cento"),
                ("99", "noventa e nove"),
                ("00", "zero zero"),
            ],
        );
    }

    #[test]
    fn turkish_numbers_are_separate_words() {
        check(
            Language::Turkish,
            &[
                ("0", "sıfır"),
                ("1", "bir"),
                ("10", "on"),
                ("21", "yirmi bir"),
                ("99", "doksan dokuz"),
                ("100", "yüz"),
                ("101", "yüz bir"),
                ("200", "iki yüz"),
                ("1000", "bin"),
                ("1.000", "bin"),
                ("1984", "bin dokuz yüz seksen dört"),
                ("2024", "iki bin yirmi dört"),
                ("12.345", "on iki bin üç yüz kırk beş"),
                ("100.000", "yüz bin"),
                ("1.000.000", "bir milyon"),
                ("2.000.000", "iki milyon"),
                ("3,5", "üç virgül beş"),
            ],
        );
        check(
            Language::Turkish,
            &[("50 %", "yüzde elli"), ("007", "sıfır sıfır yedi"), ("40", "kırk")],
        );
    }
}
