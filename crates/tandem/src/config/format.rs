//! Parses the text of a configuration file, TOML or YAML.
//!
//! Both formats give the same errors: line and column, the full name of the key, the line itself,
//! and the nearest known key or value as a hint.

use super::Advised;
use super::nearest::nearest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// The file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.toml`
    Toml,
    /// `.yaml`, `.yml`
    Yaml,
}

/// Other names of keys, mostly those of their flags.
const OTHER_NAMES: [(&str, &str); 7] = [
    ("mixed_precision", "train.precision"),
    ("align_every", "train.alignment.every"),
    ("align_lag", "train.alignment.lag"),
    ("align_flat_start", "train.alignment.flat_start"),
    ("learning_rate", "train.optimizer.lr"),
    ("grad_clip", "train.optimizer.clip"),
    ("workers", "num_workers"),
];

impl Format {
    /// By the file extension.
    pub fn of(path: &Path) -> Result<Format, Advised> {
        let end = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        match end.as_str() {
            "toml" => Ok(Format::Toml),
            "yaml" | "yml" => Ok(Format::Yaml),
            _ => Err(Advised::new(
                "the format of the file is unknown: its extension is missing or not supported",
                "use the extension `.toml`, `.yaml` or `.yml`",
            )),
        }
    }

    pub fn parse<T: DeserializeOwned + Default + Serialize>(
        self,
        text: &str,
    ) -> Result<T, Advised> {
        let read = match self {
            Format::Toml => read_toml(text),
            Format::Yaml => read_yaml(text),
        };
        read.map_err(|fault| fault.explain(text, &every_key::<T>()))
    }
}

/// Settings that are a tree already, with the same errors; there is no text to show a place in.
pub fn parse_tree<T: DeserializeOwned + Default + Serialize>(
    tree: serde_json::Value,
) -> Result<T, Advised> {
    serde_path_to_error::deserialize(tree).map_err(|error| {
        let key = error.path().to_string();
        let fault = Fault { place: None, key, message: error.into_inner().to_string() };
        fault.explain("", &every_key::<T>())
    })
}

/// An error of a parser.
struct Fault {
    /// Line and column, counted from 1.
    place: Option<(usize, usize)>,
    /// The key it happened at; `.` for none.
    key: String,
    /// The message of serde.
    message: String,
}

fn read_toml<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    let fault = |key: String, error: toml::de::Error| {
        let place = error.span().map(|span| line_and_column(text, span.start));
        Fault { place, key, message: error.message().to_string() }
    };
    let parsed = toml::Deserializer::parse(text).map_err(|error| fault(".".into(), error))?;
    serde_path_to_error::deserialize(parsed)
        .map_err(|error| fault(error.path().to_string(), error.into_inner()))
}

fn read_yaml<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    let parsed = yaml_serde::Deserializer::from_str(text);
    serde_path_to_error::deserialize(parsed).map_err(|error| {
        let key = error.path().to_string();
        let error = error.into_inner();
        let place = error.location().map(|place| (place.line(), place.column()));
        // The message starts with the key and contains the position; both are printed separately.
        let mut message = error.to_string();
        if let Some((line, column)) = place {
            message = message.replacen(&format!(" at line {line} column {column}"), "", 1);
        }
        let inner = message.split_once(": ").filter(|(at, _)| key.starts_with(at));
        let message = inner.map_or(message.as_str(), |(_, rest)| rest).to_string();
        // A second key of the same name is reported at the beginning of its table.
        let place = place.filter(|_| !message.starts_with("duplicate"));
        Fault { place, key, message }
    })
}

impl Fault {
    fn explain(&self, text: &str, keys: &[String]) -> Advised {
        let (fact, advice) = self.in_words(text, keys);
        let Some(place) = self.place else { return Advised::new(fact, advice) };
        Advised::new(shown_at(text, place, &fact), advice)
    }

    fn in_words(&self, text: &str, keys: &[String]) -> (String, String) {
        // Settings of a Python script have no lines.
        let correct = match text.is_empty() {
            true => "correct it, or leave it out for the default",
            false => "correct that line, or remove it for the default",
        };
        let correct = correct.to_string();
        let key = &self.key;
        if let Some(wrong) = quoted(&self.message, "unknown field ") {
            let table = key.strip_suffix(wrong).unwrap_or_default();
            return (format!("unknown key `{key}`"), right_key(wrong, table, keys));
        }
        if let Some(wrong) = quoted(&self.message, "unknown variant ") {
            let known: Vec<&str> = self.message.split('`').skip(3).step_by(2).collect();
            let fact = format!("`{key}` is `{wrong}`, expected {}", listed(&known));
            let advice = nearest(wrong, known.iter().copied());
            return (fact, advice.map_or(correct, |right| format!("did you mean `{right}`?")));
        }
        let found = ["invalid type: ", "invalid value: "]
            .iter()
            .find_map(|start| self.message.strip_prefix(start)?.rsplit_once(", expected "));
        match found {
            Some((found, expected)) => {
                (format!("`{key}` is {found}, expected {}", in_plain_words(expected)), correct)
            }
            None if key == "." => (self.message.clone(), correct),
            None => (format!("`{key}`: {}", self.message), correct),
        }
    }
}

/// A fact with its place, and the line itself below it.
pub fn shown_at(text: &str, (line, column): (usize, usize), fact: &str) -> String {
    let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let before: String = shown.chars().take(column.saturating_sub(1)).map(blank).collect();
    let margin = " ".repeat(line.to_string().len());
    format!("line {line}, column {column}: {fact}\n  {line} | {shown}\n  {margin} | {before}^")
}

/// The name in backquotes after these words.
fn quoted<'a>(message: &'a str, words: &str) -> Option<&'a str> {
    message.strip_prefix(words)?.split('`').nth(1)
}

/// Where a key that is unknown in this table (`train.`, or nothing) should have been.
fn right_key(wrong: &str, table: &str, keys: &[String]) -> String {
    let here: Vec<&str> = keys
        .iter()
        .filter_map(|key| key.strip_prefix(table))
        .filter_map(|rest| rest.split('.').next())
        .collect();
    if let Some(right) = nearest(wrong, here.iter().copied()) {
        return format!("did you mean `{table}{right}`?");
    }
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == wrong).map(|(_, key)| *key);
    let elsewhere = || {
        let last = |key: &'_ str| key.rsplit('.').next().unwrap_or_default().to_string();
        let right = keys.iter().map(|key| last(key)).collect::<Vec<_>>();
        let right = nearest(wrong, right.iter().map(String::as_str))?;
        keys.iter().map(String::as_str).find(|key| last(key) == right)
    };
    match other.or_else(elsewhere) {
        Some(right) => format!("did you mean `{right}`?"),
        None => {
            let mut known = here;
            known.dedup();
            format!("the keys there are {}", listed(&known))
        }
    }
}

/// Every key of the settings, tables joined by dots. Collected from the defaults, in which a key
/// that is not set is null.
fn every_key<T: Default + Serialize>() -> Vec<String> {
    fn collect(at: &str, value: &serde_json::Value, keys: &mut Vec<String>) {
        match value.as_object() {
            Some(table) => table.iter().for_each(|(name, value)| {
                let dot = if at.is_empty() { "" } else { "." };
                collect(&format!("{at}{dot}{name}"), value, keys);
            }),
            None => keys.push(at.to_string()),
        }
    }
    let mut keys = Vec::new();
    // If the defaults could not be serialized, only the suggestion would be missing; a test serializes them.
    collect("", &serde_json::to_value(T::default()).unwrap_or_default(), &mut keys);
    keys
}

fn in_plain_words(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 up",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a character" => "a single character",
        table if table.starts_with("struct ") => "a table of keys",
        other => other,
    }
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Tabs are kept, so that the caret is below the character it marks.
fn blank(character: char) -> char {
    if character == '\t' { '\t' } else { ' ' }
}

pub(super) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[begin..].chars().count() + 1)
}
