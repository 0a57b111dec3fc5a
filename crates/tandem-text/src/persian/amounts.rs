//! Persian numbers in context: the class of a number decides its words.
//!
//! In: a normalizer whose scan is before a digit. Out: words. Each `try_*` handles one pattern and
//! leaves the scan unchanged if the text has another; here they are listed in order, and what is left
//! is a plain number. The larger classes have their own files.

use super::super::numeral::{Clock, Numeral, digits};
use super::super::symbols::ZWNJ;
use super::Normalizer;
use super::letters::is_mark;
use super::names::{code, currency, unit};
use super::numbers::{cardinal, ordinal, value};

impl Normalizer<'_> {
    /// Reads the next number.
    pub(super) fn number(&mut self) {
        let shaped = self.try_vulgar()
            || self.try_clock()
            || self.try_numeric_date('/')
            || self.try_numeric_date('-')
            || self.try_day()
            || self.try_slashed()
            || self.try_phone();
        if !shaped {
            self.plain();
        }
    }

    fn try_clock(&mut self) -> bool {
        let Some(clock) = Clock::parse(self.scan.rest()) else { return false };
        let announced = self.scan.word_before() == "ساعت";
        self.scan.skip(clock.len);
        let mut words = String::from(if announced { "" } else { "ساعت " });
        words.push_str(&cardinal(&clock.hour.to_string()));
        if clock.minute > 0 {
            words.push_str(&format!(" و {} دقیقه", cardinal(&clock.minute.to_string())));
        }
        if let Some(second) = clock.second {
            words.push_str(&format!(" و {} ثانیه", cardinal(&second.to_string())));
        }
        self.say(&words);
        if self.scan.take_range_mark().is_some() {
            self.say("تا");
        }
        true
    }

    fn plain(&mut self) {
        let century = matches!(self.scan.token_before(), "قرن" | "سده" | "سده\u{200C}ی");
        let numeral = Numeral::parse(self.scan.rest());
        self.scan.skip(numeral.len);
        if century && numeral.is_plain() && numeral.whole.len() <= 2 && self.is_alone() {
            return self.say(&ordinal(&numeral.whole));
        }
        if !self.try_mixed(&numeral) && !self.try_ordinal(&numeral) {
            self.say(&value(&numeral));
            self.try_unit();
            self.try_era(&numeral);
        }
        self.range(&numeral);
    }

    /// No unit, ordinal ending or second number follows.
    fn is_alone(&self) -> bool {
        !self
            .scan
            .peek()
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '%' | '-' | '–' | ZWNJ))
    }

    /// «۵م», «۵ام», «۵ اُم», «۵‌امین».
    fn try_ordinal(&mut self, numeral: &Numeral<'_>) -> bool {
        if !numeral.fraction.is_empty() {
            return false;
        }
        let rest = self.scan.rest();
        let tail = rest.strip_prefix([' ', ZWNJ]).unwrap_or(rest);
        let end = tail.find(|c: char| !super::letters::in_word(c)).unwrap_or(tail.len());
        let ending: String = tail[..end].chars().filter(|c| !is_mark(*c)).collect();
        let apart = rest.len() != tail.len();
        let more = match ending.as_str() {
            "م" if !apart => "",
            "مین" if !apart => "ین",
            "ام" => "",
            "امین" => "ین",
            _ => return false,
        };
        self.scan.skip(rest.len() - tail.len() + end);
        self.say(&format!("{}{more}", ordinal(&numeral.whole)));
        true
    }

    /// A unit, percent or currency sign after the number.
    pub(super) fn try_unit(&mut self) {
        let rest = self.scan.rest();
        let text = rest.strip_prefix(' ').unwrap_or(rest);
        let Some(next) = text.chars().next() else { return };
        let free = digits(&text[next.len_utf8()..]).is_empty();
        let (name, len) = match (next, currency(next), code(text).or_else(|| unit(text))) {
            ('%', ..) if free => ("درصد", 1),
            (_, Some((name, _)), _) if free => (name, next.len_utf8()),
            (_, _, Some(found)) => found,
            _ => return self.by(),
        };
        self.scan.skip(rest.len() - text.len() + len);
        self.say(name);
    }

    /// `4x4`: the `x` between two numbers.
    fn by(&mut self) {
        let between = self.scan.rest().strip_prefix('x');
        if between.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            self.scan.skip(1);
            self.say("در");
        }
    }

    /// «۲۰۱۲ م.»: the letter after a year.
    fn try_era(&mut self, numeral: &Numeral<'_>) {
        let rest = self.scan.rest();
        let Some(tail) = rest.strip_prefix(" م") else { return };
        let year = numeral.is_plain() && (3..=4).contains(&numeral.whole.len());
        if !year || !tail.starts_with(['.', ')', ' ']) {
            return;
        }
        self.scan.skip(rest.len() - tail.len());
        self.say("میلادی");
        let mut after = self.scan;
        if after.take('.') && !after.at_end() {
            self.scan = after;
        }
    }

    /// `10-20` -> «ده تا بیست», `3-2` -> «سه بر دو» (a score), `3:1` -> «سه به یک».
    fn range(&mut self, first: &Numeral<'_>) {
        let Some(mark) = self.scan.take_range_mark() else { return };
        let second = Numeral::parse(self.scan.rest());
        // «۱۳۵۷-۶۷» are years.
        let years = first.whole.len() == 4 && second.whole.len() == 2;
        self.say(match mark {
            ':' => "به",
            _ if first.value() > second.value() && !years => "بر",
            _ => "تا",
        });
    }
}
