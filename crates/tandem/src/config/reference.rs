//! The reference of the configuration file, generated from the code.
//!
//! In: the definitions of the program. Out: [`Entry`]s in the order of the structs. Keys and types
//! come from the errors that the parser gives for a wrong value, defaults are serialized, bounds are
//! probed with the checks of a run, and flags, variables and descriptions come from `tandem train`.
//! Declared settings (`tandem_settings`) state all of it themselves. Reads no file.

mod bounds; // which values the checks accept

use super::FileConfig;
use super::tree::RENAMED;
use crate::Cli;
use crate::setting_flags::declared;
use clap::{Arg, CommandFactory};
use serde::Serialize;
use serde_json::{Value, json};
use tandem_settings::{Range, Setting};

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
        joined(&self.table, &self.name)
    }
}

/// All keys: those outside of tables first, then table by table.
pub fn entries() -> Vec<Entry> {
    let program = Cli::command();
    let train = program.find_subcommand("train").expect("the command exists");
    let flags: Vec<&Arg> = train.get_arguments().collect();
    // Serialized and parsed again, so that an `f32` has the digits that a user would write.
    let defaults = serde_json::to_string(&FileConfig::default()).expect("settings can be written");
    let defaults: Value = serde_json::from_str(&defaults).expect("JSON of our own");
    let mut keys = Vec::new();
    collect("", &mut keys);
    let entry = |(table, name): (String, String)| describe(table, name, &flags, &defaults);
    keys.into_iter().map(entry).collect()
}

/// Keys whose flag has another name, or which the flag of that name does not set.
const FLAGS: [(&str, Option<&str>); 4] = [
    ("train.seed", Some("batch.seed")),
    ("corpus.seed", None),
    ("text.diacritics", Some("keep_diacritics")),
    ("text.max_symbols", None),
];

/// Descriptions of keys without a flag, or whose flag describes something else.
const HELP: [(&str, &str); 18] = [
    ("corpus.text_column", "Column with the spoken text, if a row has both"),
    (
        "corpus.eval_share",
        "Share of rows, below 1, held out for validation if no manifest names them",
    ),
    ("corpus.seed", "Seed that chooses, together with the row id, which rows are held out"),
    ("corpus.default_language", "Language of rows without one, such as `fa`"),
    ("text.diacritics", "Whether vowel signs in Arabic script are kept or removed"),
    ("text.max_symbols", "Equals `batch.max_text_length`: set only that key"),
    ("mel.rate", "Sample rate of the features in Hz; recordings of other rates are resampled"),
    ("mel.n_fft", "Size of the Fourier transform in samples; even"),
    ("mel.window", "Length of the Hann window in samples; at most `n_fft`"),
    ("mel.hop", "Hop size in samples"),
    ("mel.bands", "Number of mel bands"),
    ("mel.low", "Lower edge of the lowest band, in Hz"),
    ("mel.high", "Upper edge of the highest band, in Hz; at most half the rate"),
    ("mel.floor", "Smallest value of a band before the logarithm"),
    ("audio.max_length", "Longest recording, in seconds"),
    ("audio.min_length", "Shortest recording, in seconds"),
    ("audio.max_file", "Largest recording file, in bytes"),
    (
        "audio.min_peak",
        "Peak level, as a share of full scale, below which a recording counts as silent",
    ),
];

fn describe(table: String, name: String, flags: &[&Arg], defaults: &Value) -> Entry {
    let key = joined(&table, &name);
    let flag = flag_of(&key, &name, flags);
    let text = flag.and_then(|flag| flag.get_help()).map(ToString::to_string).unwrap_or_default();
    let (said, usual) = split_default(&text);
    let declared = declared(&key);
    let own = HELP.iter().find(|(known, _)| *known == key).map(|(_, help)| help.to_string());
    let own = declared.map(Setting::meaning).or(own);
    let at = key.split('.').try_fold(defaults, |at, name| at.get(name)).unwrap_or(&Value::Null);
    let (kind, words) = kind_of(&key, |value| value);
    let default = match (at, usual) {
        (Value::Null, Some(words)) => words.to_string(),
        (Value::Null, None) if kind == "true or false" => "`false`".to_string(),
        (Value::Null, None) => "not set".to_string(),
        (value, _) => format!("`{value}`"),
    };
    let numbers = matches!(kind.as_str(), "number" | "whole number");
    let allowed = match words.as_slice() {
        [] if numbers => match declared.map(|setting| setting.range) {
            Some(range) if range != Range::Any => range.allowed().to_string(),
            _ => bounds::of(&key, &kind),
        },
        [] => words_of(flag).join(", "),
        words => words.join(", "),
    };
    Entry {
        flag: flag.and_then(|flag| flag.get_long()).map(|long| format!("--{long}")),
        variable: flag.and_then(|flag| Some(flag.get_env()?.to_string_lossy().into_owned())),
        help: own.unwrap_or_else(|| said.to_string()),
        table,
        name,
        kind,
        default,
        allowed,
    }
}

fn flag_of<'a>(key: &str, name: &str, flags: &[&'a Arg]) -> Option<&'a Arg> {
    // A declared setting's flag is known by its key.
    if let Some(flag) = flags.iter().find(|flag| flag.get_id() == key) {
        return Some(flag);
    }
    let other = FLAGS.iter().find(|(known, _)| *known == key).map(|(_, flag)| *flag);
    let id = other.unwrap_or(Some(name))?;
    flags.iter().find(|flag| flag.get_id() == id).copied()
}

/// Splits `[default: ...]` from the end of a help text.
fn split_default(help: &str) -> (&str, Option<&str>) {
    match help.rsplit_once(" [default: ") {
        Some((said, rest)) => (said, rest.strip_suffix(']')),
        None => (help, None),
    }
}

fn words_of(flag: Option<&Arg>) -> Vec<String> {
    let takes_value = |flag: &&Arg| flag.get_action().takes_values();
    let values = flag.filter(takes_value).map(|flag| flag.get_possible_values());
    let names = values.unwrap_or_default().into_iter().map(|value| value.get_name().to_string());
    names.filter(|name| name != "true" && name != "false").map(|name| format!("`{name}`")).collect()
}

/// A name that no key, value or file has.
const UNKNOWN: &str = "\u{1}";

/// The keys of a table, then those of its sub-tables, from the list in the parser's error.
fn collect(table: &str, keys: &mut Vec<(String, String)>) {
    let said = refusal(table, json!({UNKNOWN: UNKNOWN}));
    let is_old = |name: &String| RENAMED.iter().any(|(old, _)| *old == joined(table, name));
    let names = quoted(&said).into_iter().skip(1).filter(|name| !is_old(name));
    let is_table = |name: &String| {
        let said = refusal(&joined(table, name), json!({UNKNOWN: UNKNOWN}));
        said.starts_with("unknown field")
    };
    let (tables, own): (Vec<_>, Vec<_>) = names.partition(is_table);
    keys.extend(own.into_iter().map(|name| (table.to_string(), name)));
    tables.iter().for_each(|name| collect(&joined(table, name), keys));
}

/// The type of a key, and its allowed words if there are only some. `inside` wraps a value as the
/// key needs it: as it is, or in a list.
fn kind_of(key: &str, inside: fn(Value) -> Value) -> (String, Vec<String>) {
    let said = refusal(key, inside(json!({UNKNOWN: UNKNOWN})));
    if said.starts_with("unknown variant") {
        let words = quoted(&said).into_iter().skip(1);
        return ("word".into(), words.map(|word| format!("`{word}`")).collect());
    }
    let expected = said.rsplit_once(", expected ").map_or(said.as_str(), |(_, expected)| expected);
    let kind = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "whole number",
        "f32" | "f64" => "number",
        "a boolean" => "true or false",
        "a character" => "character",
        "path string" => "path",
        "a string" => return word_or_text(&refusal(key, inside(json!(UNKNOWN)))),
        "a sequence" => {
            let (inner, words) = kind_of(key, |value| json!([value]));
            return (format!("list of {inner}s"), words);
        }
        other => other,
    };
    (kind.to_string(), Vec::new())
}

/// A string of which only some values are allowed: the error lists them after `expected`.
fn word_or_text(said: &str) -> (String, Vec<String>) {
    let text = || ("text".into(), Vec::new());
    let Some((_, listed)) = said.rsplit_once("expected ") else { return text() };
    let listed = listed.replace(" or ", ", ");
    let words: Vec<&str> = listed.split(", ").collect();
    if words.iter().any(|word| word.contains(' ')) {
        return text();
    }
    ("word".into(), words.iter().map(|word| format!("`{word}`")).collect())
}

/// The parser's error for this value of that key; empty if it is accepted.
fn refusal(key: &str, value: Value) -> String {
    let error = serde_json::from_value::<FileConfig>(only(key, value)).err();
    error.map(|error| error.to_string()).unwrap_or_default()
}

/// Settings in which only this key is set; the value itself for an empty key.
fn only(key: &str, value: Value) -> Value {
    let names = key.rsplit('.').filter(|name| !name.is_empty());
    names.fold(value, |inner, name| json!({name: inner}))
}

/// The words in backquotes.
fn quoted(said: &str) -> Vec<String> {
    said.split('`').skip(1).step_by(2).map(String::from).collect()
}

fn joined(table: &str, name: &str) -> String {
    if table.is_empty() { name.to_string() } else { format!("{table}.{name}") }
}

#[cfg(test)]
mod tests;
