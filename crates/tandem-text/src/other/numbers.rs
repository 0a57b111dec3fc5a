//! Whole numbers, decimals and percentages in eight languages: German, Dutch, Swedish, French, Spanish, Italian, Portuguese, Turkish.
//!
//! In: text at a digit. Out: words. Years of four digits are read as people say them. Not covered: ordinals, times, money,
//! and the gender of one. Languages without an entry here have no numbers.

use super::super::language::Language;
use super::super::numeral::digits;

/// The longest whole number with words of its own; longer ones, and those with leading zeros, are read digit by digit.
const LONGEST: usize = 9;

/// The words of the number that `text` begins with, and its length; `None` in a language without rules.
pub fn read(text: &str, language: Language) -> Option<(String, usize)> {
    let (_, point, percent) = marks(language)?;
    let first = digits(text);
    let (whole, mut len) = grouped(text, first);
    let mut words = match whole.len() {
        4 if len == 4 => year(language, whole.parse().ok()?),
        1..=LONGEST if !whole.starts_with('0') || whole == "0" => {
            cardinal(language, whole.parse().ok()?)
        }
        _ => one_by_one(language, &whole),
    };
    let decimals =
        text[len..].strip_prefix([',', '.']).map(digits).filter(|found| !found.is_empty());
    if let Some(decimals) = decimals {
        words = format!("{words} {point} {}", one_by_one(language, decimals));
        len += 1 + decimals.len();
    }
    let rest = text[len..].strip_prefix(' ').unwrap_or(&text[len..]);
    if rest.starts_with('%') {
        len = text.len() - rest.len() + 1;
        words = match language {
            Language::Turkish => format!("{percent} {words}"),
            _ => format!("{words} {percent}"),
        };
    }
    Some((words, len))
}

/// Minus, decimal mark and percent.
fn marks(language: Language) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match language {
        Language::German => ("minus", "komma", "prozent"),
        Language::Dutch => ("min", "komma", "procent"),
        Language::Swedish => ("minus", "komma", "procent"),
        Language::French => ("moins", "virgule", "pour cent"),
        Language::Spanish => ("menos", "coma", "por ciento"),
        Language::Italian => ("meno", "virgola", "per cento"),
        Language::Portuguese => ("menos", "vírgula", "por cento"),
        Language::Turkish => ("eksi", "virgül", "yüzde"),
        _ => return None,
    })
}

/// The word for a minus sign.
pub fn minus(language: Language) -> Option<&'static str> {
    marks(language).map(|(minus, ..)| minus)
}

/// `1.234.567` and `1 234 567`: digits with one kind of mark between thousands, and the length.
fn grouped(text: &str, first: &str) -> (String, usize) {
    let (mut whole, mut len) = (first.to_owned(), first.len());
    let mark = text[len..].chars().next().filter(|c| matches!(c, '.' | ' '));
    let Some(mark) = mark.filter(|_| (1..=3).contains(&first.len())) else { return (whole, len) };
    while whole.len() <= LONGEST
        && let Some(group) =
            text[len..].strip_prefix(mark).map(digits).filter(|group| group.len() == 3)
    {
        whole.push_str(group);
        len += 4;
    }
    (whole, len)
}

fn one_by_one(language: Language, digits: &str) -> String {
    let words: Vec<String> =
        digits.bytes().map(|b| cardinal(language, u32::from(b - b'0'))).collect();
    words.join(" ")
}

/// `1984` -> `neunzehnhundertvierundachtzig` where people say hundreds.
fn year(language: Language, value: u32) -> String {
    let hundred = match language {
        Language::German => "hundert",
        Language::Dutch => "honderd",
        Language::Swedish => "hundra",
        _ => return cardinal(language, value),
    };
    if !(1100..2000).contains(&value) {
        return cardinal(language, value);
    }
    let rest =
        if value.is_multiple_of(100) { String::new() } else { cardinal(language, value % 100) };
    format!("{}{hundred}{rest}", cardinal(language, value / 100))
}

/// A whole number below a thousand million.
fn cardinal(language: Language, value: u32) -> String {
    match language {
        Language::German => german(value),
        Language::Dutch => dutch(value),
        Language::Swedish => swedish(value),
        Language::French => french(value),
        Language::Spanish => spanish(value),
        Language::Italian => italian(value),
        Language::Portuguese => portuguese(value),
        _ => turkish(value),
    }
}

fn list(words: &'static str, index: u32) -> &'static str {
    words.split(' ').nth(index as usize).unwrap_or_default()
}

/// Millions as words of their own, and the rest.
fn with_millions(value: u32, one: &str, many: &str, cardinal: fn(u32) -> String) -> String {
    let (millions, rest) = (value / 1_000_000, value % 1_000_000);
    let head =
        if millions == 1 { one.to_owned() } else { format!("{} {many}", cardinal(millions)) };
    if rest == 0 { head } else { format!("{head} {}", cardinal(rest)) }
}

fn german(value: u32) -> String {
    const ONES: &str = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn";
    const TENS: &str = "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig";
    let tail = |rest: u32| if rest == 0 { String::new() } else { german(rest) };
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
        _ => with_millions(value, "eine million", "millionen", german),
    }
}

fn dutch(value: u32) -> String {
    const ONES: &str = "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien achttien negentien";
    const TENS: &str = "- - twintig dertig veertig vijftig zestig zeventig tachtig negentig";
    let tail = |rest: u32, gap: &str| {
        if rest == 0 { String::new() } else { format!("{gap}{}", dutch(rest)) }
    };
    let head = |count: u32| if count == 1 { String::new() } else { dutch(count) };
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
        _ => with_millions(value, "een miljoen", "miljoen", dutch),
    }
}

fn swedish(value: u32) -> String {
    const ONES: &str = "noll ett två tre fyra fem sex sju åtta nio tio elva tolv tretton fjorton femton sexton sjutton arton nitton";
    const TENS: &str = "- - tjugo trettio fyrtio femtio sextio sjuttio åttio nittio";
    let tail = |rest: u32| if rest == 0 { String::new() } else { swedish(rest) };
    match value {
        0..20 => list(ONES, value).into(),
        20..100 => format!("{}{}", list(TENS, value / 10), tail(value % 10)),
        100..1000 => format!("{}hundra{}", swedish(value / 100), tail(value % 100)),
        1000..2000 => format!("ettusen{}", tail(value % 1000)),
        2000..1_000_000 => format!("{}tusen{}", swedish(value / 1000), tail(value % 1000)),
        _ => with_millions(value, "en miljon", "miljoner", swedish),
    }
}

fn french(value: u32) -> String {
    const ONES: &str = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf";
    const TENS: &str =
        "- - vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt";
    let tail = |rest: u32| if rest == 0 { String::new() } else { format!(" {}", french(rest)) };
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
        _ => with_millions(value, "un million", "millions", french),
    }
}

fn spanish(value: u32) -> String {
    const ONES: &str = "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve";
    const TENS: &str = "- - - treinta cuarenta cincuenta sesenta setenta ochenta noventa";
    const HUNDREDS: &str = "- ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos";
    let tail = |rest: u32| if rest == 0 { String::new() } else { format!(" {}", spanish(rest)) };
    // `veintiún mil`, `treinta y un mil`
    let short = |count: u32| {
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

fn italian(value: u32) -> String {
    const ONES: &str = "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici diciassette diciotto diciannove";
    const TENS: &str = "- - venti trenta quaranta cinquanta sessanta settanta ottanta novanta";
    let tail = |rest: u32| match rest {
        0 => String::new(),
        3 => "tré".to_owned(),
        _ => italian(rest),
    };
    let head = |count: u32| if count == 1 { String::new() } else { italian(count) };
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
        _ => with_millions(value, "un milione", "milioni", italian),
    }
}

fn portuguese(value: u32) -> String {
    const ONES: &str = "zero um dois três quatro cinco seis sete oito nove dez onze doze treze quatorze quinze dezesseis dezessete dezoito dezenove";
    const TENS: &str = "- - vinte trinta quarenta cinquenta sessenta setenta oitenta noventa";
    const HUNDREDS: &str = "- cento duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos";
    let and =
        |rest: u32| if rest == 0 { String::new() } else { format!(" e {}", portuguese(rest)) };
    // `mil e cem`, `mil cento e um`
    let tail = |rest: u32| match rest {
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
        _ => with_millions(value, "um milhão", "milhões", portuguese),
    }
}

fn turkish(value: u32) -> String {
    const ONES: &str = "sıfır bir iki üç dört beş altı yedi sekiz dokuz";
    const TENS: &str = "- on yirmi otuz kırk elli altmış yetmiş seksen doksan";
    let tail = |rest: u32| if rest == 0 { String::new() } else { format!(" {}", turkish(rest)) };
    let head = |count: u32| if count == 1 { String::new() } else { format!("{} ", turkish(count)) };
    match value {
        0..10 => list(ONES, value).into(),
        10..100 => format!("{}{}", list(TENS, value / 10), tail(value % 10)),
        100..1000 => format!("{}yüz{}", head(value / 100), tail(value % 100)),
        1000..1_000_000 => format!("{}bin{}", head(value / 1000), tail(value % 1000)),
        _ => with_millions(value, "bir milyon", "milyon", turkish),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(language: Language, pairs: &[(&str, &str)]) {
        for (written, spoken) in pairs {
            let (words, len) = read(written, language).unwrap();
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

    #[test]
    fn languages_without_rules_have_no_numbers() {
        for language in [
            Language::Arabic,
            Language::Russian,
            Language::Ukrainian,
            Language::Polish,
            Language::Czech,
        ] {
            assert!(read("5", language).is_none());
        }
    }
}
