//! Every key of the configuration file, as the code itself knows it.
//!
//! In: nothing but the program's own definitions. Out: [`Entry`]s in the order of the structs. Keys
//! and types are what the parser says of a value that it cannot take, defaults are the defaults
//! written out, bounds are found by asking the checks of a run, and flags, variables and words come
//! from `tandem train`. Only what no flag explains is explained here. Reads no file.

mod bounds; // which numbers the checks accept

use super::FileConfig;
use crate::Cli;
use clap::{Arg, CommandFactory};
use serde::Serialize;
use serde_json::{Value, json};

/// One key of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The table it stands in, such as `train.optimizer`; empty for none.
    pub table: String,
    /// Its name there.
    pub name: String,
    /// What kind of value it takes.
    pub kind: String,
    /// What holds without it, as it would be written in the file, or in words.
    pub default: String,
    /// Which values are accepted, where that is less than all of their kind.
    pub allowed: String,
    /// The flag that comes before it.
    pub flag: Option<String>,
    /// The variable that comes before it.
    pub variable: Option<String>,
    /// What it means, in one line.
    pub help: String,
}

impl Entry {
    /// The whole name, tables joined by dots.
    pub fn key(&self) -> String {
        joined(&self.table, &self.name)
    }
}

/// All of them: those outside of tables first, then table by table.
pub fn entries() -> Vec<Entry> {
    let program = Cli::command();
    let train = program.find_subcommand("train").expect("the command exists");
    let flags: Vec<&Arg> = train.get_arguments().collect();
    // Written and read again: a 32-bit number then has the digits that a person would write.
    let defaults = serde_json::to_string(&FileConfig::default()).expect("settings can be written");
    let defaults: Value = serde_json::from_str(&defaults).expect("JSON of our own");
    let mut keys = Vec::new();
    collect("", &mut keys);
    let entry = |(table, name): (String, String)| describe(table, name, &flags, &defaults);
    keys.into_iter().map(entry).collect()
}

/// Keys whose flag has another name, or that the flag of their name does not set.
const FLAGS: [(&str, Option<&str>); 8] = [
    ("corpus.seed", None),
    ("text.symbols", Some("phonemes")),
    ("text.diacritics", Some("keep_diacritics")),
    ("text.max_symbols", None),
    ("train.precision", Some("mixed_precision")),
    ("train.alignment.every", Some("align_every")),
    ("train.alignment.lag", Some("align_lag")),
    ("train.alignment.flat_start", Some("align_flat_start")),
];

/// What no flag says, or says from its own side only.
const HELP: [(&str, &str); 27] = [
    ("corpus.text_column", "Which column is spoken where a row has both"),
    (
        "corpus.eval_share",
        "Share of the rows, below 1, that is held out where no manifest says which",
    ),
    ("corpus.seed", "Decides, with the id alone, which rows are held out"),
    ("corpus.default_language", "Language of rows that name none, such as `fa`"),
    ("text.symbols", "What a symbol stands for; phonemes need espeak-ng"),
    ("text.diacritics", "What becomes of vowel signs in Arabic script"),
    ("text.max_symbols", "The same as `batch.max_text_length`: set that one alone"),
    ("mel.rate", "Sample rate the features are made at; other rates are resampled"),
    ("mel.n_fft", "Points of the Fourier transform; even"),
    ("mel.window", "Samples under the Hann window; at most `n_fft`"),
    ("mel.hop", "Samples from one frame to the next"),
    ("mel.bands", "Mel bands of a frame"),
    ("mel.low", "Lower edge of the lowest band, in Hz"),
    ("mel.high", "Upper edge of the highest band, in Hz; at most half the rate"),
    ("mel.floor", "Smallest value of a band before the logarithm"),
    ("audio.max_length", "Longest recording, in seconds"),
    ("audio.min_length", "Shortest recording, in seconds"),
    ("audio.max_file", "Largest file that is read, in bytes"),
    ("audio.min_peak", "Share of full scale below which a recording is silent"),
    ("batch.max_buckets", "Most padded lengths; the lengths are fitted to the corpus"),
    ("batch.bucket_edges", "Padded lengths by hand, rising, ending at `max_mel_frames`"),
    ("train.seed", "What weights and chance are drawn from; the flag sets `batch.seed` too"),
    ("batch.seed", "What the order of batches is drawn from; the flag sets `train.seed` too"),
    ("train.precision", "Numbers that the model computes with; `off` of the flag is `f32`"),
    ("train.optimizer.beta1", "Memory of the mean gradient"),
    ("train.optimizer.beta2", "Memory of the mean squared gradient"),
    ("train.optimizer.epsilon", "Keeps the division of the optimizer away from zero"),
];

fn describe(table: String, name: String, flags: &[&Arg], defaults: &Value) -> Entry {
    let key = joined(&table, &name);
    let flag = flag_of(&key, &name, flags);
    let text = flag.and_then(|flag| flag.get_help()).map(ToString::to_string).unwrap_or_default();
    let (said, usual) = split_default(&text);
    let own = HELP.iter().find(|(known, _)| *known == key).map(|(_, help)| *help);
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
        [] if numbers => bounds::of(&key, &kind),
        [] => words_of(flag).join(", "),
        words => words.join(", "),
    };
    Entry {
        flag: flag.and_then(|flag| flag.get_long()).map(|long| format!("--{long}")),
        variable: flag.and_then(|flag| Some(flag.get_env()?.to_string_lossy().into_owned())),
        help: own.unwrap_or(said).to_string(),
        table,
        name,
        kind,
        default,
        allowed,
    }
}

fn flag_of<'a>(key: &str, name: &str, flags: &[&'a Arg]) -> Option<&'a Arg> {
    let other = FLAGS.iter().find(|(known, _)| *known == key).map(|(_, flag)| *flag);
    let id = other.unwrap_or(Some(name))?;
    flags.iter().find(|flag| flag.get_id() == id).copied()
}

/// Help without the default that ends it, and that default.
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

/// No key, no value and no file of ours is called that.
const NOBODY: &str = "\u{1}";

/// The keys of a table, then those of the tables in it, by what its parser would have accepted.
fn collect(table: &str, keys: &mut Vec<(String, String)>) {
    let said = refusal(table, json!({NOBODY: NOBODY}));
    let names = quoted(&said).into_iter().skip(1);
    let is_table = |name: &String| {
        let said = refusal(&joined(table, name), json!({NOBODY: NOBODY}));
        said.starts_with("unknown field")
    };
    let (tables, own): (Vec<_>, Vec<_>) = names.partition(is_table);
    keys.extend(own.into_iter().map(|name| (table.to_string(), name)));
    tables.iter().for_each(|name| collect(&joined(table, name), keys));
}

/// What kind of value a key takes, and the words where there are only some. `inside` puts a value
/// where the key has it: as it is, or into a list.
fn kind_of(key: &str, inside: fn(Value) -> Value) -> (String, Vec<String>) {
    let said = refusal(key, inside(json!({NOBODY: NOBODY})));
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
        "a string" => return word_or_text(&refusal(key, inside(json!(NOBODY)))),
        "a sequence" => {
            let (inner, words) = kind_of(key, |value| json!([value]));
            return (format!("list of {inner}s"), words);
        }
        other => other,
    };
    (kind.to_string(), Vec::new())
}

/// A text that not every text can be: its refusal ends with the words after `expected`.
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

/// What the parser says of this value for that key; nothing where it takes it.
fn refusal(key: &str, value: Value) -> String {
    let error = serde_json::from_value::<FileConfig>(only(key, value)).err();
    error.map(|error| error.to_string()).unwrap_or_default()
}

/// Settings in which one key is set; all of them where the key is empty.
fn only(key: &str, value: Value) -> Value {
    let names = key.rsplit('.').filter(|name| !name.is_empty());
    names.fold(value, |inner, name| json!({name: inner}))
}

/// What stands in backquotes.
fn quoted(said: &str) -> Vec<String> {
    said.split('`').skip(1).step_by(2).map(String::from).collect()
}

fn joined(table: &str, name: &str) -> String {
    if table.is_empty() { name.to_string() } else { format!("{table}.{name}") }
}

#[cfg(test)]
mod tests;
