//! A configuration file as it is written: of Tandem or of MyXTTS.
//!
//! In: a path. Out: [`Written`]: the settings of Tandem, the kind of file, and the position of each
//! key. A file that cannot be read is an error with line, column and the nearest known key.

use super::format::{Format, shown_at};
use super::nearest::nearest;
use super::place::place_of;
use super::{parsed, read_text};
use crate::failure::{Advised, Context, Failure, Result};
use serde_json::Value;
use std::path::Path;
use tandem_insight::myxtts::keys::{self, Key};
use tandem_insight::myxtts::{Became, Conversion, TABLES, convert, is_myxtts};
use tandem_insight::readiness::Place;
use tandem_settings::SetKeys;
use tandem_text::Language;
use tandem_train::file_config::{FileConfig, all_settings};

/// A configuration file that was read.
pub struct Written {
    /// The settings of Tandem.
    pub config: FileConfig,
    /// How they were converted, if the file was written for MyXTTS.
    pub conversion: Option<Conversion>,
    text: String,
    format: Format,
}

/// Keys of earlier versions, which are still read, and what they are now.
pub const RENAMED: [(&str, &str); 1] =
    [("text.symbols", "`text.pronunciation`, and `phonemes` is `espeak`")];

impl Written {
    pub fn read(path: &Path) -> Result<Written> {
        let named = || format!("cannot use configuration `{}`", path.display());
        let text = read_text(path).with_context(named)?;
        let format = Format::of(path).with_context(named)?;
        let ours = parsed(format, &text);
        // Syntax comes first: half a file says nothing about its keys.
        let tree = format.parse::<Value>(&text).with_context(named)?;
        // A file of the other program has tables that are unknown here.
        if ours.is_ok() || !is_myxtts(&tree) {
            let config = ours.with_context(named)?;
            let config = FileConfig { set_keys: SetKeys::of(&tree), ..config };
            return Ok(Written { config, conversion: None, text, format });
        }
        let file = Theirs { tree, text: &text, format };
        let (config, conversion) = file.read().with_context(named)?;
        Ok(Written { config, conversion: Some(conversion), text, format })
    }

    /// For the user: one line for each key of a MyXTTS file that does something else here, and for
    /// each key of Tandem that has another name now.
    pub fn changed_meanings(&self, path: &Path) -> Vec<String> {
        let Some(conversion) = &self.conversion else { return self.renamed_keys(path) };
        let changed = conversion.meanings.iter().filter(|meaning| meaning.changed);
        let mut lines: Vec<(Option<usize>, String)> = changed
            .map(|meaning| {
                let line = self.place_of(&meaning.key).line;
                let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
                let effect = match meaning.became {
                    Became::Set => "is ",
                    Became::Always | Became::AlwaysDespite => "has no effect, ",
                    Became::LeftOut => "has no effect: ",
                };
                (line, format!("  {place}`{}` {effect}{}", meaning.key, meaning.said))
            })
            .collect();
        // In the order of the file.
        lines.sort();
        let (file, keys) = (path.display(), conversion.meanings.len());
        let head = match lines.len() {
            0 => format!("{file}: a MyXTTS configuration; all {keys} keys mean the same here"),
            1 => format!(
                "{file}: a MyXTTS configuration; 1 of {keys} keys has another meaning here:"
            ),
            many => format!(
                "{file}: a MyXTTS configuration; {many} of {keys} keys have another meaning here:"
            ),
        };
        std::iter::once(head).chain(lines.into_iter().map(|(_, line)| line)).collect()
    }

    fn renamed_keys(&self, path: &Path) -> Vec<String> {
        let renamed = RENAMED.iter().filter_map(|(old, now)| {
            let line = self.place_of(old).line?;
            Some(format!("{}: line {line}: `{old}` is now {now}", path.display()))
        });
        renamed.collect()
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
    fn read(&self) -> Result<(FileConfig, Conversion)> {
        let languages: Vec<&str> = Language::ALL.iter().map(|language| language.tag()).collect();
        let correct = "correct that line, or remove it for the default";
        let conversion = convert(&self.tree, &myxtts_keys(), &languages).map_err(|wrong| {
            let fact = format!("`{}` is {}, expected {}", wrong.key, wrong.found, wrong.expected);
            self.fault(&wrong.key, &fact, correct)
        })?;
        if let Some(wrong) = conversion.unknown.first() {
            let fact = format!("unknown key `{wrong}`");
            return Err(self.fault(wrong, &fact, &right_key(wrong)).into());
        }
        let settings = Value::Object(conversion.config.clone());
        let set_keys = SetKeys::of(&settings);
        let config: FileConfig = serde_path_to_error::deserialize(settings).map_err(|error| {
            let ours = error.path().to_string();
            let key = conversion.source_of(&ours).unwrap_or(&ours).to_string();
            self.fault(&key, &format!("`{key}`: {}", error.into_inner()), correct)
        })?;
        Ok((FileConfig { set_keys, ..config.checked()? }, conversion))
    }

    fn fault(&self, key: &str, fact: &str, advice: &str) -> Advised {
        match place_of(self.text, self.format, key) {
            Some(place) => Advised::new(shown_at(self.text, place, fact), advice),
            None => Advised::new(fact, advice),
        }
    }
}

/// Which MyXTTS key was probably meant.
fn right_key(unknown: &str) -> String {
    let Some((table, name)) = unknown.split_once('.') else {
        return right_table(unknown);
    };
    // In the same table, the right name in another table, or nearly.
    let here = || keys_of(table);
    let elsewhere = |near: bool| {
        TABLES.iter().find_map(|other| {
            let found = match near {
                true => nearest(name, keys_of(other)),
                false => keys_of(other).find(|key| *key == name),
            };
            Some(format!("{other}.{}", found?))
        })
    };
    let in_table = nearest(name, here()).map(|right| format!("{table}.{right}"));
    if let Some(right) = in_table.or_else(|| elsewhere(false)).or_else(|| elsewhere(true)) {
        return format!("did you mean `{right}`?");
    }
    let closest: Vec<String> =
        closest(name, here()).iter().map(|key| format!("`{table}.{key}`")).collect();
    format!("the nearest keys are {}; remove the line if none is meant", closest.join(", "))
}

fn right_table(unknown: &str) -> String {
    if let Some(right) = nearest(unknown, TABLES.into_iter()) {
        return format!("did you mean `{right}`?");
    }
    if let Some(table) = TABLES.iter().find(|table| keys_of(table).any(|key| key == unknown)) {
        return format!("did you mean `{table}.{unknown}`?");
    }
    "a MyXTTS file has the tables `data`, `training`, `model` and `paths`; keys of Tandem cannot be \
     mixed with them: `tandem validate --config FILE --convert` writes a file of Tandem"
        .into()
}

/// The three most similar candidates, the most similar first.
fn closest<'a>(wrong: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<(f64, &str)> =
        candidates.map(|name| (strsim::jaro_winkler(wrong, name), name)).collect();
    found.sort_by(|left, right| right.0.total_cmp(&left.0));
    found.into_iter().take(3).map(|(_, name)| name).collect()
}

/// All keys of MyXTTS that are known.
pub fn myxtts_keys() -> Vec<Key> {
    keys::all(&all_settings())
}

fn keys_of(table: &str) -> impl Iterator<Item = &'static str> {
    myxtts_keys().into_iter().filter(move |key| key.is(table, key.name)).map(|key| key.name)
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
