//! Whole numbers, ordinals and counted nouns of Arabic.
//!
//! In: a value. Out: words without vowel signs. Numbers are in the nominative and count masculine nouns, as one counts aloud;
//! [`oblique`] changes them to the form after a preposition.

use super::cardinals::list;

const ONES: &str = "صفر واحد اثنان ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة عشرة";
const TENS: &str = "- - عشرون ثلاثون أربعون خمسون ستون سبعون ثمانون تسعون";
const HUNDREDS: &str = "- مئة مئتان ثلاثمئة أربعمئة خمسمئة ستمئة سبعمئة ثمانمئة تسعمئة";

/// Singular, dual, plural, and singular in the accusative.
pub type Noun = [&'static str; 4];

const SCALES: [Noun; 3] = [
    ["مليار", "ملياران", "مليارات", "مليارا"],
    ["مليون", "مليونان", "ملايين", "مليونا"],
    ["ألف", "ألفان", "آلاف", "ألفا"],
];

/// A whole number below a million million.
pub fn cardinal(value: u64) -> String {
    if value == 0 {
        return list(ONES, 0).into();
    }
    let mut parts: Vec<String> = Vec::new();
    for (place, scale) in [3, 2, 1].into_iter().zip(&SCALES) {
        match value / 1000_u64.pow(place) % 1000 {
            0 => {}
            1 => parts.push(scale[0].into()),
            group => parts.push(counted(group, scale)),
        }
    }
    below_thousand(value % 1000, &mut parts);
    parts.join(" و")
}

fn below_thousand(value: u64, parts: &mut Vec<String>) {
    if value >= 100 {
        parts.push(list(HUNDREDS, value / 100).into());
    }
    match value % 100 {
        0 => {}
        11 => parts.push("أحد عشر".into()),
        12 => parts.push("اثنا عشر".into()),
        rest @ 1..=10 => parts.push(list(ONES, rest).into()),
        rest @ 13..20 => parts.push(format!("{} عشر", list(ONES, rest - 10))),
        rest => {
            if rest % 10 > 0 {
                parts.push(list(ONES, rest % 10).into());
            }
            parts.push(list(TENS, rest / 10).into());
        }
    }
}

/// A number and what it counts: «ريال واحد», «ريالان», «ثلاثة ريالات», «عشرون ريالا», «مئة ريال».
pub fn counted(value: u64, noun: &Noun) -> String {
    match (value, value % 100) {
        (1, _) => format!("{} واحد", noun[0]),
        (2, _) => noun[1].into(),
        (_, 3..=10) => format!("{} {}", cardinal(value), noun[2]),
        (_, 11..) => format!("{} {}", cardinal(value), noun[3]),
        // «مئتا ريال», «ألفا ريال»
        _ => {
            let words = cardinal(value);
            let words = words.strip_suffix("تان").map_or(words.clone(), |head| format!("{head}تا"));
            let words =
                words.strip_suffix("ألفان").map_or(words.clone(), |head| format!("{head}ألفا"));
            format!("{words} {}", noun[0])
        }
    }
}

/// The words of a number after a preposition: «عشرون» becomes «عشرين».
pub fn oblique(words: &str) -> String {
    let each = words.split(' ').map(|word| {
        let number = word.strip_prefix('و').unwrap_or(word);
        match number {
            "اثنا" => word.replace("اثنا", "اثني"),
            "اثنان" | "مئتان" | "ألفان" | "مليونان" | "ملياران" => {
                word.replace("ان", "ين")
            }
            _ if list_has(TENS, number) => word.replace("ون", "ين"),
            _ => word.to_owned(),
        }
    });
    each.collect::<Vec<_>>().join(" ")
}

fn list_has(words: &str, word: &str) -> bool {
    words.split(' ').any(|listed| listed == word)
}

/// The ordinal of a day, with the article: «الخامس والعشرون».
pub fn ordinal(value: u64) -> String {
    const MASCULINE: &str = "- الأول الثاني الثالث الرابع الخامس السادس السابع الثامن التاسع العاشر";
    match value {
        1..=10 => list(MASCULINE, value).into(),
        11 => "الحادي عشر".into(),
        12..20 => format!("{} عشر", list(MASCULINE, value - 10)),
        _ => {
            let ten = format!("ال{}", list(TENS, value / 10));
            match value % 10 {
                0 => ten,
                1 => format!("الحادي و{ten}"),
                ones => format!("{} و{ten}", list(MASCULINE, ones)),
            }
        }
    }
}

/// The name of an hour from 0 to 24: «الثالثة», «الخامسة عشرة».
pub fn hour(value: u64) -> String {
    const FEMININE: &str =
        "- الأولى الثانية الثالثة الرابعة الخامسة السادسة السابعة الثامنة التاسعة العاشرة";
    match value {
        0 | 24 => "الثانية عشرة".into(),
        1 => "الواحدة".into(),
        2..=10 => list(FEMININE, value).into(),
        11 => "الحادية عشرة".into(),
        12..20 => format!("{} عشرة", list(FEMININE, value - 10)),
        20 => "العشرون".into(),
        21 => "الحادية والعشرون".into(),
        _ => format!("{} والعشرون", list(FEMININE, value % 10)),
    }
}

/// Minutes of an hour, which are feminine: «خمس دقائق», «خمس وعشرون دقيقة».
pub fn minutes(value: u64) -> String {
    const FEMININE: &str = "- إحدى اثنتان ثلاث أربع خمس ست سبع ثماني تسع عشر";
    match value {
        1 => "دقيقة واحدة".into(),
        2 => "دقيقتان".into(),
        3..=10 => format!("{} دقائق", list(FEMININE, value)),
        12 => "اثنتا عشرة دقيقة".into(),
        11..20 => format!("{} عشرة دقيقة", list(FEMININE, value - 10)),
        _ if value.is_multiple_of(10) => format!("{} دقيقة", list(TENS, value / 10)),
        _ => format!("{} و{} دقيقة", list(FEMININE, value % 10), list(TENS, value / 10)),
    }
}
