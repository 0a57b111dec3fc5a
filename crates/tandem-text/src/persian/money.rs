//! Money with the sign before the number: `$3.50`, `$3 میلیون`, `$250-$300`.
//!
//! In: a normalizer whose scan is before the number. Out: words with the currency after them.

use super::super::numeral::Numeral;
use super::Normalizer;
use super::letters::in_word;
use super::names::currency;
use super::numbers::{cardinal, value};

impl Normalizer<'_> {
    /// Reads the number and writes the currency after it.
    pub(super) fn money(&mut self, name: &str, coin: &str) {
        let numeral = Numeral::parse(self.scan.rest());
        self.scan.skip(numeral.len);
        if numeral.fraction.len() == 2 && !coin.is_empty() {
            return self.say(&with_coins(&numeral, name, coin));
        }
        let scale = self.take_scale();
        let first = format!("{}{scale}", value(&numeral));
        if !self.take_range_end(name) {
            return self.say(&format!("{first} {name}"));
        }
        let last = Numeral::parse(self.scan.rest());
        self.scan.skip(last.len);
        let scale = self.take_scale();
        self.say(&format!("{first} تا {}{scale} {name}", value(&last)));
    }

    /// Moves to the second number of `$250-$300` or `$5-10`.
    fn take_range_end(&mut self, name: &str) -> bool {
        let rest = self.scan.rest();
        let trimmed = rest.strip_prefix(' ').unwrap_or(rest);
        let Some(after) = trimmed.strip_prefix(['-', '–']) else { return false };
        let next = after.strip_prefix(' ').unwrap_or(after);
        let sign =
            next.chars().next().filter(|c| currency(*c).is_some_and(|(same, _)| same == name));
        let number = &next[sign.map_or(0, char::len_utf8)..];
        // Without a second sign, spaces would make it a pause.
        let tight = trimmed.len() == rest.len() && next.len() == after.len();
        let found = number.starts_with(|c: char| c.is_ascii_digit()) && (sign.is_some() || tight);
        if found {
            self.scan.skip(rest.len() - number.len());
        }
        found
    }

    /// «میلیون» after the number of `$۳ میلیون`: it comes before the currency.
    fn take_scale(&mut self) -> String {
        let mut scale = String::new();
        while let word @ ("هزار" | "میلیون" | "میلیارد" | "تریلیون") = self.scan.word_after()
        {
            let rest = self.scan.rest();
            let len = rest.len() - rest.trim_start().len() + word.len();
            // A longer word, such as «میلیون‌ها».
            if rest[len..].starts_with(in_word) {
                break;
            }
            self.scan.skip(len);
            scale.push(' ');
            scale.push_str(word);
        }
        scale
    }
}

fn with_coins(numeral: &Numeral<'_>, name: &str, coin: &str) -> String {
    let large = format!("{} {name}", cardinal(&numeral.whole));
    let small = format!("{} {coin}", cardinal(numeral.fraction));
    match (cardinal(&numeral.whole).as_str(), numeral.fraction) {
        ("صفر", _) => small,
        (_, "00") => large,
        _ => format!("{large} و {small}"),
    }
}
