//! What is known of a setting.

use crate::Range;
use crate::value::{SettingValue, ValueKind, check};

/// One setting of a table. All of it is stated in the declaration.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The full key in a configuration file, tables joined by dots.
    pub key: &'static str,
    /// Lines of the declaration's comment, each after a space.
    pub help: &'static str,
    pub kind: ValueKind,
    /// The flag with the name of its value, such as `--lr RATE`; empty for none.
    pub flag: &'static str,
    /// The environment variable; empty without a flag.
    pub variable: &'static str,
    /// The values of a setting that accepts only some.
    pub words: &'static [&'static str],
    /// Further values, for tests.
    pub hidden_words: &'static [&'static str],
    /// The words in a configuration file, if they are not those of the flag.
    pub file_words: &'static [&'static str],
    /// Whether the help of the flag names the words already.
    pub names_words: bool,
    /// Whether several values may be typed.
    pub is_list: bool,
    /// Another name of the flag, without dashes; empty for none.
    pub alias: &'static str,
    /// The key of the setting whose flag sets this one too; empty for none.
    pub same_flag_as: &'static str,
    /// Whether a text is accepted as a value.
    pub accepts: fn(&str) -> Result<(), String>,
    /// The default as a user would type it; empty for none.
    pub default: fn() -> String,
    /// The default in words, where the value does not tell.
    pub default_in_words: &'static str,
    /// Whether the help of the flag ends with the default.
    pub shows_default: bool,
    pub range: Range,
    /// The default of a run that starts from a trained voice.
    pub fine_tuning: Option<&'static str>,
    /// What the flag means without a value.
    pub without_value: Option<&'static str>,
    pub on_resume: OnResume,
    /// The keys of a MyXTTS file that mean it, after the first letters of their tables: `dt.batch_size`.
    pub myxtts: &'static [&'static str],
    /// The part of the help that lists the flag.
    pub heading: &'static str,
}

/// What a resumed run does if the setting is another one than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnResume {
    /// Continues with the new value: it changes no weight.
    Continue,
    /// Continues with the new value, and says so: it changes the weights.
    Warn,
    /// Continues, and says that the learning rate follows another schedule.
    Reschedule,
    /// Decided by what the checkpoint holds; see `tandem-train/src/run/resume.rs`.
    Compare,
}

impl Setting {
    /// What follows from the type and the name of a field. A declaration adds the rest.
    pub const fn of<T: SettingValue>(
        key: &'static str,
        help: &'static str,
        flag: &'static str,
        variable: &'static str,
        default: fn() -> String,
    ) -> Setting {
        Setting {
            key,
            help,
            kind: T::KIND,
            flag,
            variable,
            words: T::WORDS,
            hidden_words: T::HIDDEN_WORDS,
            file_words: T::FILE_WORDS,
            names_words: false,
            is_list: T::IS_LIST,
            alias: "",
            same_flag_as: "",
            accepts: check::<T>,
            default,
            default_in_words: "",
            shows_default: true,
            range: Range::Any,
            fine_tuning: None,
            without_value: None,
            on_resume: OnResume::Continue,
            myxtts: &[],
            heading: "Training",
        }
    }

    /// `--lr`; none without a flag.
    pub fn long_flag(&self) -> Option<&'static str> {
        self.flag.split(' ').next().filter(|flag| !flag.is_empty())
    }

    /// The name of the flag's value in the help.
    pub fn value_name(&self) -> &'static str {
        self.flag.split_once(' ').map_or("VALUE", |(_, name)| name)
    }

    /// The flag, or the key of a setting without one: as messages name it.
    pub fn shown_name(&self) -> &'static str {
        self.long_flag().unwrap_or(self.key)
    }

    /// The table of the key; empty for none.
    pub fn table(&self) -> &'static str {
        self.key.rsplit_once('.').map_or("", |(table, _)| table)
    }

    /// The key within its table.
    pub fn name(&self) -> &'static str {
        self.key.rsplit_once('.').map_or(self.key, |(_, name)| name)
    }

    /// The words in a configuration file.
    pub fn words_in_file(&self) -> Vec<&'static str> {
        match self.file_words {
            [] => [self.words, self.hidden_words].concat(),
            words => words.to_vec(),
        }
    }

    /// The help in one line, without the default.
    pub fn meaning(&self) -> String {
        let said = self.help.trim();
        match self.fine_tuning {
            Some(value) => format!("{said}; with --from {value}"),
            None => said.to_string(),
        }
    }

    /// The help of the flag, with the default. A switch that is off needs none.
    pub fn flag_help(&self) -> String {
        let words = match (self.default_in_words, self.kind) {
            ("", ValueKind::Switch) => (self.default)().replace("false", ""),
            ("", _) => (self.default)(),
            (words, _) => words.to_string(),
        };
        match words.as_str() {
            "" => self.meaning(),
            _ if !self.shows_default => self.meaning(),
            words => format!("{} [default: {words}]", self.meaning()),
        }
    }
}

/// The full key of a name in a table, given with a dot between: that of no table begins with it.
pub const fn full_key(dotted: &'static str) -> &'static str {
    match dotted.as_bytes() {
        [b'.', name @ ..] => text_of(name),
        _ => dotted,
    }
}

/// Bytes of the variable of a flag.
pub const fn variable_length(flag: &str) -> usize {
    let name = name_length(flag);
    if name == 0 { 0 } else { PREFIX.len() + name }
}

const PREFIX: &[u8] = b"TANDEM_";

/// Bytes of the flag's name, without the dashes before it and the value after it.
const fn name_length(flag: &str) -> usize {
    let (bytes, mut end) = (flag.as_bytes(), 0);
    while end < bytes.len() && bytes[end] != b' ' {
        end += 1;
    }
    end.saturating_sub(2)
}

/// `--warmup-steps N` has the variable `TANDEM_WARMUP_STEPS`.
pub const fn variable<const LENGTH: usize>(flag: &str) -> [u8; LENGTH] {
    let (mut name, mut at) = ([0; LENGTH], 0);
    while at < LENGTH {
        name[at] = if at < PREFIX.len() {
            PREFIX[at]
        } else {
            match flag.as_bytes()[at - PREFIX.len() + 2] {
                b'-' => b'_',
                letter => letter.to_ascii_uppercase(),
            }
        };
        at += 1;
    }
    name
}

/// The text of [`variable`].
pub const fn text_of(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("flags and keys are ASCII"),
    }
}
