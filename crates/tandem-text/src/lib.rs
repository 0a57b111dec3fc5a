//! Turns raw text into the input symbols of the model.
//!
//! In: raw text, and its language if the corpus has one. Out: [`ProcessedText`], with the
//! [`Transcript`] in it. Reads no corpus and starts no thread; all workers share one [`FrontEnd`]. Next on the path: `tandem-audio`.

mod language; // the supported languages
mod detect; // language detection
mod folding; // Unicode normalisation
mod scan; // a cursor in a text
mod numeral; // digits as written
mod phone_groups; // phone numbers as written
mod roman_numeral; // Roman numerals as written
mod number_words; // digits as words, from the tables of a language
mod spoken; // output with correct spaces
mod english; // English normalisation
mod persian; // Persian normalisation
mod other; // other languages: letters, punctuation, numbers, dates, times and money
mod words; // sentences to words
pub mod chat; // Markdown to text that can be spoken
pub mod sentences; // long texts to sentences, before all of the above
mod lexicon; // the user's spellings and pronunciations
mod pronounce; // hook for ezafe and homographs
mod pronunciation; // built-in phonemes
mod phonemes; // espeak-ng
pub mod espeak_symbols; // what it writes, in built-in phonemes
mod symbols; // the symbol table of the model
mod memo; // cache of repeated texts
mod error; // errors with hints

pub use error::{LexiconFault, TextError};
pub use folding::fold;
pub use language::{Language, Level, Script};
pub use memo::Memo;
pub use pronounce::Pronounce;
#[doc(hidden)] // for xtask/generators/train_persian_reading.py
pub use pronunciation::{
    HomographSight, persian_homographs, persian_parts, persian_tags, replace_persian_model,
};
pub use pronunciation::{Pronunciation, SymbolSource, Uncertain, WordCounts};
pub use symbols::{SymbolId, SymbolTable, TABLE_VERSION, Transcript, ZWNJ};
pub use words::{Sentence, Word};

use detect::Detector;
use lexicon::Lexicon;
use phonemes::{Espeak, Plan};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tandem_disk::Fingerprint;
use tandem_settings::{SettingValue, ValueKind, settings};

/// Incremented when a text is processed differently than before: old caches are then rebuilt.
pub const TEXT_VERSION: u32 = 7;

settings! {
    /// Settings of the text front end.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct TextConfig in "text" {
        /// Languages of the corpus, such as en,fa
        // The first one is used for texts without letters.
        languages: Vec<Language> = vec![Language::English, Language::Persian], "--languages TAGS" {
            // The help names examples.
            shows_default: false,
            heading: CORPUS,
            myxtts: &["m.languages"],
        }
        /// Symbols of the model: `auto` (built-in phonemes where a language has them, else characters),
        /// `characters`, `built-in`, `built-in-english` (English only, else characters), or `espeak`
        /// (phonemes of the program espeak-ng)
        // The name up to version 2: configuration files and checkpoints may have it.
        #[serde(alias = "symbols")]
        pronunciation: Pronunciation = Pronunciation::Auto, "--pronunciation SOURCE" {
            names_words: true,
            heading: CORPUS,
        }
        /// Pronunciation lexicon: lines of `word<TAB>spelling`
        lexicon: Option<PathBuf> = None, "--lexicon FILE" { heading: CORPUS }
        /// Keep vowel marks of Persian and Arabic text
        diacritics: DiacriticsPolicy = DiacriticsPolicy::Strip, "--keep-diacritics BOOL" {
            heading: CORPUS,
        }
        /// Equals `batch.max_text_length`: set only that key
        max_symbols: usize = 200, "" {}
    }
}

/// The part of the help.
const CORPUS: &str = "Corpus";

/// Whether vowel signs in Arabic script are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiacriticsPolicy {
    /// Removed, because most texts do not have them. Persian keeps the tanvin of «حتماً».
    #[default]
    Strip,
    /// Kept, for corpora that have them throughout.
    Keep,
}

/// The flag is a switch, a file has words.
impl SettingValue for DiacriticsPolicy {
    const KIND: ValueKind = ValueKind::Switch;
    const FILE_WORDS: &'static [&'static str] = &["strip", "keep"];

    fn parse(text: &str) -> Result<DiacriticsPolicy, String> {
        bool::parse(text).map(|kept| match kept {
            true => DiacriticsPolicy::Keep,
            false => DiacriticsPolicy::Strip,
        })
    }

    fn text(&self) -> String {
        (*self == DiacriticsPolicy::Keep).text()
    }
}

/// How the language of a text was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Detection {
    /// The corpus or the user named it.
    Given,
    /// Its letters belong to one configured language only.
    Script,
    /// The most probable of several configured languages that share its letters.
    Statistics,
    /// The text has no letters: the first configured language.
    Default,
}

/// The result of the front end for one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessedText {
    pub language: Language,
    pub detected: Detection,
    /// The text with numbers and abbreviations as words.
    pub normalized: String,
    /// IPA, where the language has phonemes.
    pub phonemes: Option<String>,
    /// Words whose built-in phonemes were guessed, or which have none.
    pub uncertain: Uncertain,
    /// The input of the model.
    pub transcript: Transcript,
}

/// Processes texts with one set of settings. Shared by all workers.
pub struct FrontEnd {
    config: TextConfig,
    detector: Detector,
    lexicon: Lexicon,
    table: SymbolTable,
    /// By [`Language::index`].
    sources: [SymbolSource; Language::ALL.len()],
    espeak: Option<Espeak>,
    pronounce: Option<Box<dyn Pronounce>>,
}

impl FrontEnd {
    /// Reads the lexicon, and finds espeak-ng if it is needed.
    pub fn new(config: &TextConfig) -> Result<Self, TextError> {
        let table = SymbolTable::standard();
        let lexicon = match &config.lexicon {
            Some(path) => Lexicon::read(path, &config.languages, config.diacritics, &table)?,
            None => Lexicon::default(),
        };
        Self::build(config, table, lexicon)
    }

    /// Like [`Self::new`], with the text of a lexicon that was read before. [`TextConfig::lexicon`] is
    /// used in error messages only; no file is read.
    pub fn with_lexicon(config: &TextConfig, lexicon: &str) -> Result<Self, TextError> {
        let table = SymbolTable::standard();
        let path = config.lexicon.clone().unwrap_or_default();
        let (languages, policy) = (&config.languages, config.diacritics);
        let lexicon = Lexicon::parse(lexicon.to_owned(), &path, languages, policy, &table)?;
        Self::build(config, table, lexicon)
    }

    fn build(config: &TextConfig, table: SymbolTable, lexicon: Lexicon) -> Result<Self, TextError> {
        let mut sources = [SymbolSource::Characters; Language::ALL.len()];
        for language in &config.languages {
            sources[language.index()] = config.pronunciation.source(*language)?;
        }
        let espeak = match config.pronunciation {
            Pronunciation::Espeak => Some(Espeak::find()?),
            _ => None,
        };
        Ok(Self {
            config: config.clone(),
            detector: Detector::new(&config.languages)?,
            lexicon,
            table,
            sources,
            espeak,
            pronounce: None,
        })
    }

    /// The text of the lexicon; `None` without a lexicon.
    pub fn lexicon(&self) -> Option<&str> {
        Some(self.lexicon.text()).filter(|text| !text.is_empty())
    }

    /// Adds a hook for ezafe, homographs or names.
    pub fn with_pronounce(mut self, hook: Box<dyn Pronounce>) -> Self {
        self.pronounce = Some(hook);
        self
    }

    /// The symbol table; it is saved with the model.
    pub fn table(&self) -> &SymbolTable {
        &self.table
    }

    /// What the symbols of each configured language are.
    pub fn sources(&self) -> impl Iterator<Item = (Language, SymbolSource)> {
        self.config.languages.iter().map(|language| (*language, self.source(*language)))
    }

    fn source(&self, language: Language) -> SymbolSource {
        self.sources[language.index()]
    }

    pub fn max_symbols(&self) -> usize {
        self.config.max_symbols
    }

    /// Changes whenever a text may be processed differently; part of the cache key.
    pub fn fingerprint(&self) -> [u8; 16] {
        let TextConfig { languages, pronunciation: _, diacritics, lexicon: _, max_symbols } =
            &self.config;
        // What is used counts, not whether it was asked for or chosen.
        let sources: Vec<_> = self.sources().map(|(_, source)| source).collect();
        let given = self.uses_given_phonemes();
        let settings = format!("{languages:?} {sources:?} {given} {diacritics:?} {max_symbols}");
        let built_in = match sources.contains(&SymbolSource::BuiltIn) {
            true => pronunciation::fingerprint(),
            false => [0; 3],
        };
        let version = self.espeak.as_ref().map_or("", Espeak::version);
        let hook = self.pronounce.as_ref().map_or_else(String::new, |hook| hook.name());
        let fingerprint = Fingerprint::of_parts(&[
            &TEXT_VERSION.to_le_bytes()[..],
            settings.as_bytes(),
            self.lexicon.text().as_bytes(),
            self.table.contents().as_bytes(),
            version.as_bytes(),
            hook.as_bytes(),
            bytemuck::bytes_of(&built_in),
        ]);
        fingerprint.0
    }

    /// Processes one text.
    pub fn read(&self, raw: &str, language: Option<Language>) -> Result<ProcessedText, TextError> {
        let mut draft = self.draft(raw, language)?;
        if let (Some(espeak), Some(plan)) = (&self.espeak, &draft.plan) {
            let clauses: Vec<_> = plan.clauses().map(str::to_owned).collect();
            let answers = espeak.read(draft.language, &clauses)?;
            draft.phonemes = Some(plan.join(&mut answers.into_iter()));
        }
        self.finish(draft)
    }

    /// Like [`Self::read`], without the signs that the voice does not know; they are returned. A letter or a digit is never left out.
    pub fn read_known(
        &self,
        raw: &str,
        language: Option<Language>,
    ) -> Result<(ProcessedText, Vec<char>), TextError> {
        let (mut text, mut skipped) = (raw.to_owned(), Vec::new());
        loop {
            let (symbol, position) = match self.read(&text, language) {
                Err(TextError::UnknownSymbol { symbol, position }) => (symbol, position),
                other => return other.map(|read| (read, skipped)),
            };
            let sign = text.chars().nth(position - 1).filter(|sign| !sign.is_ascii_alphanumeric());
            let Some(sign) = sign.filter(|sign| !sign.is_whitespace()) else {
                return Err(TextError::UnknownSymbol { symbol, position });
            };
            text = text.replace(sign, " ");
            skipped.push(sign);
        }
    }

    /// Processes many texts; espeak-ng is started once per language. The outer error
    /// stops the run; an inner error is an unusable row.
    pub fn read_many(
        &self,
        texts: &[(&str, Option<Language>)],
    ) -> Result<Vec<Result<ProcessedText, TextError>>, TextError> {
        let drafts = texts.iter().map(|(raw, language)| self.draft(raw, *language));
        let Some(espeak) = &self.espeak else {
            return Ok(drafts.map(|draft| self.finish(draft?)).collect());
        };
        let mut drafts: Vec<_> = drafts.collect();
        for language in self.detector.languages() {
            let of_language = drafts.iter_mut().filter_map(|draft| {
                let draft = draft.as_mut().ok().filter(|draft| draft.language == *language)?;
                Some((draft.plan.as_ref()?, &mut draft.phonemes))
            });
            let plans: Vec<(&Plan, &mut Option<String>)> = of_language.collect();
            let clauses: Vec<_> =
                plans.iter().flat_map(|(plan, _)| plan.clauses()).map(str::to_owned).collect();
            let mut answers = espeak.read(*language, &clauses)?.into_iter();
            for (plan, phonemes) in plans {
                *phonemes = Some(plan.join(&mut answers));
            }
        }
        Ok(drafts.into_iter().map(|draft| self.finish(draft?)).collect())
    }

    /// Whether many texts at once are read faster than one by one: a program is started for them.
    pub fn reads_in_batches(&self) -> bool {
        self.espeak.is_some()
    }

    /// Whether phonemes that come with a text are used: not where characters were asked for.
    pub fn uses_given_phonemes(&self) -> bool {
        self.config.pronunciation != Pronunciation::Characters
    }

    /// Processes a text whose phonemes are given. They are its symbols as they are written, without
    /// the slashes or brackets around them; the text gives the language only.
    pub fn read_given(
        &self,
        raw: &str,
        language: Option<Language>,
        phonemes: &str,
    ) -> Result<ProcessedText, TextError> {
        let (language, detected) = self.language(raw, language)?;
        let phonemes = bare(phonemes);
        let transcript =
            Transcript::parse(&phonemes, &self.table).map_err(|error| match error {
                TextError::UnknownSymbol { symbol, position } => {
                    TextError::UnknownPhoneme { symbol, position }
                }
                other => other,
            })?;
        self.finish(Draft {
            language,
            detected,
            normalized: normalize(raw, language, self.config.diacritics),
            transcript,
            plan: None,
            phonemes: Some(phonemes),
            uncertain: Uncertain::default(),
        })
    }

    /// All steps before the phonemes of espeak-ng.
    fn draft(&self, raw: &str, given: Option<Language>) -> Result<Draft, TextError> {
        if raw.trim().is_empty() {
            return Err(TextError::Empty);
        }
        let (language, detected) = self.language(raw, given)?;
        let marked = normalize_marked(raw, language, self.config.diacritics);
        let mut normalized = words::without_marks(&marked).into_owned();
        let source = self.source(language);
        if source == SymbolSource::Characters && marked.contains(words::PHONEMES_BEGIN) {
            return Err(TextError::PhonemesInCharacters { language });
        }
        let (mut plan, mut phonemes, mut uncertain) = (None, None, Uncertain::default());
        let changes_words = !self.lexicon.is_empty() || self.pronounce.is_some();
        if changes_words || source != SymbolSource::Characters {
            let mut sentences = self.look_up(&marked, language);
            if changes_words {
                normalized = sentences.iter().map(Sentence::to_string).collect();
            }
            // The symbols have no vowel signs, but a written ezafe is spoken.
            if language == Language::Persian && source == SymbolSource::BuiltIn {
                pronunciation::mark_ezafe(&mut sentences, raw, || {
                    normalize(raw, language, DiacriticsPolicy::Keep)
                });
            }
            match source {
                SymbolSource::Characters => {}
                SymbolSource::Espeak => plan = Some(Plan::of(&sentences)),
                SymbolSource::BuiltIn => {
                    phonemes = Some(pronunciation::read(language, &sentences, &mut uncertain));
                }
            }
        }
        let nothing = || TextError::NothingToSay { text: raw.trim().chars().take(40).collect() };
        if normalized.is_empty() {
            return Err(nothing());
        }
        let transcript =
            Transcript::parse(&normalized, &self.table).map_err(|error| in_raw_text(error, raw))?;
        if !normalized.chars().any(char::is_alphabetic) {
            return Err(nothing());
        }
        Ok(Draft { language, detected, normalized, transcript, plan, phonemes, uncertain })
    }

    fn language(
        &self,
        raw: &str,
        given: Option<Language>,
    ) -> Result<(Language, Detection), TextError> {
        match given {
            None => self.detector.detect(raw),
            Some(language) if self.config.languages.contains(&language) => {
                Ok((language, Detection::Given))
            }
            Some(language) => Err(TextError::LanguageNotConfigured {
                language,
                configured: self.config.languages.clone(),
            }),
        }
    }

    fn look_up(&self, normalized: &str, language: Language) -> Vec<Sentence> {
        let mut sentences = words::sentences(normalized);
        for sentence in &mut sentences {
            self.lexicon.apply(language, sentence);
            if let Some(hook) = &self.pronounce {
                hook.pronounce(language, sentence);
            }
        }
        sentences
    }

    fn finish(&self, draft: Draft) -> Result<ProcessedText, TextError> {
        let transcript = match &draft.phonemes {
            Some(sounds) => Transcript::parse(sounds, &self.table)?,
            None => draft.transcript,
        };
        let limit = self.config.max_symbols;
        let symbols = transcript.len().saturating_sub(Transcript::EDGES);
        if symbols > limit {
            return Err(TextError::TooLong { symbols, limit });
        }
        let Draft { language, detected, normalized, phonemes, uncertain, .. } = draft;
        Ok(ProcessedText { language, detected, normalized, phonemes, uncertain, transcript })
    }
}

/// An intermediate result.
struct Draft {
    language: Language,
    detected: Detection,
    normalized: String,
    transcript: Transcript,
    /// The input of espeak-ng, if it is used.
    plan: Option<Plan>,
    phonemes: Option<String>,
    uncertain: Uncertain,
}

/// Writes raw text as it is spoken in `language`. Unknown signs stay in the text.
pub fn normalize(raw: &str, language: Language, policy: DiacriticsPolicy) -> String {
    words::without_marks(&normalize_marked(raw, language, policy)).into_owned()
}

/// The same with the invisible marks of [`words`].
fn normalize_marked(raw: &str, language: Language, policy: DiacriticsPolicy) -> String {
    let folded = folding::fold(raw);
    match language {
        Language::English => english::normalize(&folded),
        Language::Persian => persian::normalize(&folded, policy),
        other => other::normalize(&folded, other, policy),
    }
}

/// Phonemes without `/.../` or `[...]` around them, and with single spaces.
fn bare(phonemes: &str) -> String {
    let inside = phonemes.trim();
    let slashes = inside.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    let brackets = inside.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let words = slashes.or(brackets).unwrap_or(inside).split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// Translates an error in normalised text to the position in the raw text.
fn in_raw_text(error: TextError, raw: &str) -> TextError {
    let TextError::UnknownSymbol { symbol, .. } = error else { return error };
    let position = folding::locate(raw, symbol);
    TextError::UnknownSymbol { symbol, position }
}

#[cfg(test)]
mod tests;
