//! English number words: cardinals, ordinals, years, decimals.
//!
//! American wording: no "and" after hundred. Knows no context; [`super::amounts`] does.

use super::super::number_words::NumberWords;
use super::super::numeral::Numeral;

const WORDS: NumberWords = NumberWords {
    ones: [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ],
    tens: ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
    hundreds: [
        "",
        "one hundred",
        "two hundred",
        "three hundred",
        "four hundred",
        "five hundred",
        "six hundred",
        "seven hundred",
        "eight hundred",
        "nine hundred",
    ],
    scales: [
        "",
        "thousand",
        "million",
        "billion",
        "trillion",
        "quadrillion",
        "quintillion",
        "sextillion",
        "septillion",
        "octillion",
        "nonillion",
        "decillion",
    ],
    after_tens: "-",
    between: " ",
    bare_thousand: false,
};

/// `1234` -> `one thousand two hundred thirty-four`. `digits` are ASCII digits.
pub fn cardinal(digits: &str) -> String {
    WORDS.cardinal(digits)
}

/// A whole number or a decimal.
pub fn value(numeral: &Numeral<'_>) -> String {
    numeral.words(cardinal, decimal)
}

fn cardinal_of(value: u32) -> String {
    cardinal(&value.to_string())
}

/// `007` -> `zero zero seven`.
pub fn one_by_one(digits: &str) -> String {
    WORDS.one_by_one(digits)
}

/// `22` -> `twenty-second`.
pub fn ordinal(digits: &str) -> String {
    last_word_changed(&cardinal(digits), |last| match last {
        "one" => "first".into(),
        "two" => "second".into(),
        "three" => "third".into(),
        "five" => "fifth".into(),
        "eight" => "eighth".into(),
        "nine" => "ninth".into(),
        "twelve" => "twelfth".into(),
        tens if tens.ends_with('y') => format!("{}ieth", &tens[..tens.len() - 1]),
        other => format!("{other}th"),
    })
}

/// `eighty` -> `eighties`, `hundred` -> `hundreds`.
pub fn plural(words: &str) -> String {
    last_word_changed(words, |last| match last {
        "six" => "sixes".into(),
        tens if tens.ends_with('y') => format!("{}ies", &tens[..tens.len() - 1]),
        other => format!("{other}s"),
    })
}

fn last_word_changed(words: &str, change: impl FnOnce(&str) -> String) -> String {
    let start = words.rfind([' ', '-']).map_or(0, |space| space + 1);
    let mut out = words[..start].to_owned();
    out.push_str(&change(&words[start..]));
    out
}

/// A year between 1000 and 2999: `1984` -> `nineteen eighty-four`, `2005` -> `two thousand five`.
pub fn year(year: u32) -> String {
    let (century, rest) = (year / 100, year % 100);
    match (century, rest) {
        (20 | 10, 0..10) => cardinal_of(year),
        (_, 0) => format!("{} hundred", cardinal_of(century)),
        (_, 1..10) => format!("{} oh {}", cardinal_of(century), cardinal_of(rest)),
        _ => format!("{} {}", cardinal_of(century), cardinal_of(rest)),
    }
}

/// `3`, `14` -> `three point one four`.
pub fn decimal(whole: &str, fraction: &str) -> String {
    format!("{} point {}", cardinal(whole), one_by_one(fraction))
}

/// `1`, `2` -> `one half`; `3`, `4` -> `three quarters`.
pub fn fraction(numerator: u32, denominator: u32) -> String {
    let part = match denominator {
        2 => "half".to_owned(),
        4 => "quarter".to_owned(),
        other => ordinal(&other.to_string()),
    };
    let count = cardinal_of(numerator);
    match (numerator, denominator) {
        (1, _) => format!("{count} {part}"),
        (_, 2) => format!("{count} halves"),
        _ => format!("{count} {part}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cardinals_reach_past_a_quintillion() {
        for (digits, words) in [
            ("0", "zero"),
            ("00", "zero"),
            ("007", "seven"),
            ("13", "thirteen"),
            ("40", "forty"),
            ("99", "ninety-nine"),
            ("100", "one hundred"),
            ("123", "one hundred twenty-three"),
            ("1000", "one thousand"),
            ("1001", "one thousand one"),
            ("12345", "twelve thousand three hundred forty-five"),
            ("1000000", "one million"),
            ("1000000000000000000", "one quintillion"),
            ("2000000000000000005", "two quintillion five"),
            ("1000000000000000000000000000000000", "one decillion"),
        ] {
            assert_eq!(cardinal(digits), words);
        }
    }

    #[test]
    fn very_long_numbers_are_read_digit_by_digit() {
        let long = "1".repeat(40);
        assert_eq!(cardinal(&long), ["one"; 40].join(" "));
    }

    #[test]
    fn ordinals_change_the_last_word_only() {
        for (digits, words) in [
            ("1", "first"),
            ("2", "second"),
            ("12", "twelfth"),
            ("20", "twentieth"),
            ("22", "twenty-second"),
            ("100", "one hundredth"),
            ("103", "one hundred third"),
        ] {
            assert_eq!(ordinal(digits), words);
        }
    }

    #[test]
    fn years_are_read_in_pairs_except_around_the_millennium() {
        for (value, words) in [
            (1066, "ten sixty-six"),
            (1492, "fourteen ninety-two"),
            (1900, "nineteen hundred"),
            (1905, "nineteen oh five"),
            (1984, "nineteen eighty-four"),
            (2000, "two thousand"),
            (2005, "two thousand five"),
            (2010, "twenty ten"),
            (2024, "twenty twenty-four"),
        ] {
            assert_eq!(year(value), words);
        }
    }

    #[test]
    fn fractions_have_their_own_plurals() {
        for (parts, words) in [
            ((1, 2), "one half"),
            ((3, 2), "three halves"),
            ((3, 4), "three quarters"),
            ((2, 3), "two thirds"),
            ((1, 8), "one eighth"),
        ] {
            assert_eq!(fraction(parts.0, parts.1), words);
        }
    }
}
