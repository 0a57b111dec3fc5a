//! A configuration file as it is written: of Tandem or of MyXTTS.
//!
//! In: a path. Out: [`Written`]: the settings of Tandem, the kind of file, and the position of each
//! key. A file that cannot be read is an error with line, column and the nearest known key.

use super::format::{Format, shown_at};
use super::nearest::nearest;
use super::place::place_of;
use super::{FileConfig, read_text};
use crate::failure::{Advised, Context, Failure, Result};
use serde_json::Value;
use std::path::Path;
use tandem_data::text::Language;
use tandem_insight::myxtts::keys::KEYS;
use tandem_insight::myxtts::{Conversion, TABLES, convert, is_myxtts};
use tandem_insight::readiness::Place;

/// A configuration file that was read.
pub struct Written {
    /// The settings of Tandem.
    pub config: FileConfig,
    /// How they were converted, if the file was written for MyXTTS.
    pub conversion: Option<Conversion>,
    text: String,
    format: Format,
}

impl Written {
    pub fn read(path: &Path) -> Result<Written> {
        let named = || format!("cannot use configuration `{}`", path.display());
        let text = read_text(path).with_context(named)?;
        let format = Format::of(path).with_context(named)?;
        // First without checking the keys.
        let tree: Value = format.parse(&text).with_context(named)?;
        if !is_myxtts(&tree) {
            let config = FileConfig::read(Some(path))?;
            return Ok(Written { config, conversion: None, text, format });
        }
        let file = Theirs { tree, text: &text, format };
        let (config, conversion) = file.read().with_context(named)?;
        Ok(Written { config, conversion: Some(conversion), text, format })
    }

    /// Position of a Tandem key, by the name it has in this file.
    pub fn place(&self, ours: &str) -> Place {
        let theirs = self.conversion.as_ref().and_then(|conversion| conversion.source_of(ours));
        self.place_of(theirs.unwrap_or(ours))
    }

    /// Position of a key of this file.
    pub fn place_of(&self, key: &str) -> Place {
        let line = place_of(&self.text, self.format, key).map(|(line, _)| line);
        Place { key: key.to_string(), line }
    }

    /// The settings as TOML: only those that the file sets.
    pub fn to_toml(&self) -> Result<String> {
        let set = match &self.conversion {
            Some(conversion) => Value::Object(conversion.config.clone()),
            None => {
                let usual =
                    serde_json::to_value(FileConfig::default()).map_err(Failure::foreign)?;
                changed(&serde_json::to_value(&self.config).map_err(Failure::foreign)?, &usual)
                    .unwrap_or(Value::Null)
            }
        };
        match set {
            Value::Null => Ok(String::new()),
            set => toml::to_string(&set)
                .map_err(Failure::foreign)
                .context("cannot write the settings as TOML"),
        }
    }
}

/// A file of MyXTTS.
struct Theirs<'a> {
    tree: Value,
    text: &'a str,
    format: Format,
}

impl Theirs<'_> {
    fn read(&self) -> Result<(FileConfig, Conversion), Advised> {
        let languages: Vec<&str> = Language::ALL.iter().map(|language| language.tag()).collect();
        let correct = "correct that line, or remove it for the default";
        let conversion = convert(&self.tree, &languages).map_err(|wrong| {
            let fact = format!("`{}` is {}, expected {}", wrong.key, wrong.found, wrong.expected);
            self.fault(&wrong.key, &fact, correct)
        })?;
        if let Some((wrong, right)) = conversion.unknown.iter().find_map(|key| near(key)) {
            let advice = format!("did you mean `{right}`?");
            return Err(self.fault(wrong, &format!("unknown key `{wrong}`"), &advice));
        }
        let settings = Value::Object(conversion.config.clone());
        let config: FileConfig = serde_path_to_error::deserialize(settings).map_err(|error| {
            let ours = error.path().to_string();
            let key = conversion.source_of(&ours).unwrap_or(&ours).to_string();
            self.fault(&key, &format!("`{key}`: {}", error.into_inner()), correct)
        })?;
        Ok((config.checked()?, conversion))
    }

    fn fault(&self, key: &str, fact: &str, advice: &str) -> Advised {
        match place_of(self.text, self.format, key) {
            Some(place) => Advised::new(shown_at(self.text, place, fact), advice),
            None => Advised::new(fact, advice),
        }
    }
}

/// The MyXTTS key that was probably meant; `None` for keys that are not known here.
fn near(unknown: &str) -> Option<(&str, String)> {
    let Some((table, name)) = unknown.split_once('.') else {
        return nearest(unknown, TABLES.into_iter()).map(|right| (unknown, right.to_string()));
    };
    // In the same table, or the right name in another table.
    let here = KEYS.iter().filter(|key| key.is(table, key.name)).map(|key| key.name);
    if let Some(right) = nearest(name, here) {
        return Some((unknown, format!("{table}.{right}")));
    }
    let other = TABLES.iter().find(|other| KEYS.iter().any(|key| key.is(other, name)))?;
    Some((unknown, format!("{other}.{name}")))
}

/// The values that differ from the defaults.
fn changed(value: &Value, usual: &Value) -> Option<Value> {
    match (value, usual) {
        (Value::Null, _) => None,
        (Value::Object(table), Value::Object(usual)) => {
            let entries = table.iter().filter_map(|(key, value)| {
                let other = usual.get(key).unwrap_or(&Value::Null);
                Some((key.clone(), changed(value, other)?))
            });
            let entries: serde_json::Map<_, _> = entries.collect();
            (!entries.is_empty()).then_some(Value::Object(entries))
        }
        (value, usual) => (value != usual).then(|| value.clone()),
    }
}
