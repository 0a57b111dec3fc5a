//! Converts settings of MyXTTS.
//!
//! In: the tree of a MyXTTS file (`data:`, `training:`, `model:`). Out: [`Conversion`]: the same
//! settings under our keys, and one [`Meaning`] for each key that was found. A key that has no
//! counterpart is left out with the reason; a value of the wrong type is a [`WrongType`], an unknown
//! key is named. Reads no file. The list of keys is in [`keys`], that of flags in [`flags`].

pub mod flags;
pub mod keys;

use keys::{IDLE_TABLES, Key, Kind, Means};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What `trim_silence: true` becomes, in dB below the loudest part.
const TRIM_LEVEL: f64 = -40.0;
/// What a loudness switch without a number becomes, in LUFS: the level of EBU R128.
const LOUDNESS: f64 = -23.0;

/// The tables of such a file. One of the first three makes it one.
pub const TABLES: [&str; 4] = ["data", "training", "model", "paths"];

/// Whether a file is one of theirs: it has a table of theirs, and none of the tree is ours alone.
pub fn is_myxtts(tree: &Value) -> bool {
    TABLES[..3].iter().any(|table| tree.get(table).is_some_and(Value::is_object))
}

/// What became of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Conversion {
    /// The settings under our keys; only what the file sets.
    pub config: Map<String, Value>,
    /// What each key means here, by name.
    pub meanings: Vec<Meaning>,
    /// Unknown keys.
    pub unknown: Vec<String>,
}

/// What a key of theirs means here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Meaning {
    /// Their key, table first.
    pub key: String,
    pub value: Value,
    /// Our key, where there is one.
    pub here: Option<String>,
    pub became: Became,
    /// Whether it does something else here than there, or nothing.
    pub changed: bool,
    pub said: String,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Became {
    Set,
    /// Always so here; the file agrees.
    Always,
    /// Always so here, although the file says otherwise.
    AlwaysDespite,
    /// Nothing: there is no counterpart.
    LeftOut,
}

/// A value that is not what its key needs.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongType {
    /// Their key, table first.
    pub key: String,
    pub found: String,
    pub expected: &'static str,
}

/// Turns their settings into ours. `keys` are all that are known ([`keys::all`]), `languages` the tags that can be read
/// here.
pub fn convert(tree: &Value, keys: &[Key], languages: &[&str]) -> Result<Conversion, WrongType> {
    let mut done = Conversion::default();
    let Some(root) = tree.as_object() else { return Ok(done) };
    for (table, contents) in root {
        if let Some((_, why)) = IDLE_TABLES.iter().find(|(name, _)| name == table) {
            done.leave_out_table(table, contents, why);
            continue;
        }
        let Some(entries) = contents.as_object().filter(|_| TABLES.contains(&table.as_str()))
        else {
            done.unknown.push(table.clone());
            continue;
        };
        for (name, value) in entries {
            let full = format!("{table}.{name}");
            match keys.iter().find(|key| key.is(table, name)) {
                Some(key) => done.take(key, full, value, languages)?,
                None => done.unknown.push(full),
            }
        }
    }
    done.derive();
    Ok(done)
}

impl Conversion {
    fn take(
        &mut self,
        key: &Key,
        full: String,
        value: &Value,
        languages: &[&str],
    ) -> Result<(), WrongType> {
        // An empty value is how YAML says "not set".
        if value.is_null() {
            return Ok(());
        }
        let value = key.kind.read(value).ok_or_else(|| WrongType {
            key: full.clone(),
            found: describe(value),
            expected: key.kind.in_words(),
        })?;
        let given = value.clone();
        let (became, here, said) = match key.means {
            Means::Is(ours) => self.set(ours, &value, languages),
            Means::Always(why) => {
                let agrees = value != Value::Bool(false);
                let became = if agrees { Became::Always } else { Became::AlwaysDespite };
                (became, None, why.to_string())
            }
            Means::Nothing(why) => (Became::LeftOut, None, why.to_string()),
        };
        let changed = match became {
            Became::Set => here.as_deref().and_then(|ours| get(&self.config, ours)) != Some(&given),
            Became::Always => false,
            // Zero and an empty text ask for the default, which is what they get.
            Became::LeftOut => !is_default_request(key, &given),
            Became::AlwaysDespite => true,
        };
        self.meanings.push(Meaning { key: full, value, here, became, changed, said });
        Ok(())
    }

    fn leave_out_table(&mut self, table: &str, contents: &Value, why: &str) {
        self.meanings.push(Meaning {
            key: table.to_string(),
            value: contents.clone(),
            here: None,
            became: Became::LeftOut,
            changed: true,
            said: why.to_string(),
        });
    }

    /// Puts a value under our key, in our form.
    fn set(
        &mut self,
        ours: &'static str,
        value: &Value,
        languages: &[&str],
    ) -> (Became, Option<String>, String) {
        let left_out = |why: String| (Became::LeftOut, None, why);
        let mut more = String::new();
        let value = match (ours, value) {
            ("num_workers" | "prefetch_buffer_size", Value::Number(count))
                if count.as_u64() == Some(0) =>
            {
                return left_out("0 means \"choose\": so does leaving it out".into());
            }
            ("train_data", Value::String(path)) if path.is_empty() => {
                return left_out("empty".into());
            }
            ("train.precision", Value::Bool(mixed)) => json!(if *mixed { "bf16" } else { "f32" }),
            ("cache_dataset", Value::String(mode)) => json!(mode == "precompute"),
            ("text.languages", Value::Array(tags)) => {
                let (known, others): (Vec<&Value>, Vec<&Value>) = tags
                    .iter()
                    .partition(|tag| tag.as_str().is_some_and(|t| languages.contains(&t)));
                if known.is_empty() {
                    return left_out("none of these languages can be read here".into());
                }
                if !others.is_empty() {
                    let named: Vec<&str> = others.iter().filter_map(|tag| tag.as_str()).collect();
                    more = format!("; without {}, which cannot be read here", named.join(", "));
                }
                json!(known)
            }
            ("corpus.default_language", Value::String(tag))
                if !languages.contains(&tag.as_str()) =>
            {
                return left_out(format!(
                    "`{tag}` cannot be read here: languages are found from the text"
                ));
            }
            ("audio.trim_silence" | "audio.loudness", Value::Bool(false)) => {
                return left_out("off here too unless it is set".into());
            }
            ("audio.trim_silence", Value::Bool(true)) => json!(TRIM_LEVEL),
            // The number of `target_loudness_lufs`, if that came first.
            ("audio.loudness", Value::Bool(true)) => {
                more = "; by EBU R128, one gain for each recording".into();
                get(&self.config, ours).cloned().unwrap_or(json!(LOUDNESS))
            }
            (_, value) => value.clone(),
        };
        let said = format!("{ours} = {value}{more}");
        put(&mut self.config, ours, value);
        (Became::Set, Some(ours.to_string()), said)
    }

    /// What follows from several keys together.
    fn derive(&mut self) {
        let number = |config: &Map<String, Value>, path: &str| get(config, path)?.as_f64();
        // Theirs is a rate, ours a share of the highest one.
        if let Some(lowest) = number(&self.config, "train.optimizer.final_lr") {
            let highest = number(&self.config, "train.optimizer.lr").unwrap_or(1e-4);
            let share = if highest > 0.0 { (lowest / highest).clamp(0.0, 1.0) } else { 0.0 };
            let share = (share * 1e6).round() / 1e6;
            self.replace(
                "train.optimizer.final_lr",
                json!(share),
                "as a share of the highest rate",
            );
        }
        if let Some(rate) = number(&self.config, "mel.rate")
            && get(&self.config, "mel.high").is_none()
        {
            put(&mut self.config, "mel.high", json!(rate / 2.0));
        }
        if get(&self.config, "text.languages").is_none()
            && let Some(tag) = get(&self.config, "corpus.default_language").cloned()
        {
            put(&mut self.config, "text.languages", json!([tag]));
        }
        if self.switch("enable_loudness_normalization").is_some_and(|(_, on)| !on) {
            self.leave_out("audio.loudness", "`enable_loudness_normalization` is false");
        }
        // A memory budget without isolation would be refused.
        let budgets = ["devices.data_gpu_memory", "devices.model_gpu_memory"];
        let isolated = get(&self.config, "devices.enable_memory_isolation");
        if isolated.is_none() && budgets.iter().any(|key| get(&self.config, key).is_some()) {
            put(&mut self.config, "devices.enable_memory_isolation", json!(true));
        }
    }

    /// Takes back a key of ours that another key of theirs switches off.
    fn leave_out(&mut self, ours: &str, why: &str) {
        for meaning in self.meanings.iter_mut().filter(|m| m.here.as_deref() == Some(ours)) {
            (meaning.became, meaning.here, meaning.said) = (Became::LeftOut, None, why.into());
        }
        if let Some((table, name)) = ours.split_once('.')
            && let Some(keys) = self.config.get_mut(table).and_then(Value::as_object_mut)
        {
            keys.remove(name);
            if keys.is_empty() {
                self.config.remove(table);
            }
        }
    }

    fn replace(&mut self, ours: &str, value: Value, why: &str) {
        for meaning in self.meanings.iter_mut().filter(|m| m.here.as_deref() == Some(ours)) {
            meaning.said = format!("{ours} = {value}, {why}");
            meaning.changed = true;
        }
        put(&mut self.config, ours, value);
    }

    /// Their key that sets one of ours.
    pub fn source_of(&self, ours: &str) -> Option<&str> {
        let sets = |meaning: &&Meaning| meaning.here.as_deref() == Some(ours);
        self.meanings.iter().rfind(sets).map(|meaning| meaning.key.as_str())
    }

    /// What a switch of theirs says, by its name in any table.
    pub fn switch(&self, name: &str) -> Option<(&str, bool)> {
        let is_it = |meaning: &&Meaning| meaning.key.rsplit('.').next() == Some(name);
        let meaning = self.meanings.iter().find(is_it)?;
        Some((meaning.key.as_str(), meaning.value.as_bool()?))
    }
}

impl Kind {
    /// The value as this kind, also where it was written as a text: `"1e-4"`, `"true"`.
    fn read(self, value: &Value) -> Option<Value> {
        let text = value.as_str().map(str::trim);
        match self {
            Kind::Any => Some(value.clone()),
            Kind::Switch => match text {
                Some(text) => match text.to_lowercase().as_str() {
                    "true" | "yes" | "on" => Some(json!(true)),
                    "false" | "no" | "off" => Some(json!(false)),
                    _ => None,
                },
                None => value.is_boolean().then(|| value.clone()),
            },
            Kind::Number => {
                let number = text.map_or_else(|| value.as_f64(), |text| text.parse().ok())?;
                number.is_finite().then(|| json!(number))
            }
            Kind::Count => {
                let whole = |number: f64| {
                    (number >= 0.0 && number.fract() == 0.0 && number < 9e15)
                        .then_some(number as u64)
                };
                let from_text = |text: &str| text.replace('_', "").parse().ok().and_then(whole);
                let count = value.as_u64().or_else(|| value.as_f64().and_then(whole));
                Some(json!(count.or_else(|| text.and_then(from_text))?))
            }
            Kind::Text => value.is_string().then(|| value.clone()),
            Kind::Tags => match value {
                Value::String(tag) => Some(json!([tag])),
                Value::Array(tags) => tags.iter().all(Value::is_string).then(|| value.clone()),
                _ => None,
            },
        }
    }
}

fn is_default_request(key: &Key, value: &Value) -> bool {
    let empty = value.as_u64() == Some(0) || value.as_str() == Some("");
    matches!(key.means, Means::Is(_)) && empty
}

fn describe(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text \"{text}\""),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a table".into(),
        other => other.to_string(),
    }
}

fn get<'a>(config: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let (first, rest) =
        path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = config.get(first)?;
    match rest {
        Some(rest) => get(value.as_object()?, rest),
        None => Some(value),
    }
}

fn put(config: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(config.insert(path.to_string(), value)),
        Some((first, rest)) => {
            let table = config.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if let Some(table) = table.as_object_mut() {
                put(table, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
