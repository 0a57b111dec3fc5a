//! The value of a setting as text: as a user types it, and as messages show it.

use std::ffi::OsStr;
use std::path::PathBuf;
use tandem_units::{Bytes, Hop, SampleRate, Seconds, Seed};

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Switch,
    Count,
    Number,
    Word,
    Text,
    Character,
    Path,
    Counts,
    Texts,
}

impl ValueKind {
    /// The type in a configuration file.
    pub fn in_words(self) -> &'static str {
        match self {
            ValueKind::Switch => "true or false",
            ValueKind::Count => "whole number",
            ValueKind::Number => "number",
            ValueKind::Word => "word",
            ValueKind::Text => "text",
            ValueKind::Character => "character",
            ValueKind::Path => "path",
            ValueKind::Counts => "list of whole numbers",
            ValueKind::Texts => "list of texts",
        }
    }
}

pub trait SettingValue: Sized {
    const KIND: ValueKind;
    /// All values, where there are only some.
    const WORDS: &'static [&'static str] = &[];
    /// Further values, for tests.
    const HIDDEN_WORDS: &'static [&'static str] = &[];
    /// The words in a configuration file, if they are not those of the flag.
    const FILE_WORDS: &'static [&'static str] = &[];
    /// Whether several values may be typed, with commas or with several flags.
    const IS_LIST: bool = false;

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
    Number: f32 f64;
}

macro_rules! quantities {
    ($($quantity:ident: $number:ty;)*) => {$(
        impl SettingValue for $quantity {
            const KIND: ValueKind = <$number>::KIND;

            fn parse(text: &str) -> Result<Self, String> {
                <$number>::parse(text).map($quantity)
            }

            fn text(&self) -> String {
                self.0.text()
            }

            fn number(&self) -> Option<f64> {
                self.0.number()
            }
        }
    )*};
}

quantities! {
    Seed: u64;
    Bytes: u64;
    Hop: usize;
    SampleRate: u32;
    Seconds: f64;
}

impl SettingValue for bool {
    const KIND: ValueKind = ValueKind::Switch;

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "expected true or false".into())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// A tab may be typed as `tab` or `\\t`, which a shell passes on.
impl SettingValue for char {
    const KIND: ValueKind = ValueKind::Character;

    fn parse(text: &str) -> Result<Self, String> {
        let mut letters = text.chars();
        match (text, letters.next(), letters.next()) {
            ("tab" | "\\t", ..) => Ok('\t'),
            (_, Some(one), None) => Ok(one),
            _ => Err("expected one character, or `tab`".into()),
        }
    }

    fn text(&self) -> String {
        self.to_string()
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
impl<T: SettingValue> SettingValue for Vec<T> {
    const KIND: ValueKind = match T::KIND {
        ValueKind::Count => ValueKind::Counts,
        _ => ValueKind::Texts,
    };
    const IS_LIST: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(T::parse).collect()
    }

    fn text(&self) -> String {
        self.iter().map(T::text).collect::<Vec<_>>().join(",")
    }
}

/// The names of all values of a type, for [`SettingValue::WORDS`]: `words!(Layout)`, from its `ALL` and `name`.
#[macro_export]
macro_rules! words {
    ($Type:ty) => {
        &{
            let mut words = [""; <$Type>::ALL.len()];
            let mut at = 0;
            while at < words.len() {
                words[at] = <$Type>::ALL[at].name();
                at += 1;
            }
            words
        }
    };
}

/// A setting that may be left open.
impl<T: SettingValue> SettingValue for Option<T> {
    const KIND: ValueKind = T::KIND;
    const WORDS: &'static [&'static str] = T::WORDS;
    const HIDDEN_WORDS: &'static [&'static str] = T::HIDDEN_WORDS;
    const FILE_WORDS: &'static [&'static str] = T::FILE_WORDS;
    const IS_LIST: bool = T::IS_LIST;

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
