//! Which numbers a setting accepts.

use std::borrow::Cow;

/// NaN and infinity are outside of every range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    Any,
    AtLeastOne,
    AboveZero,
    FromZero,
    /// From 0 to 1.
    Share,
    /// From 0, and less than 1.
    BelowOne,
    /// Above 0, up to this.
    AboveZeroTo(f64),
    /// From the first to the second.
    Between(f64, f64),
}

impl Range {
    pub fn contains(self, value: f64) -> bool {
        let inside = match self {
            Range::Any => return true,
            Range::AtLeastOne => value >= 1.0,
            Range::AboveZero => value > 0.0,
            Range::FromZero => value >= 0.0,
            Range::Share => (0.0..=1.0).contains(&value),
            Range::BelowOne => (0.0..1.0).contains(&value),
            Range::AboveZeroTo(most) => value > 0.0 && value <= most,
            Range::Between(least, most) => (least..=most).contains(&value),
        };
        inside && value.is_finite()
    }

    /// After "expected", in an error.
    pub fn expected(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Range::Any => "any number",
            Range::AtLeastOne => "1 or more",
            Range::AboveZero => "a number above 0",
            Range::FromZero => "0 or more",
            Range::Share => "a share from 0 to 1",
            Range::BelowOne => "0 or more, and less than 1",
            Range::AboveZeroTo(_) | Range::Between(..) => return self.allowed(),
        })
    }

    /// In the reference of the keys.
    pub fn allowed(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Range::Any => "",
            Range::AboveZero => "above 0",
            Range::Share => "0 to 1",
            Range::BelowOne => "0 up to, not including, 1",
            Range::AboveZeroTo(most) => return format!("above 0 to {most}").into(),
            Range::Between(least, most) => return format!("{least} to {most}").into(),
            Range::AtLeastOne | Range::FromZero => return self.expected(),
        })
    }
}
