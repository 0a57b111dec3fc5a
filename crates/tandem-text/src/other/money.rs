//! Money: `5,50 €`, `$20`, `100 Kč`, «5 руб.».
//!
//! In: text at a digit or a sign. Out: words, with the parts of a hundred by name. Known are euro, dollar, pound and the money of
//! the countries of each language.

use super::super::language::Language;
use super::super::scan::letters;
use super::arabic;
use super::cardinals::{Gender, cardinal};
use super::numbers::{Amount, short};
use super::slavic::plural;
use Gender::{Counting, Feminine, Masculine, Neuter};

/// A noun after 1, 2 and 5, and its gender.
struct Counted([&'static str; 3], Gender);

/// Signs that stand for it, in lower case; the money and its hundredth.
struct Currency {
    signs: &'static [&'static str],
    whole: Counted,
    part: Counted,
}

const fn currency(
    signs: &'static [&'static str],
    whole: [&'static str; 3],
    gender: Gender,
    part: [&'static str; 3],
    part_gender: Gender,
) -> Currency {
    Currency { signs, whole: Counted(whole, gender), part: Counted(part, part_gender) }
}

const EURO: &[&str] = &["€", "eur"];
const DOLLAR: &[&str] = &["us$", "$", "usd"];
const POUND: &[&str] = &["£", "gbp"];

static GERMAN: [Currency; 4] = [
    currency(EURO, ["euro"; 3], Masculine, ["cent"; 3], Masculine),
    currency(DOLLAR, ["dollar"; 3], Masculine, ["cent"; 3], Masculine),
    currency(POUND, ["pfund"; 3], Masculine, ["penny", "pence", "pence"], Masculine),
    currency(&["chf", "fr"], ["franken"; 3], Masculine, ["rappen"; 3], Masculine),
];
static DUTCH: [Currency; 3] = [
    currency(EURO, ["euro"; 3], Masculine, ["cent"; 3], Masculine),
    currency(DOLLAR, ["dollar"; 3], Masculine, ["cent"; 3], Masculine),
    currency(POUND, ["pond"; 3], Masculine, ["penny", "pence", "pence"], Masculine),
];
static SWEDISH: [Currency; 4] = [
    currency(&["kr", "sek"], ["krona", "kronor", "kronor"], Feminine, ["öre"; 3], Counting),
    currency(EURO, ["euro"; 3], Feminine, ["cent"; 3], Feminine),
    currency(DOLLAR, ["dollar"; 3], Feminine, ["cent"; 3], Feminine),
    currency(POUND, ["pund"; 3], Counting, ["penny", "pence", "pence"], Feminine),
];
static FRENCH: [Currency; 4] = [
    currency(
        EURO,
        ["euro", "euros", "euros"],
        Masculine,
        ["centime", "centimes", "centimes"],
        Masculine,
    ),
    currency(
        DOLLAR,
        ["dollar", "dollars", "dollars"],
        Masculine,
        ["cent", "cents", "cents"],
        Masculine,
    ),
    currency(
        POUND,
        ["livre", "livres", "livres"],
        Feminine,
        ["penny", "pence", "pence"],
        Masculine,
    ),
    currency(
        &["chf", "fr"],
        ["franc", "francs", "francs"],
        Masculine,
        ["centime", "centimes", "centimes"],
        Masculine,
    ),
];
static SPANISH: [Currency; 3] = [
    currency(
        EURO,
        ["euro", "euros", "euros"],
        Masculine,
        ["céntimo", "céntimos", "céntimos"],
        Masculine,
    ),
    currency(
        DOLLAR,
        ["dólar", "dólares", "dólares"],
        Masculine,
        ["centavo", "centavos", "centavos"],
        Masculine,
    ),
    currency(
        POUND,
        ["libra", "libras", "libras"],
        Feminine,
        ["penique", "peniques", "peniques"],
        Masculine,
    ),
];
static ITALIAN: [Currency; 3] = [
    currency(EURO, ["euro"; 3], Masculine, ["centesimo", "centesimi", "centesimi"], Masculine),
    currency(
        DOLLAR,
        ["dollaro", "dollari", "dollari"],
        Masculine,
        ["centesimo", "centesimi", "centesimi"],
        Masculine,
    ),
    currency(
        POUND,
        ["sterlina", "sterline", "sterline"],
        Feminine,
        ["penny", "pence", "pence"],
        Masculine,
    ),
];
static PORTUGUESE: [Currency; 4] = [
    currency(
        &["r$", "brl"],
        ["real", "reais", "reais"],
        Masculine,
        ["centavo", "centavos", "centavos"],
        Masculine,
    ),
    currency(
        EURO,
        ["euro", "euros", "euros"],
        Masculine,
        ["cêntimo", "cêntimos", "cêntimos"],
        Masculine,
    ),
    currency(
        DOLLAR,
        ["dólar", "dólares", "dólares"],
        Masculine,
        ["centavo", "centavos", "centavos"],
        Masculine,
    ),
    currency(POUND, ["libra", "libras", "libras"], Feminine, ["pêni", "pence", "pence"], Masculine),
];
static TURKISH: [Currency; 4] = [
    currency(&["₺", "tl", "try"], ["lira"; 3], Masculine, ["kuruş"; 3], Masculine),
    currency(EURO, ["euro"; 3], Masculine, ["sent"; 3], Masculine),
    currency(DOLLAR, ["dolar"; 3], Masculine, ["sent"; 3], Masculine),
    currency(POUND, ["sterlin"; 3], Masculine, ["peni"; 3], Masculine),
];
static RUSSIAN: [Currency; 5] = [
    currency(
        &["₽", "руб", "rub"],
        ["рубль", "рубля", "рублей"],
        Masculine,
        ["копейка", "копейки", "копеек"],
        Feminine,
    ),
    currency(EURO, ["евро"; 3], Masculine, ["цент", "цента", "центов"], Masculine),
    currency(
        DOLLAR,
        ["доллар", "доллара", "долларов"],
        Masculine,
        ["цент", "цента", "центов"],
        Masculine,
    ),
    currency(POUND, ["фунт", "фунта", "фунтов"], Masculine, ["пенс", "пенса", "пенсов"], Masculine),
    currency(
        &["₴", "грн"],
        ["гривна", "гривны", "гривен"],
        Feminine,
        ["копейка", "копейки", "копеек"],
        Feminine,
    ),
];
static UKRAINIAN: [Currency; 4] = [
    currency(
        &["₴", "грн", "uah"],
        ["гривня", "гривні", "гривень"],
        Feminine,
        ["копійка", "копійки", "копійок"],
        Feminine,
    ),
    currency(EURO, ["євро"; 3], Masculine, ["цент", "центи", "центів"], Masculine),
    currency(
        DOLLAR,
        ["долар", "долари", "доларів"],
        Masculine,
        ["цент", "центи", "центів"],
        Masculine,
    ),
    currency(POUND, ["фунт", "фунти", "фунтів"], Masculine, ["пенс", "пенси", "пенсів"], Masculine),
];
static POLISH: [Currency; 4] = [
    currency(
        &["zł", "pln"],
        ["złoty", "złote", "złotych"],
        Masculine,
        ["grosz", "grosze", "groszy"],
        Masculine,
    ),
    currency(EURO, ["euro"; 3], Neuter, ["cent", "centy", "centów"], Masculine),
    currency(
        DOLLAR,
        ["dolar", "dolary", "dolarów"],
        Masculine,
        ["cent", "centy", "centów"],
        Masculine,
    ),
    currency(POUND, ["funt", "funty", "funtów"], Masculine, ["pens", "pensy", "pensów"], Masculine),
];
static CZECH: [Currency; 4] = [
    currency(
        &["kč", "czk"],
        ["koruna", "koruny", "korun"],
        Feminine,
        ["haléř", "haléře", "haléřů"],
        Masculine,
    ),
    currency(EURO, ["euro", "eura", "eur"], Neuter, ["cent", "centy", "centů"], Masculine),
    currency(
        DOLLAR,
        ["dolar", "dolary", "dolarů"],
        Masculine,
        ["cent", "centy", "centů"],
        Masculine,
    ),
    currency(POUND, ["libra", "libry", "liber"], Feminine, ["pence", "pence", "pencí"], Feminine),
];

/// Signs, money and its part, each in the four forms of Arabic.
static ARABIC: [(&[&str], arabic::Noun, arabic::Noun); 6] = [
    (&["$", "us$", "usd"], ["دولار", "دولاران", "دولارات", "دولارا"], CENT),
    (&["€", "eur"], ["يورو"; 4], CENT),
    (
        &["£", "gbp"],
        ["جنيه إسترليني", "جنيهان إسترلينيان", "جنيهات إسترلينية", "جنيها إسترلينيا"],
        ["بنس", "بنسان", "بنسات", "بنسا"],
    ),
    (&["ر.س", "sar", "﷼"], ["ريال", "ريالان", "ريالات", "ريالا"], ["هللة", "هللتان", "هللات", "هللة"]),
    (&["ج.م", "egp"], ["جنيه", "جنيهان", "جنيهات", "جنيها"], ["قرش", "قرشان", "قروش", "قرشا"]),
    (&["د.إ", "aed"], ["درهم", "درهمان", "دراهم", "درهما"], ["فلس", "فلسان", "فلوس", "فلسا"]),
];
const CENT: arabic::Noun = ["سنت", "سنتان", "سنتات", "سنتا"];

fn currencies(language: Language) -> &'static [Currency] {
    match language {
        Language::German => &GERMAN,
        Language::Dutch => &DUTCH,
        Language::Swedish => &SWEDISH,
        Language::French => &FRENCH,
        Language::Spanish => &SPANISH,
        Language::Italian => &ITALIAN,
        Language::Portuguese => &PORTUGUESE,
        Language::Turkish => &TURKISH,
        Language::Russian => &RUSSIAN,
        Language::Ukrainian => &UKRAINIAN,
        Language::Polish => &POLISH,
        Language::Czech => &CZECH,
        _ => &[],
    }
}

/// A currency of the tables of this language.
#[derive(Clone, Copy)]
enum Money {
    Declined(&'static Currency),
    Arabic(&'static arabic::Noun, &'static arabic::Noun),
}

/// The currency whose sign `text` begins with, and the length of the sign.
fn sign(text: &str, language: Language) -> Option<(Money, usize)> {
    let found = |signs: &[&str]| {
        signs.iter().find_map(|sign| {
            let after = text.strip_prefix(sign)?;
            let word = sign.ends_with(char::is_alphabetic);
            (!word || !after.starts_with(char::is_alphanumeric)).then_some(sign.len())
        })
    };
    if language == Language::Arabic {
        return ARABIC
            .iter()
            .find_map(|(signs, whole, part)| Some((Money::Arabic(whole, part), found(signs)?)));
    }
    currencies(language)
        .iter()
        .find_map(|currency| Some((Money::Declined(currency), found(currency.signs)?)))
}

/// An amount of money that `text` begins with, its sign before or after it, and the length.
pub fn read(text: &str, language: Language) -> Option<(String, usize)> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        let amount = Amount::parse(text, language);
        let rest = &text[amount.len..];
        let space = usize::from(rest.starts_with(' '));
        let (money, len) = sign(&rest[space..], language)?;
        let mut end = amount.len + space + len;
        // The dot of «руб.» ends a sentence too, where nothing follows.
        let short = text[..end].ends_with(['б', 'н']);
        end += usize::from(short && text[end..].starts_with('.') && text.len() > end + 1);
        return Some((spoken(language, money, &amount)?, end));
    }
    let (money, len) = sign(text, language)?;
    let space = usize::from(text[len..].starts_with(' '));
    let number = &text[len + space..];
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // `$1,000`: with a dollar the comma may be between thousands, as in English.
    let mut amount = Amount::parse(number, language);
    if amount.decimals.len() == 3 && number[..amount.len].contains(',') {
        amount.whole.push_str(amount.decimals);
        amount.decimals = "";
    }
    let start = len + space + amount.len;
    let word = letters(text[start..].trim_start_matches(' '));
    if !word.is_empty() && SCALES.iter().any(|scale| word.starts_with(scale)) {
        let value = super::numbers::read(number, language, "").0;
        let end = text.len() - text[start..].trim_start_matches(' ').len() + word.len();
        return Some((format!("{value} {word} {}", after_scale(language, money)), end));
    }
    Some((spoken(language, money, &amount)?, start))
}

/// How the words for millions begin.
const SCALES: [&str; 14] = [
    "mio",
    "mill",
    "mil",
    "mrd",
    "bilh",
    "bilj",
    "млн",
    "млрд",
    "милли",
    "мільй",
    "мільяр",
    "mld",
    "مليون",
    "مليار",
];

/// A sign that no number is beside: `5 Mio. €`.
pub fn name(text: &str, language: Language) -> Option<(String, usize)> {
    let (money, len) = sign(text, language)?;
    Some((after_scale(language, money), len))
}

/// The money after a million of it: `millones de euros`.
fn after_scale(language: Language, money: Money) -> String {
    let name = match money {
        Money::Declined(currency) => currency.whole.0[2],
        Money::Arabic(whole, _) => whole[0],
    };
    let of = match language {
        Language::French if name.starts_with(['a', 'e', 'o']) => "d'",
        Language::French | Language::Spanish | Language::Portuguese => "de ",
        Language::Italian => "di ",
        _ => "",
    };
    format!("{of}{name}")
}

/// `fünf euro und fünfzig cent`; nothing for a number that has too many digits.
fn spoken(language: Language, money: Money, amount: &Amount<'_>) -> Option<String> {
    let whole = short(&amount.whole)?;
    let part: u64 = match amount.decimals {
        "" => 0,
        hundredths if hundredths.len() == 2 => hundredths.parse().ok()?,
        decimals => {
            // `2,5 €`
            let text = format!("{},{decimals}", amount.whole);
            let (words, _) = super::numbers::read(&text, language, "");
            let name = match money {
                Money::Declined(currency) => currency.whole.0[1],
                Money::Arabic(whole, _) => whole[0],
            };
            return Some(format!("{words} {name}"));
        }
    };
    let (whole_words, part_words) = match money {
        Money::Declined(currency) => {
            (counted(language, whole, &currency.whole), counted(language, part, &currency.part))
        }
        Money::Arabic(of, hundredth) => {
            (arabic::counted(whole, of), arabic::counted(part, hundredth))
        }
    };
    let and = match language {
        Language::German => " und ",
        Language::Dutch => " en ",
        Language::Swedish => " och ",
        Language::French => " et ",
        Language::Spanish => " con ",
        Language::Italian | Language::Portuguese => " e ",
        Language::Arabic => " و",
        _ => " ",
    };
    Some(match (whole, part) {
        (_, 0) => whole_words,
        (0, _) => part_words,
        _ => format!("{whole_words}{and}{part_words}"),
    })
}

fn counted(language: Language, value: u64, noun: &Counted) -> String {
    let form = match language {
        Language::Russian | Language::Ukrainian | Language::Polish | Language::Czech => {
            plural(language, value)
        }
        Language::French if value < 2 => 0,
        _ => usize::from(value != 1),
    };
    let millions = value >= 1_000_000 && value.is_multiple_of(1_000_000);
    let of = match language {
        Language::French if millions && noun.0[2].starts_with(['a', 'e', 'o']) => "d'",
        Language::French | Language::Spanish | Language::Portuguese if millions => "de ",
        Language::Italian if millions => "di ",
        _ => "",
    };
    format!("{} {of}{}", cardinal(language, value, noun.1), noun.0[form])
}
