//! Whole numbers and ordinals of Russian, Ukrainian, Polish and Czech, and the form of a noun after a number.
//!
//! In: a value and a gender or a case. Out: words. Numbers are in the nominative; ordinals in any form.

use super::super::language::Language;
use super::cardinals::{Gender, list};

/// Number words of one language. Lists are separated by spaces.
struct Words {
    /// 0 to 19, masculine.
    ones: &'static str,
    /// One and two, feminine; one and two, neuter.
    feminine: [&'static str; 2],
    neuter: [&'static str; 2],
    tens: &'static str,
    hundreds: &'static str,
    /// A thousand, a million, a thousand million: after 1, 2 and 5.
    scales: [[&'static str; 3]; 3],
    /// Stems of the ordinals of 1 to 19, 10 to 90, 100 to 900, 1000 and 2000.
    ordinal_ones: &'static str,
    ordinal_tens: &'static str,
    ordinal_hundreds: &'static str,
    ordinal_thousands: [&'static str; 2],
}

static RUSSIAN: Words = Words {
    ones: "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать",
    feminine: ["одна", "две"],
    neuter: ["одно", "два"],
    tens: "- десять двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто",
    hundreds: "- сто двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот",
    scales: [
        ["тысяча", "тысячи", "тысяч"],
        ["миллион", "миллиона", "миллионов"],
        ["миллиард", "миллиарда", "миллиардов"],
    ],
    ordinal_ones: "- перв втор трет четвёрт пят шест седьм восьм девят десят одиннадцат двенадцат тринадцат четырнадцат пятнадцат шестнадцат семнадцат восемнадцат девятнадцат",
    ordinal_tens: "- - двадцат тридцат сороков пятидесят шестидесят семидесят восьмидесят девяност",
    ordinal_hundreds: "- сот двухсот трёхсот четырёхсот пятисот шестисот семисот восьмисот девятисот",
    ordinal_thousands: ["тысячн", "двухтысячн"],
};

static UKRAINIAN: Words = Words {
    ones: "нуль один два три чотири п'ять шість сім вісім дев'ять десять одинадцять дванадцять тринадцять чотирнадцять п'ятнадцять шістнадцять сімнадцять вісімнадцять дев'ятнадцять",
    feminine: ["одна", "дві"],
    neuter: ["одне", "два"],
    tens: "- десять двадцять тридцять сорок п'ятдесят шістдесят сімдесят вісімдесят дев'яносто",
    hundreds: "- сто двісті триста чотириста п'ятсот шістсот сімсот вісімсот дев'ятсот",
    scales: [
        ["тисяча", "тисячі", "тисяч"],
        ["мільйон", "мільйони", "мільйонів"],
        ["мільярд", "мільярди", "мільярдів"],
    ],
    ordinal_ones: "- перш друг трет четверт п'ят шост сьом восьм дев'ят десят одинадцят дванадцят тринадцят чотирнадцят п'ятнадцят шістнадцят сімнадцят вісімнадцят дев'ятнадцят",
    ordinal_tens: "- - двадцят тридцят сороков п'ятдесят шістдесят сімдесят вісімдесят дев'яност",
    ordinal_hundreds: "- сот двохсот трьохсот чотирьохсот п'ятисот шестисот семисот восьмисот дев'ятисот",
    ordinal_thousands: ["тисячн", "двотисячн"],
};

static POLISH: Words = Words {
    ones: "zero jeden dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście trzynaście czternaście piętnaście szesnaście siedemnaście osiemnaście dziewiętnaście",
    feminine: ["jedna", "dwie"],
    neuter: ["jedno", "dwa"],
    tens: "- dziesięć dwadzieścia trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt dziewięćdziesiąt",
    hundreds: "- sto dwieście trzysta czterysta pięćset sześćset siedemset osiemset dziewięćset",
    scales: [
        ["tysiąc", "tysiące", "tysięcy"],
        ["milion", "miliony", "milionów"],
        ["miliard", "miliardy", "miliardów"],
    ],
    ordinal_ones: "- pierwsz drug trzec czwart piąt szóst siódm ósm dziewiąt dziesiąt jedenast dwunast trzynast czternast piętnast szesnast siedemnast osiemnast dziewiętnast",
    ordinal_tens: "- - dwudziest trzydziest czterdziest pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt dziewięćdziesiąt",
    ordinal_hundreds: "- setn dwusetn trzechsetn czterechsetn pięćsetn sześćsetn siedemsetn osiemsetn dziewięćsetn",
    ordinal_thousands: ["tysięczn", "dwutysięczn"],
};

static CZECH: Words = Words {
    ones: "nula jeden dva tři čtyři pět šest sedm osm devět deset jedenáct dvanáct třináct čtrnáct patnáct šestnáct sedmnáct osmnáct devatenáct",
    feminine: ["jedna", "dvě"],
    neuter: ["jedno", "dvě"],
    tens: "- deset dvacet třicet čtyřicet padesát šedesát sedmdesát osmdesát devadesát",
    hundreds: "- sto dvě stě|tři sta|čtyři sta|pět set|šest set|sedm set|osm set|devět set",
    scales: [
        ["tisíc", "tisíce", "tisíc"],
        ["milion", "miliony", "milionů"],
        ["miliarda", "miliardy", "miliard"],
    ],
    ordinal_ones: "- prvn druh třet čtvrt pát šest sedm osm devát desát jedenáct dvanáct třináct čtrnáct patnáct šestnáct sedmnáct osmnáct devatenáct",
    ordinal_tens: "- - dvacát třicát čtyřicát padesát šedesát sedmdesát osmdesát devadesát",
    ordinal_hundreds: "- st dvoust třist čtyřst pětist šestist sedmist osmist devítist",
    ordinal_thousands: ["tisíc", "dvoutisíc"],
};

fn words(language: Language) -> &'static Words {
    match language {
        Language::Russian => &RUSSIAN,
        Language::Ukrainian => &UKRAINIAN,
        Language::Polish => &POLISH,
        _ => &CZECH,
    }
}

/// Which of three forms a noun has after a number: that of one, of two, or of five.
pub fn plural(language: Language, value: u64) -> usize {
    let (ones, tens) = (value % 10, value % 100);
    let eastern = matches!(language, Language::Russian | Language::Ukrainian);
    let few = (2..5).contains(&ones) && !(12..15).contains(&tens);
    match () {
        () if value == 1 || eastern && ones == 1 && tens != 11 => 0,
        () if few => 1,
        () => 2,
    }
}

/// A whole number below a million million.
pub fn cardinal(language: Language, value: u64, gender: Gender) -> String {
    let of = words(language);
    if value == 0 {
        return list(of.ones, 0).into();
    }
    let mut out: Vec<&str> = Vec::new();
    for (place, scale) in [3, 2, 1].into_iter().map(|place| (place, of.scales[place - 1])) {
        let group = value / 1000_u64.pow(place as u32) % 1000;
        // `тысяча`, but `один миллион` in the east.
        let bare = place == 1 || matches!(language, Language::Polish | Language::Czech);
        if group == 1 && bare && out.is_empty() {
            out.push(scale[0]);
        } else if group > 0 {
            let feminine = scale[0].ends_with(['а', 'a']);
            let gender = if feminine { Gender::Feminine } else { Gender::Masculine };
            below_thousand(language, group, gender, &mut out);
            out.push(scale[plural(language, group)]);
        }
    }
    if !value.is_multiple_of(1000) {
        below_thousand(language, value % 1000, gender, &mut out);
    }
    out.join(" ")
}

fn below_thousand(language: Language, value: u64, gender: Gender, out: &mut Vec<&str>) {
    let of = words(language);
    match (language, value / 100) {
        (_, 0) => {}
        (Language::Czech, 1) => out.push("sto"),
        (Language::Czech, hundreds) => out.push(
            of.hundreds["- sto ".len()..].split('|').nth(hundreds as usize - 2).unwrap_or_default(),
        ),
        (_, hundreds) => out.push(list(of.hundreds, hundreds)),
    }
    let rest = value % 100;
    if rest >= 20 {
        out.push(list(of.tens, rest / 10));
    }
    let ones = if rest < 20 { rest } else { rest % 10 };
    // Only alone does one change in the west: `dwadzieścia jeden`, `dvacet jedna`.
    let alone = value == 1 || matches!(language, Language::Russian | Language::Ukrainian);
    match (ones, gender) {
        (0, _) => {}
        (1, _) if language == Language::Czech && !alone && rest > 20 => out.push("jedna"),
        (1, _) if !alone => out.push(list(of.ones, 1)),
        (1 | 2, Gender::Feminine) => out.push(of.feminine[ones as usize - 1]),
        (1 | 2, Gender::Neuter) => out.push(of.neuter[ones as usize - 1]),
        _ => out.push(list(of.ones, ones)),
    }
}

/// The form of an ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Masculine,
    Feminine,
    Neuter,
    Genitive,
    Dative,
    /// After «в» and «о»; in Polish that of `w roku`.
    Locative,
    Instrumental,
    /// Of an hour: «о п'ятій», `o piątej`.
    FeminineLocative,
}

/// Endings in the order of [`Form`]: of most ordinals, and of those with a soft stem.
fn ending(language: Language, stem: &str, form: Form) -> &'static str {
    let endings = match (language, stem) {
        (Language::Russian, "трет") => "ий ья ье ьего ьему ьем ьим ьей",
        (Language::Russian, "втор" | "шест" | "седьм" | "восьм" | "сороков") => {
            "ой ая ое ого ому ом ым ой"
        }
        (Language::Russian, _) => "ый ая ое ого ому ом ым ой",
        (Language::Ukrainian, "трет") => "ій я є ього ьому ьому ім ій",
        (Language::Ukrainian, _) => "ий а е ого ому ому им ій",
        (Language::Polish, "drug") => "i a ie iego iemu im im iej",
        (Language::Polish, "trzec") => "i ia ie iego iemu im im iej",
        (Language::Polish, _) => "y a e ego emu ym ym ej",
        (_, "prvn" | "třet" | "tisíc" | "dvoutisíc") => "í í í ího ímu ím ím í",
        _ => "ý á é ého ému ém ým é",
    };
    list(endings, form as u64)
}

/// An ordinal from 1 to 2999.
pub fn ordinal(language: Language, value: u64, form: Form) -> String {
    let of = words(language);
    let (hundreds, tens, ones) = (value / 100 % 10, value % 100 / 10, value % 10);
    let with = |stem: &str| format!("{stem}{}", ending(language, stem, form));
    // Polish and Czech decline tens and ones, the others only the last word.
    let both = matches!(language, Language::Polish | Language::Czech);
    let (head, tail) = match (value % 100, hundreds) {
        (1..20, _) => (value - value % 100, with(list(of.ordinal_ones, value % 100))),
        (20.., _) if ones == 0 => (value - value % 100, with(list(of.ordinal_tens, tens))),
        (20.., _) if both => {
            let tens = with(list(of.ordinal_tens, tens));
            (value - value % 100, format!("{tens} {}", with(list(of.ordinal_ones, ones))))
        }
        (20.., _) => (value - ones, with(list(of.ordinal_ones, ones))),
        (0, 1..) => (value - hundreds * 100, with(list(of.ordinal_hundreds, hundreds))),
        (0, _) => {
            let thousands = (value / 1000).clamp(1, 2) as usize;
            (0, with(of.ordinal_thousands[thousands - 1]))
        }
    };
    match head {
        0 => tail,
        _ => format!("{} {tail}", cardinal(language, head, Gender::Masculine)),
    }
}
