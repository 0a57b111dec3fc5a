//! Persian numbers in context: times, dates, money, units, ordinals.
//!
//! In: a normalizer whose scan is before a digit. Out: words. Each `try_*` handles one pattern
//! and leaves the scan unchanged if the text has another.

use super::super::numeral::{Clock, Groups, Numeral, digits, vulgar};
use super::super::symbols::ZWNJ;
use super::Normalizer;
use super::letters::is_mark;
use super::names::{currency, is_measured, month, unit};
use super::numbers::{cardinal, decimal, fraction, one_by_one, ordinal};

impl Normalizer<'_> {
    /// Reads the next number.
    pub(super) fn number(&mut self) {
        if let Some(next) = self.scan.peek()
            && let Some((top, bottom)) = vulgar(next)
        {
            self.scan.skip_char(next);
            return self.say(&part(top, bottom));
        }
        let shaped = self.try_clock()
            || self.try_date('/')
            || self.try_date('-')
            || self.try_slashed()
            || self.try_zero_first();
        if !shaped {
            self.plain();
        }
    }

    /// Reads `3.50` after `$`, with the currency after it.
    pub(super) fn money(&mut self, name: &str, coin: &str) {
        let numeral = Numeral::parse(self.scan.rest());
        self.scan.skip(numeral.len);
        if numeral.fraction.len() == 2 && !coin.is_empty() {
            let large = format!("{} {name}", cardinal(&numeral.whole));
            let small = format!("{} {coin}", cardinal(numeral.fraction));
            return match (cardinal(&numeral.whole).as_str(), numeral.fraction) {
                ("صفر", _) => self.say(&small),
                (_, "00") => self.say(&large),
                _ => self.say(&format!("{large} و {small}")),
            };
        }
        let scale = self.take_scale();
        self.say(&format!("{}{scale} {name}", value(&numeral)));
    }

    /// «میلیون» after the number of `$۳ میلیون`: it comes before the currency.
    fn take_scale(&mut self) -> String {
        let mut scale = String::new();
        while let word @ ("هزار" | "میلیون" | "میلیارد" | "تریلیون") = self.scan.word_after()
        {
            let rest = self.scan.rest();
            self.scan.skip(rest.len() - rest.trim_start().len() + word.len());
            scale.push(' ');
            scale.push_str(word);
        }
        scale
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
        true
    }

    /// `1403/05/12` or `12/05/1403` -> «دوازدهم مرداد هزار و چهارصد و سه».
    fn try_date(&mut self, mark: char) -> bool {
        let groups = Groups::parse(self.scan.rest(), mark);
        if groups.parts.len() != 3 {
            return false;
        }
        let (first, middle, last) = (groups.value(0), groups.value(1), groups.value(2));
        let (Some(first), Some(middle), Some(last)) = (first, middle, last) else { return false };
        let (year, day) = if first > 31 { (first, last) } else { (last, first) };
        let Some(name) = month(year, middle).filter(|_| (1..=31).contains(&day)) else {
            return false;
        };
        self.scan.skip(groups.len);
        self.say(&format!("{} {name} {}", ordinal(&day.to_string()), cardinal(&year.to_string())));
        true
    }

    /// `3/4` is a fraction, `3/5 درصد` and `7/5` are decimals: Persian uses the slash for both.
    fn try_slashed(&mut self) -> bool {
        let groups = Groups::parse(self.scan.rest(), '/');
        let (2, Some(top), Some(bottom)) = (groups.parts.len(), groups.value(0), groups.value(1))
        else {
            return false;
        };
        self.scan.skip(groups.len);
        let rest = self.scan.rest().trim_start();
        let measured =
            is_measured(self.scan.word_after()) || rest.starts_with('%') || unit(rest).is_some();
        if !measured && top > 0 && top < bottom && bottom <= 100 {
            self.say(&fraction(top, bottom));
        } else {
            self.say(&decimal(groups.parts[0], groups.parts[1]));
            self.try_unit();
        }
        true
    }

    /// `021-1234`, `0912`: numbers with a leading zero are read digit by digit.
    fn try_zero_first(&mut self) -> bool {
        let groups = Groups::parse(self.scan.rest(), '-');
        let first = groups.parts[0];
        let decimal = !Numeral::parse(self.scan.rest()).fraction.is_empty();
        if first.len() < 2 || !first.starts_with('0') || decimal {
            return false;
        }
        self.scan.skip(groups.len);
        for (index, part) in groups.parts.iter().enumerate() {
            if index > 0 {
                self.out.close(',');
            }
            self.say(&one_by_one(part));
        }
        true
    }

    fn plain(&mut self) {
        let numeral = Numeral::parse(self.scan.rest());
        self.scan.skip(numeral.len);
        if !self.try_mixed(&numeral) && !self.try_ordinal(&numeral) {
            self.say(&value(&numeral));
            self.try_unit();
        }
        self.range(&numeral);
    }

    /// `3½` -> «سه و نیم».
    fn try_mixed(&mut self, numeral: &Numeral<'_>) -> bool {
        let Some(next) = self.scan.peek().filter(|_| numeral.fraction.is_empty()) else {
            return false;
        };
        let Some((top, bottom)) = vulgar(next) else { return false };
        self.scan.skip_char(next);
        self.say(&format!("{} و {}", cardinal(&numeral.whole), part(top, bottom)));
        true
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
    fn try_unit(&mut self) {
        let rest = self.scan.rest();
        let text = rest.strip_prefix(' ').unwrap_or(rest);
        let Some(next) = text.chars().next() else { return };
        let free = digits(&text[next.len_utf8()..]).is_empty();
        let (name, len) = match (next, currency(next), unit(text)) {
            ('%', ..) if free => ("درصد", 1),
            (_, Some((name, _)), _) if free => (name, next.len_utf8()),
            (_, _, Some(found)) => found,
            _ => return,
        };
        self.scan.skip(rest.len() - text.len() + len);
        self.say(name);
    }

    /// `10-20` -> «ده تا بیست», `3-2` -> «سه بر دو» (a score), `3:1` -> «سه به یک».
    fn range(&mut self, first: &Numeral<'_>) {
        let Some(mark) = self.scan.take_range_mark() else { return };
        let second = Numeral::parse(self.scan.rest());
        self.say(match mark {
            ':' => "به",
            _ if first.value() > second.value() => "بر",
            _ => "تا",
        });
    }
}

fn value(numeral: &Numeral<'_>) -> String {
    numeral.words(cardinal, decimal)
}

fn part(top: u32, bottom: u32) -> String {
    if (top, bottom) == (1, 2) { "نیم".into() } else { fraction(top, bottom) }
}
