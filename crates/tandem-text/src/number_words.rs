//! Number words from tables: what languages that count in thousands have in common.
//!
//! In: ASCII digits. Out: words. A language supplies a [`NumberWords`] and its own rules for
//! ordinals, decimals and fractions. Knows no context.

use super::numeral::thousands;

/// The number words of one language.
pub struct NumberWords {
    /// 0 to 19.
    pub ones: [&'static str; 20],
    /// 20, 30, ... 90, each at its first digit; the first two are not used.
    pub tens: [&'static str; 10],
    /// 100, 200, ... 900, each at its first digit; the first is not used.
    pub hundreds: [&'static str; 10],
    /// The powers of a thousand; the first is not used.
    pub scales: [&'static str; 12],
    /// Between tens and ones.
    pub after_tens: &'static str,
    /// Between other parts.
    pub between: &'static str,
    /// 1000 is the scale word alone, without "one".
    pub bare_thousand: bool,
}

impl NumberWords {
    /// `1234` -> `one thousand two hundred thirty-four`. A number with more digits than there are
    /// names for is read digit by digit.
    pub fn cardinal(&self, digits: &str) -> String {
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return self.ones[0].into();
        }
        if digits.len() > 3 * self.scales.len() {
            return self.one_by_one(digits);
        }
        let mut out = String::new();
        for (group, power) in thousands(digits).filter(|(group, _)| *group > 0) {
            if self.bare_thousand && (group, power) == (1, 1) {
                self.append(self.scales[1], &mut out);
                continue;
            }
            self.below_thousand(group, &mut out);
            if power > 0 {
                out.push(' ');
                out.push_str(self.scales[power]);
            }
        }
        out
    }

    /// `007` -> `zero zero seven`.
    pub fn one_by_one(&self, digits: &str) -> String {
        let words: Vec<_> = digits.bytes().map(|b| self.ones[usize::from(b - b'0') % 10]).collect();
        words.join(" ")
    }

    fn below_thousand(&self, group: usize, out: &mut String) {
        if group >= 100 {
            self.append(self.hundreds[group / 100], out);
        }
        match group % 100 {
            0 => {}
            small @ 1..20 => self.append(self.ones[small], out),
            rest => {
                self.append(self.tens[rest / 10], out);
                if rest % 10 > 0 {
                    out.push_str(self.after_tens);
                    out.push_str(self.ones[rest % 10]);
                }
            }
        }
    }

    fn append(&self, word: &str, out: &mut String) {
        if !out.is_empty() {
            out.push_str(self.between);
        }
        out.push_str(word);
    }
}
