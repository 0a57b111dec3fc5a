//! Persian number words: cardinals, ordinals, decimals, fractions.
//!
//! Knows no context; [`super::amounts`] does.

use super::super::number_words::NumberWords;
use super::super::numeral::Numeral;

const WORDS: NumberWords = NumberWords {
    ones: [
        "صفر",
        "یک",
        "دو",
        "سه",
        "چهار",
        "پنج",
        "شش",
        "هفت",
        "هشت",
        "نه",
        "ده",
        "یازده",
        "دوازده",
        "سیزده",
        "چهارده",
        "پانزده",
        "شانزده",
        "هفده",
        "هجده",
        "نوزده",
    ],
    tens: ["", "", "بیست", "سی", "چهل", "پنجاه", "شصت", "هفتاد", "هشتاد", "نود"],
    hundreds: ["", "صد", "دویست", "سیصد", "چهارصد", "پانصد", "ششصد", "هفتصد", "هشتصد", "نهصد"],
    scales: [
        "",
        "هزار",
        "میلیون",
        "میلیارد",
        "تریلیون",
        "کوادریلیون",
        "کوینتیلیون",
        "سکستیلیون",
        "سپتیلیون",
        "اکتیلیون",
        "نونیلیون",
        "دسیلیون",
    ],
    after_tens: " و ",
    between: " و ",
    // One thousand is just «هزار», one million keeps its «یک».
    bare_thousand: true,
};

/// `123` -> `صد و بیست و سه`. `digits` are ASCII digits.
pub fn cardinal(digits: &str) -> String {
    WORDS.cardinal(digits)
}

/// A whole number or a decimal.
pub fn value(numeral: &Numeral<'_>) -> String {
    numeral.words(cardinal, decimal)
}

/// `021` -> `صفر دو یک`.
pub fn one_by_one(digits: &str) -> String {
    WORDS.one_by_one(digits)
}

/// `23` -> `بیست و سوم`, `30` -> `سی‌ام`.
pub fn ordinal(digits: &str) -> String {
    let words = cardinal(digits);
    if let Some(head) = words.strip_suffix("سه") {
        return format!("{head}سوم");
    }
    if words.ends_with("سی") {
        return format!("{words}\u{200C}ام");
    }
    format!("{words}م")
}

/// `3`, `14` -> `سه ممیز چهارده`. Long fractions are read digit by digit.
pub fn decimal(whole: &str, fraction: &str) -> String {
    let zeros = fraction.len() - fraction.trim_start_matches('0').len();
    let read = if fraction.len() > 3 || zeros == fraction.len() {
        one_by_one(fraction)
    } else if zeros > 0 {
        format!("{} {}", one_by_one(&fraction[..zeros]), cardinal(&fraction[zeros..]))
    } else {
        cardinal(fraction)
    };
    format!("{} ممیز {read}", cardinal(whole))
}

/// `3`, `4` -> `سه چهارم`.
pub fn fraction(numerator: u32, denominator: u32) -> String {
    format!("{} {}", cardinal(&numerator.to_string()), ordinal(&denominator.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cardinals_are_joined_with_vav() {
        for (digits, words) in [
            ("0", "صفر"),
            ("00", "صفر"),
            ("7", "هفت"),
            ("19", "نوزده"),
            ("21", "بیست و یک"),
            ("100", "صد"),
            ("123", "صد و بیست و سه"),
            ("1000", "هزار"),
            ("1001", "هزار و یک"),
            ("2000", "دو هزار"),
            ("1357", "هزار و سیصد و پنجاه و هفت"),
            ("101000", "صد و یک هزار"),
            ("1000000", "یک میلیون"),
            ("2500000000", "دو میلیارد و پانصد میلیون"),
            ("1000000000000000000", "یک کوینتیلیون"),
        ] {
            assert_eq!(cardinal(digits), words);
        }
    }

    #[test]
    fn ordinals_end_in_om() {
        for (digits, words) in [
            ("1", "یکم"),
            ("2", "دوم"),
            ("3", "سوم"),
            ("5", "پنجم"),
            ("23", "بیست و سوم"),
            ("30", "سی\u{200C}ام"),
            ("100", "صدم"),
            ("1000", "هزارم"),
        ] {
            assert_eq!(ordinal(digits), words);
        }
    }

    #[test]
    fn decimals_keep_their_zeros() {
        for (whole, fraction, words) in [
            ("3", "5", "سه ممیز پنج"),
            ("3", "14", "سه ممیز چهارده"),
            ("0", "05", "صفر ممیز صفر پنج"),
            ("1", "0", "یک ممیز صفر"),
            ("3", "1415", "سه ممیز یک چهار یک پنج"),
        ] {
            assert_eq!(decimal(whole, fraction), words);
        }
    }
}
