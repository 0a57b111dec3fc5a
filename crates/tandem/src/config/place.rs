//! Finds the position of a key in a configuration file.
//!
//! In: the text and a key. Out: line and column of its value, as the parser of the format counts
//! them: the parser reads the file and is stopped at the value by an error.

use super::format::{Format, line_and_column};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Line and column of a key's value, counted from 1; `None` if the file does not have it. Tables are
/// joined by dots.
pub fn place_of(text: &str, format: Format, key: &str) -> Option<(usize, usize)> {
    let path: Vec<&str> = key.split('.').collect();
    let seek = Seek { path: &path };
    match format {
        Format::Toml => {
            let stopped = seek.deserialize(toml::Deserializer::parse(text).ok()?).err()?;
            let found = stopped.message().contains(FOUND);
            stopped.span().filter(|_| found).map(|span| line_and_column(text, span.start))
        }
        Format::Yaml => {
            let stopped = seek.deserialize(yaml_serde::Deserializer::from_str(text)).err()?;
            let found = stopped.to_string().contains(FOUND);
            stopped.location().filter(|_| found).map(|place| (place.line(), place.column()))
        }
    }
}

/// A message that no parser has.
const FOUND: &str = "\u{1}here it is\u{1}";

/// Descends along a path and stops at its end.
struct Seek<'a> {
    path: &'a [&'a str],
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Any value at the end of the path is an error, which the parser reports with its position.
macro_rules! stop_at {
    ($($visit:ident: $value:ty),*) => {$(
        fn $visit<E: Error>(self, _: $value) -> Result<(), E> {
            if self.path.is_empty() { Err(E::custom(FOUND)) } else { Ok(()) }
        }
    )*};
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("settings")
    }

    stop_at!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        if self.path.is_empty() { Err(E::custom(FOUND)) } else { Ok(()) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.path.is_empty() {
            return Err(A::Error::custom(FOUND));
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((first, rest)) = self.path.split_first() else {
            return Err(A::Error::custom(FOUND));
        };
        while let Some(key) = map.next_key::<String>()? {
            if key == *first {
                map.next_value_seed(Seek { path: rest })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_values_in_both_formats() {
        let yaml = "# a\ndata:\n  batch_size: 8\n  languages: [en]\nlast:\n  deep:\n    key: x\n";
        let toml = "a = 1\n[batch]\nbatch_size = 8\n[train.optimizer]\nlr = 1e-3\n";
        let at = |key| place_of(yaml, Format::Yaml, key);
        assert_eq!(at("data.batch_size"), Some((3, 15)));
        assert_eq!(at("data.languages"), Some((4, 14)));
        assert_eq!(at("last.deep.key"), Some((7, 10)));
        assert_eq!((at("data.nothing"), at("data.batch_size.deeper")), (None, None));
        let at = |key| place_of(toml, Format::Toml, key);
        assert_eq!((at("a"), at("batch.batch_size")), (Some((1, 5)), Some((3, 14))));
        assert_eq!((at("train.optimizer.lr"), at("train.lr")), (Some((5, 6)), None));
        assert_eq!(place_of("a: [", Format::Yaml, "a.b"), None);
    }
}
