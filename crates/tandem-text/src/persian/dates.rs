//! Persian dates: «۱۲ مرداد ۱۴۰۳», `1403/05/12`, «۵-۷ مهر».
//!
//! In: a normalizer whose scan is before a digit. Out: words; the day of a month is an ordinal.

use super::super::numeral::{Groups, digits};
use super::super::symbols::ZWNJ;
use super::Normalizer;
use super::letters::in_word;
use super::names::{is_month, month};
use super::numbers::{cardinal, ordinal};

impl Normalizer<'_> {
    /// `1403/05/12`, `12/05/1403` or `57/11/22` -> «دوازدهم مرداد هزار و چهارصد و سه».
    pub(super) fn try_numeric_date(&mut self, mark: char) -> bool {
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

    /// «۱۲ مرداد», «۵-۷ مهر», «۵ تا ۷ مهر»: the month is read next.
    pub(super) fn try_day(&mut self) -> bool {
        let text = self.scan.rest();
        let Some(first) = day(text) else { return false };
        let rest = &text[first.len()..];
        let last = ["-", "–", " تا "]
            .iter()
            .find_map(|mark| rest.strip_prefix(mark))
            .and_then(|after| day(after).map(|last| (last, &after[last.len()..])));
        let rest = last.map_or(rest, |(_, rest)| rest);
        let Some(name) = rest.strip_prefix(' ') else { return false };
        let word = &name[..name.find(|c: char| !in_word(c)).unwrap_or(name.len())];
        if !is_month(word.strip_suffix("ماه").map_or(word, |name| name.trim_end_matches(ZWNJ))) {
            return false;
        }
        // «از ۱ تا ۱۰ فروردین»: the first day is an ordinal like the last.
        self.scan.skip(text.len() - rest.len());
        self.say(&ordinal(first));
        if let Some((last, _)) = last {
            self.say(&format!("تا {}", ordinal(last)));
        }
        true
    }
}

/// The digits of a day.
fn day(text: &str) -> Option<&str> {
    let found = digits(text);
    let value: u32 = found.parse().ok().filter(|_| found.len() <= 2)?;
    (1..=31).contains(&value).then_some(found)
}
