//! The reference of the configuration file, from the declarations of the settings.
//!
//! In: the declarations ([`Setting`]). Out: [`Entry`]s in their order. Defaults are serialized, as a user would write
//! them. Reads no file.

use serde::Serialize;
use serde_json::Value;
use tandem_settings::Setting;
use tandem_train::file_config::{FileConfig, all_settings, setting};

/// One key of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its table, such as `train.optimizer`; empty for none.
    pub table: String,
    pub name: String,
    /// Type of the value.
    pub kind: String,
    /// The default as it would be written in the file, or in words.
    pub default: String,
    /// Which values are accepted, if not all of the type.
    pub allowed: String,
    /// The flag that overrides it.
    pub flag: Option<String>,
    /// The environment variable that overrides it.
    pub variable: Option<String>,
    /// Description in one line.
    pub help: String,
}

impl Entry {
    /// The full name, tables joined by dots.
    pub fn key(&self) -> String {
        match self.table.as_str() {
            "" => self.name.clone(),
            table => format!("{table}.{}", self.name),
        }
    }
}

/// All keys: those outside of tables first, then table by table.
pub fn entries() -> Vec<Entry> {
    // Serialized and parsed again, so that an `f32` has the digits that a user would write.
    let defaults = serde_json::to_string(&FileConfig::default()).expect("settings can be written");
    let defaults: Value = serde_json::from_str(&defaults).expect("JSON of our own");
    all_settings().into_iter().map(|setting| entry(setting, &defaults)).collect()
}

fn entry(declared: &'static Setting, defaults: &Value) -> Entry {
    let at = declared.key.split('.').try_fold(defaults, |at, name| at.get(name));
    let words = declared.words_in_file();
    let flag = match declared.same_flag_as {
        "" => declared,
        other => setting(other).unwrap_or(declared),
    };
    Entry {
        table: declared.table().into(),
        name: declared.name().into(),
        kind: if words.is_empty() { declared.kind.in_words() } else { "word" }.into(),
        default: match (at.unwrap_or(&Value::Null), declared.default_in_words) {
            (Value::Null, "") => "not set".into(),
            (Value::Null, words) => words.into(),
            (value, _) => format!("`{value}`"),
        },
        allowed: match words.as_slice() {
            [] => declared.range.allowed().into_owned(),
            words => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        },
        flag: flag.long_flag().map(String::from),
        variable: Some(flag.variable.to_string()).filter(|name| !name.is_empty()),
        help: declared.meaning(),
    }
}

#[cfg(test)]
mod tests;
