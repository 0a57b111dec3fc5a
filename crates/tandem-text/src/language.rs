//! The supported languages, their names and their level of support.
//!
//! In: a tag, a code or a name. Out: [`Language`]. Never inspects the text of an
//! utterance: that is the task of [`super::detect`].

use super::TextError;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use tandem_settings::{SettingValue, ValueKind};

/// A supported language. Serialised as its ISO 639-1 tag: `en`, `fa`, ...
///
/// The order is fixed and new ones are appended: a model has one embedding per language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    English,
    Persian,
    Arabic,
    German,
    French,
    Spanish,
    Italian,
    Portuguese,
    Dutch,
    Turkish,
    Russian,
    Ukrainian,
    Polish,
    Czech,
    Swedish,
}

/// The level of support of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Numbers, dates, times, money, units and abbreviations become words.
    Full,
    /// Numbers, percentages, dates, times and money become words.
    Numbers,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Numbers => "numbers",
        })
    }
}

/// A writing system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Script {
    Latin,
    /// Includes the additional letters of Persian.
    Arabic,
    Cyrillic,
    Greek,
    Hebrew,
    Devanagari,
    Han,
    Kana,
    Hangul,
    /// Any other script.
    Other,
}

impl Script {
    /// Number of scripts, for tables indexed by `script as usize`.
    pub(super) const COUNT: usize = 10;

    /// All of them, by index.
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::Latin,
        Self::Arabic,
        Self::Cyrillic,
        Self::Greek,
        Self::Hebrew,
        Self::Devanagari,
        Self::Han,
        Self::Kana,
        Self::Hangul,
        Self::Other,
    ];

    /// The script of a letter; nothing for digits, signs and spaces.
    #[inline]
    pub fn of(letter: char) -> Option<Self> {
        // Common letters first: a lookup in the Unicode tables for each letter is slow.
        match letter {
            'a'..='z' | 'A'..='Z' => return Some(Self::Latin),
            '\u{620}'..='\u{63F}' | '\u{641}'..='\u{64A}' | '\u{671}'..='\u{6D3}' => {
                return Some(Self::Arabic);
            }
            '\u{410}'..='\u{44F}' => return Some(Self::Cyrillic),
            _ if !letter.is_alphabetic() => return None,
            _ => {}
        }
        Some(match u32::from(letter) {
            0..=0x2AF | 0x1E00..=0x1EFF | 0xFB00..=0xFB06 | 0xFF21..=0xFF5A => Self::Latin,
            0x600..=0x6FF | 0x750..=0x77F | 0x8A0..=0x8FF | 0xFB50..=0xFDFF | 0xFE70..=0xFEFF => {
                Self::Arabic
            }
            0x400..=0x52F => Self::Cyrillic,
            0x370..=0x3FF | 0x1F00..=0x1FFF => Self::Greek,
            0x590..=0x5FF => Self::Hebrew,
            0x900..=0x97F => Self::Devanagari,
            0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2FA1F => Self::Han,
            0x3040..=0x30FF => Self::Kana,
            0xAC00..=0xD7AF | 0x1100..=0x11FF => Self::Hangul,
            _ => Self::Other,
        })
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Latin => "Latin",
            Self::Arabic => "Arabic",
            Self::Cyrillic => "Cyrillic",
            Self::Greek => "Greek",
            Self::Hebrew => "Hebrew",
            Self::Devanagari => "Devanagari",
            Self::Han => "Han",
            Self::Kana => "Kana",
            Self::Hangul => "Hangul",
            Self::Other => "unnamed",
        })
    }
}

/// What is known about one language.
struct Facts {
    tag: &'static str,
    name: &'static str,
    script: Script,
    level: Level,
    /// ISO 639-2 codes and the name in the language itself, lower case.
    aliases: &'static [&'static str],
    /// The voice of espeak-ng.
    voice: &'static str,
    detector: whatlang::Lang,
}

impl Language {
    pub const ALL: [Self; 15] = [
        Self::English,
        Self::Persian,
        Self::Arabic,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Italian,
        Self::Portuguese,
        Self::Dutch,
        Self::Turkish,
        Self::Russian,
        Self::Ukrainian,
        Self::Polish,
        Self::Czech,
        Self::Swedish,
    ];

    pub fn tag(self) -> &'static str {
        self.facts().tag
    }

    pub fn name(self) -> &'static str {
        self.facts().name
    }

    pub fn script(self) -> Script {
        self.facts().script
    }

    pub fn level(self) -> Level {
        self.facts().level
    }

    pub fn voice(self) -> &'static str {
        self.facts().voice
    }

    /// Its index in [`Self::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    pub(super) fn detector(self) -> whatlang::Lang {
        self.facts().detector
    }

    fn facts(self) -> &'static Facts {
        &FACTS[self.index()]
    }
}

/// In the order of [`Language::ALL`].
static FACTS: [Facts; 15] = {
    use Level::{Full, Numbers};
    use Script::{Arabic, Cyrillic, Latin};
    use whatlang::Lang;
    [
        facts("en", "English", Latin, Full, &["eng"], "en-us", Lang::Eng),
        facts("fa", "Persian", Arabic, Full, PERSIAN_NAMES, "fa", Lang::Pes),
        facts("ar", "Arabic", Arabic, Numbers, &["ara", "العربية"], "ar", Lang::Ara),
        facts("de", "German", Latin, Numbers, &["deu", "ger", "deutsch"], "de", Lang::Deu),
        facts("fr", "French", Latin, Numbers, &["fra", "fre", "français"], "fr-fr", Lang::Fra),
        facts("es", "Spanish", Latin, Numbers, &["spa", "español", "castilian"], "es", Lang::Spa),
        facts("it", "Italian", Latin, Numbers, &["ita", "italiano"], "it", Lang::Ita),
        facts("pt", "Portuguese", Latin, Numbers, &["por", "português"], "pt", Lang::Por),
        facts("nl", "Dutch", Latin, Numbers, &["nld", "dut", "nederlands"], "nl", Lang::Nld),
        facts("tr", "Turkish", Latin, Numbers, &["tur", "türkçe"], "tr", Lang::Tur),
        facts("ru", "Russian", Cyrillic, Numbers, &["rus", "русский"], "ru", Lang::Rus),
        facts("uk", "Ukrainian", Cyrillic, Numbers, &["ukr", "українська"], "uk", Lang::Ukr),
        facts("pl", "Polish", Latin, Numbers, &["pol", "polski"], "pl", Lang::Pol),
        facts("cs", "Czech", Latin, Numbers, &["ces", "cze", "čeština"], "cs", Lang::Ces),
        facts("sv", "Swedish", Latin, Numbers, &["swe", "svenska"], "sv", Lang::Swe),
    ]
};

const PERSIAN_NAMES: &[&str] =
    &["fas", "per", "pes", "prs", "farsi", "dari", "فارسی", "فارسي", "پارسی"];

const fn facts(
    tag: &'static str,
    name: &'static str,
    script: Script,
    level: Level,
    aliases: &'static [&'static str],
    voice: &'static str,
    detector: whatlang::Lang,
) -> Facts {
    Facts { tag, name, script, level, aliases, voice, detector }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.tag())
    }
}

impl SettingValue for Language {
    const KIND: ValueKind = ValueKind::Text;

    fn parse(text: &str) -> Result<Language, String> {
        text.parse().map_err(|error: TextError| error.to_string())
    }

    fn text(&self) -> String {
        self.tag().to_string()
    }
}

impl FromStr for Language {
    type Err = TextError;

    /// Accepts `en`, `eng`, `en-US`, `en_GB`, `English`, `Farsi`, `فارسی`, in any case.
    fn from_str(given: &str) -> Result<Self, TextError> {
        let lower = given.trim().to_lowercase();
        let primary = lower.split(['-', '_']).next().unwrap_or_default();
        Self::ALL
            .into_iter()
            .find(|language| {
                let facts = language.facts();
                primary == facts.tag
                    || primary.eq_ignore_ascii_case(facts.name)
                    || facts.aliases.contains(&primary)
            })
            .ok_or_else(|| TextError::UnknownLanguage { given: given.trim().to_owned() })
    }
}

impl Serialize for Language {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.tag())
    }
}

impl<'de> Deserialize<'de> for Language {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = String::deserialize(from)?;
        given.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &str, tag: &str) {
        assert_eq!(given.parse::<Language>().unwrap().tag(), tag, "{given}");
    }

    #[test]
    fn tags_codes_regions_and_names_are_parsed() {
        for (given, tag) in [
            ("en", "en"),
            ("EN", "en"),
            ("eng", "en"),
            ("en-US", "en"),
            ("en_GB", "en"),
            ("English", "en"),
            (" english ", "en"),
            ("fa", "fa"),
            ("fa_IR", "fa"),
            ("per", "fa"),
            ("Farsi", "fa"),
            ("فارسی", "fa"),
            ("deu", "de"),
            ("pt-BR", "pt"),
            ("Русский", "ru"),
        ] {
            check(given, tag);
        }
    }

    #[test]
    fn an_unknown_language_is_named() {
        let error = "klingon".parse::<Language>().unwrap_err();
        assert!(error.to_string().contains("klingon"), "{error}");
    }

    #[test]
    fn facts_are_in_the_order_of_the_enum() {
        for language in Language::ALL {
            check(language.tag(), language.tag());
            check(language.name(), language.tag());
            assert_eq!(Language::ALL[language.index()], language);
        }
    }

    #[test]
    fn a_language_is_saved_as_its_tag() {
        let json = serde_json::to_string(&Language::Persian).unwrap();
        assert_eq!(json, "\"fa\"");
        assert_eq!(serde_json::from_str::<Language>("\"fa-IR\"").unwrap(), Language::Persian);
    }
}
