//! The value of a setting as text: as a user types it, and as messages show it.

use std::ffi::OsStr;
use std::path::PathBuf;
use tandem_units::Seed;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Count,
    Number,
    Word,
    Text,
    Path,
}

pub trait SettingValue: Sized {
    const KIND: ValueKind;
    /// All values, where there are only some.
    const WORDS: &'static [&'static str] = &[];
    /// Further values, for tests.
    const HIDDEN_WORDS: &'static [&'static str] = &[];

    fn parse(text: &str) -> Result<Self, String>;

    /// As a user would type it; empty for a value that is not set.
    fn text(&self) -> String;

    /// The same as [`SettingValue::parse`] for what need not be UTF-8.
    fn parse_os(text: &OsStr) -> Result<Self, String> {
        Self::parse(text.to_str().ok_or("expected UTF-8 text")?)
    }

    /// What a range is compared with; none for what is not a number or not set.
    fn number(&self) -> Option<f64> {
        None
    }
}

pub(crate) fn check<T: SettingValue>(text: &str) -> Result<(), String> {
    T::parse(text).map(drop)
}

macro_rules! numbers {
    ($($kind:ident: $($number:ty)*;)*) => {$($(
        impl SettingValue for $number {
            const KIND: ValueKind = ValueKind::$kind;

            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error: <$number as std::str::FromStr>::Err| error.to_string())
            }

            fn text(&self) -> String {
                self.to_string()
            }

            fn number(&self) -> Option<f64> {
                Some(*self as f64)
            }
        }
    )*)*};
}

numbers! {
    Count: u32 u64 usize;
    Number: f64;
}

impl SettingValue for Seed {
    const KIND: ValueKind = ValueKind::Count;

    fn parse(text: &str) -> Result<Self, String> {
        u64::parse(text).map(Seed)
    }

    fn text(&self) -> String {
        self.0.text()
    }
}

impl SettingValue for String {
    const KIND: ValueKind = ValueKind::Text;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_string())
    }

    fn text(&self) -> String {
        self.clone()
    }
}

impl SettingValue for PathBuf {
    const KIND: ValueKind = ValueKind::Path;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(PathBuf::from(text))
    }

    fn parse_os(text: &OsStr) -> Result<Self, String> {
        Ok(PathBuf::from(text))
    }

    fn text(&self) -> String {
        self.display().to_string()
    }
}

/// Typed with commas.
impl SettingValue for Vec<usize> {
    const KIND: ValueKind = ValueKind::Text;

    fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(usize::parse).collect()
    }

    fn text(&self) -> String {
        self.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
    }
}

/// A setting that may be left open.
impl<T: SettingValue> SettingValue for Option<T> {
    const KIND: ValueKind = T::KIND;
    const WORDS: &'static [&'static str] = T::WORDS;
    const HIDDEN_WORDS: &'static [&'static str] = T::HIDDEN_WORDS;

    fn parse(text: &str) -> Result<Self, String> {
        T::parse(text).map(Some)
    }

    fn parse_os(text: &OsStr) -> Result<Self, String> {
        T::parse_os(text).map(Some)
    }

    fn text(&self) -> String {
        self.as_ref().map(T::text).unwrap_or_default()
    }

    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(T::number)
    }
}
