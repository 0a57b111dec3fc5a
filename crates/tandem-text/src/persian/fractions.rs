//! Persian fractions: «۳/۴», «۳½», «۲ ۱/۲». The slash is a decimal mark too: «۷/۵».
//!
//! In: a normalizer whose scan is before a digit or after a whole number. Out: words.

use super::super::numeral::{Groups, Numeral, vulgar};
use super::Normalizer;
use super::names::{is_measured, unit};
use super::numbers::{cardinal, decimal, fraction};

impl Normalizer<'_> {
    /// A character such as `½`.
    pub(super) fn try_vulgar(&mut self) -> bool {
        let Some(next) = self.scan.peek() else { return false };
        let Some((top, bottom)) = vulgar(next) else { return false };
        self.scan.skip_char(next);
        self.say(&part(top, bottom));
        true
    }

    /// `3/4` is a fraction, `3/5 درصد` and `7/5` are decimals: Persian uses the slash for both.
    pub(super) fn try_slashed(&mut self) -> bool {
        let groups = Groups::parse(self.scan.rest(), '/');
        let (2, Some(top), Some(bottom)) = (groups.parts.len(), groups.value(0), groups.value(1))
        else {
            return false;
        };
        self.scan.skip(groups.len);
        let rest = self.scan.rest().trim_start();
        let measured =
            is_measured(self.scan.word_after()) || rest.starts_with('%') || unit(rest).is_some();
        // «۱۲/۷۵» is a decimal: nobody counts in seventy-fifths.
        let usual =
            matches!(bottom, 2..=10 | 12 | 15 | 16 | 20 | 100) && !groups.parts[1].starts_with('0');
        if !measured && top > 0 && top < bottom && usual {
            self.say(&fraction(top, bottom));
        } else {
            self.say(&decimal(groups.parts[0], groups.parts[1]));
            self.try_unit();
        }
        true
    }

    /// `3½`, `2 ½` and `2 1/2` -> «سه و نیم».
    pub(super) fn try_mixed(&mut self, numeral: &Numeral<'_>) -> bool {
        if !numeral.fraction.is_empty() {
            return false;
        }
        let rest = self.scan.rest();
        let spaced = rest.strip_prefix(' ').unwrap_or(rest);
        let first = spaced.chars().next();
        let gap = rest.len() - spaced.len();
        let groups = Groups::parse(spaced, '/');
        let written = || match (groups.parts.len(), groups.value(0)?, groups.value(1)?) {
            (2, top, bottom @ 2..=10) if gap == 1 && 0 < top && top < bottom => {
                Some(((top, bottom), groups.len))
            }
            _ => None,
        };
        let sign = first.and_then(|sign| Some((vulgar(sign)?, sign.len_utf8())));
        let Some(((top, bottom), len)) = sign.or_else(written) else { return false };
        self.scan.skip(gap + len);
        self.say(&format!("{} و {}", cardinal(&numeral.whole), part(top, bottom)));
        self.try_unit();
        true
    }
}

fn part(top: u32, bottom: u32) -> String {
    if (top, bottom) == (1, 2) { "نیم".into() } else { fraction(top, bottom) }
}
