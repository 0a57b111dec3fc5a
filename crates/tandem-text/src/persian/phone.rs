//! Persian phone numbers, digit by digit with a pause between groups.
//!
//! In: a normalizer whose scan is before a digit, `+` or `(`. Out: words. A number that begins with a
//! zero is always read digit by digit.

use super::super::numeral::{Numeral, digits};
use super::super::phone_groups::{PhoneGroups, Separation, is_international, is_national};
use super::Normalizer;
use super::numbers::one_by_one;

impl Normalizer<'_> {
    /// `021-8877`, `(021) 88776655`, `+98 912 345 6789`, «تلفن ۸۸۷۷۶۶۵۵», `0912`.
    pub(super) fn try_phone(&mut self) -> bool {
        let text = self.scan.rest();
        let Some(found) = PhoneGroups::parse(text, is_phone) else { return self.try_digits() };
        let decimal = found.parts.len() == 1 && !Numeral::parse(text).fraction.is_empty();
        if decimal {
            return false;
        }
        self.scan.skip(found.len);
        if found.plus {
            self.say("به‌علاوه");
        }
        for (index, part) in found.parts.iter().enumerate() {
            if index > 0 {
                self.out.close(',');
            }
            self.say(&one_by_one(part));
        }
        true
    }

    /// Seven or more digits after «تلفن» and similar words.
    fn try_digits(&mut self) -> bool {
        let found = digits(self.scan.rest());
        let named =
            matches!(self.scan.name_before(), "تلفن" | "موبایل" | "همراه" | "فکس" | "نمابر");
        if found.len() < 7 || !named {
            return false;
        }
        self.scan.skip(found.len());
        self.say(&one_by_one(found));
        true
    }
}

fn is_phone(separation: Separation, parts: &[&str]) -> bool {
    let zero_first = parts[0].len() > 1 && parts[0].starts_with('0');
    match separation {
        Separation::Plus => is_international(parts),
        Separation::Brackets => zero_first && parts.len() > 1,
        Separation::Spaces => is_national(parts),
        Separation::Hyphens => zero_first,
        // A single group.
        Separation::Mixed => zero_first && parts.len() == 1,
        Separation::Dots => false,
    }
}
