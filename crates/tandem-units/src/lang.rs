//! The language of a page, and numbers as that language writes them.
//!
//! In: values. Out: words for people. English and Persian are next to each other where they are used
//! ([`Lang::say`]). Names of stages, flags and commands
//! are never translated.

use crate::figures;
use crate::quantity::{Bytes, Seconds};
use std::fmt;
use std::str::FromStr;

/// The language of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lang {
    /// English, left to right.
    #[default]
    En,
    /// Persian, right to left.
    Fa,
}

impl Lang {
    /// All codes, for help and errors.
    pub const CODES: [&'static str; 2] = ["en", "fa"];

    /// The code in `lang="..."`.
    pub fn code(self) -> &'static str {
        match self {
            Lang::En => "en",
            Lang::Fa => "fa",
        }
    }

    /// The direction in `dir="..."`.
    pub fn direction(self) -> &'static str {
        match self {
            Lang::En => "ltr",
            Lang::Fa => "rtl",
        }
    }

    /// One of two ways to say the same.
    pub fn say<T>(self, english: T, persian: T) -> T {
        match self {
            Lang::En => english,
            Lang::Fa => persian,
        }
    }

    /// Digits of this language, with its decimal mark.
    pub fn digits(self, text: &str) -> String {
        match self {
            Lang::En => text.to_string(),
            Lang::Fa => text.chars().map(persian).collect(),
        }
    }

    /// A whole number, thousands apart.
    pub fn count(self, count: u64) -> String {
        let plain = count.to_string();
        let mut apart = String::new();
        for (place, digit) in plain.chars().enumerate() {
            if place > 0 && (plain.len() - place).is_multiple_of(3) {
                apart.push(',');
            }
            apart.push(digit);
        }
        self.digits(&apart)
    }

    /// A number with so many decimals.
    pub fn number(self, value: f64, decimals: usize) -> String {
        self.digits(&format!("{value:.decimals$}"))
    }

    /// A number of any size in about four digits: losses, learning rates.
    pub fn short(self, value: f64) -> String {
        let size = value.abs();
        let text = match size {
            _ if !value.is_finite() => "-".to_string(),
            _ if value == 0.0 => "0".to_string(),
            _ if size >= 1e5 => format!("{value:.2e}"),
            _ if size >= 100.0 => format!("{value:.0}"),
            _ if size >= 10.0 => format!("{value:.1}"),
            _ if size >= 0.1 => format!("{value:.3}"),
            _ if size >= 1e-3 => format!("{value:.4}"),
            _ => format!("{value:.1e}"),
        };
        self.digits(&text)
    }

    /// A share of 0 to 1 in percent.
    pub fn percent(self, share: f64) -> String {
        let text = figures::percent(share);
        match self {
            Lang::En => text,
            Lang::Fa => format!("{}٪", self.digits(text.trim_end_matches(" %"))),
        }
    }

    /// A length of time.
    pub fn seconds(self, length: f64) -> String {
        self.measure(&Seconds(length).to_string())
    }

    /// An amount of memory.
    pub fn bytes(self, amount: Bytes) -> String {
        self.measure(&amount.to_string())
    }

    /// A number, a blank and a unit, as quantities are displayed.
    fn measure(self, text: &str) -> String {
        let Some((number, unit)) = text.split_once(' ').filter(|_| self == Lang::Fa) else {
            return text.to_string();
        };
        let unit = match unit {
            "h" => "ساعت",
            "min" => "دقیقه",
            "s" => "ثانیه",
            "ms" => "میلی‌ثانیه",
            "us" => "میکروثانیه",
            "B" => "بایت",
            "KiB" => "کیلوبایت",
            "MiB" => "مگابایت",
            "GiB" => "گیگابایت",
            "TiB" => "ترابایت",
            other => other,
        };
        format!("{} {unit}", self.digits(number))
    }
}

fn persian(letter: char) -> char {
    match letter {
        '.' => '٫',
        ',' => '٬',
        '0'..='9' => char::from_u32('۰' as u32 + (letter as u32 - '0' as u32)).unwrap_or(letter),
        other => other,
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Lang {
    type Err = String;

    fn from_str(text: &str) -> Result<Lang, String> {
        match text {
            "en" => Ok(Lang::En),
            "fa" => Ok(Lang::Fa),
            _ => Err(format!("pages are written in {}", Lang::CODES.join(" or "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: (String, String), english: &str, persian: &str) {
        assert_eq!(text, (english.to_string(), persian.to_string()));
    }

    fn both(write: impl Fn(Lang) -> String) -> (String, String) {
        (write(Lang::En), write(Lang::Fa))
    }

    #[test]
    fn each_language_has_its_digits_and_units() {
        check(both(|lang| lang.count(1_234_567)), "1,234,567", "۱٬۲۳۴٬۵۶۷");
        check(both(|lang| lang.count(999)), "999", "۹۹۹");
        check(both(|lang| lang.seconds(0.1514)), "151.40 ms", "۱۵۱٫۴۰ میلی‌ثانیه");
        check(both(|lang| lang.bytes(Bytes(3 << 29))), "1.5 GiB", "۱٫۵ گیگابایت");
        check(both(|lang| lang.percent(0.995)), "99.5 %", "۹۹٫۵٪");
        check(both(|lang| lang.number(-2.5, 1)), "-2.5", "-۲٫۵");
    }

    #[test]
    fn numbers_of_any_size_stay_short() {
        for (value, text) in [
            (0.0, "0"),
            (2.92817, "2.928"),
            (9.99, "9.990"),
            (12.34, "12.3"),
            (4321.9, "4322"),
            (0.0125, "0.0125"),
            (6e-5, "6.0e-5"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(Lang::En.short(value), text);
        }
    }
}
