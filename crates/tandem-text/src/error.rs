//! Errors of a text, a lexicon or the phonemiser, with hints.

use super::language::{Language, Script};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tandem_units::Hint;

/// Why a text has no [`super::Transcript`], or why the front end cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// Nothing but white space.
    #[error("the text is empty")]
    Empty,
    /// Only punctuation.
    #[error("the text has nothing to say: `{text}`")]
    NothingToSay { text: String },
    /// A character without a symbol.
    #[error(
        "`{}` (U+{:04X}) at character {position} is not a symbol the voice knows",
        symbol.escape_debug(), u32::from(*symbol)
    )]
    UnknownSymbol {
        symbol: char,
        /// Which character of the text, counted from 1.
        position: usize,
    },
    /// A symbol of given phonemes that the table does not have.
    #[error(
        "`{}` (U+{:04X}) at character {position} of the phonemes is not a symbol the voice knows",
        symbol.escape_debug(), u32::from(*symbol)
    )]
    UnknownPhoneme {
        symbol: char,
        /// Which character of the phonemes, counted from 1.
        position: usize,
    },
    /// A digit in a language without number rules.
    /// `[HH AH0 L OW1]` in a text whose symbols are letters.
    #[error(
        "the text has phonemes in brackets, and in `{language}` the symbols of this voice are characters"
    )]
    PhonemesInCharacters { language: Language },
    #[error("the text has {symbols} symbols, the limit is {limit}")]
    TooLong { symbols: usize, limit: usize },
    /// Not a language of [`Language::ALL`].
    #[error("`{given}` is not a language Tandem knows")]
    UnknownLanguage { given: String },
    /// A supported language that this corpus does not list.
    #[error("the text is marked `{language}`, the configured languages are {}", listed(configured))]
    LanguageNotConfigured { language: Language, configured: Vec<Language> },
    /// No configured language is written in these letters.
    #[error("the text is in {script} script, the configured languages are {}", listed(configured))]
    ScriptNotConfigured { script: Script, configured: Vec<Language> },
    /// The list of languages is empty.
    #[error("no language is configured")]
    NoLanguages,
    /// The lexicon cannot be opened or is not UTF-8.
    #[error("cannot read lexicon `{}`", path.display())]
    Lexicon {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("line {line} of lexicon `{}`: {fault}", path.display())]
    LexiconLine {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        fault: LexiconFault,
    },
    /// A saved symbol table does not match this version.
    #[error("the symbol table cannot be used: {reason}")]
    SymbolTable { reason: String },
    /// Built-in phonemes were asked for by name.
    #[error("there are no built-in phonemes for `{language}`")]
    NoBuiltIn { language: Language },
    /// espeak-ng was asked for and is not there.
    #[error("phonemes need the program `espeak-ng`, which cannot be started")]
    EspeakMissing {
        #[source]
        source: io::Error,
    },
    #[error("cannot exchange text with espeak-ng")]
    EspeakExchange {
        #[source]
        source: io::Error,
    },
    #[error("espeak-ng failed ({status}): {message}")]
    EspeakFailed { status: String, message: String },
    #[error("espeak-ng did not finish {texts} pieces of text within {} s", limit.as_secs())]
    EspeakTimeout { texts: usize, limit: Duration },
}

/// What is wrong with a line of a lexicon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LexiconFault {
    /// Too few or too many columns.
    #[error("has {found} columns, expected 2 or 3 separated by tabs")]
    Columns { found: usize },
    /// The first column is not exactly one word.
    #[error("`{word}` is not one word")]
    Word { word: String },
    /// The second column is empty.
    #[error("`{word}` has no spelling")]
    NoSpelling { word: String },
    /// The second column contains a character without a symbol.
    #[error("`{}` (U+{:04X}) is not a symbol the voice knows", symbol.escape_debug(), u32::from(*symbol))]
    Symbol { symbol: char },
    /// The third column is not a language.
    #[error("`{given}` is not a language Tandem knows")]
    Language { given: String },
    /// The word already has an entry of the same kind.
    #[error("`{word}` was given on line {first} already")]
    Repeated { word: String, first: usize },
}

impl Hint for LexiconFault {}

impl TextError {
    /// True if every other text would fail as well: the run stops instead of rejecting rows.
    pub fn stops_the_run(&self) -> bool {
        !matches!(
            self,
            Self::Empty
                | Self::NothingToSay { .. }
                | Self::UnknownSymbol { .. }
                | Self::UnknownPhoneme { .. }
                | Self::PhonemesInCharacters { .. }
                | Self::TooLong { .. }
                | Self::UnknownLanguage { .. }
                | Self::LanguageNotConfigured { .. }
                | Self::ScriptNotConfigured { .. }
        )
    }
}

impl Hint for TextError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Empty | Self::NothingToSay { .. } => {
                "write what is spoken in this recording, or remove the row".into()
            }
            Self::PhonemesInCharacters { .. } => "write the word as it is spelled".into(),
            Self::UnknownSymbol { .. } => {
                "write it as it is spoken, or remove it; `tandem text` shows what a text becomes"
                    .into()
            }
            Self::UnknownPhoneme { .. } => {
                "write IPA, as in docs/languages.md, or empty the field: the text is read then"
                    .into()
            }
            Self::TooLong { .. } => {
                "split the recording at a pause, or raise `--max-text-length`".into()
            }
            Self::UnknownLanguage { .. } => {
                format!("use one of {}; `tandem text --list` names them", listed(&Language::ALL))
            }
            Self::LanguageNotConfigured { language, configured } => {
                format!("add it: `--languages {}`", extended(configured, *language))
            }
            Self::ScriptNotConfigured { script, configured } => script_hint(*script, configured),
            Self::NoLanguages => "name at least one: `--languages en,fa`".into(),
            Self::Lexicon { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
                "save the file as UTF-8".into()
            }
            Self::Lexicon { .. } => "check the path given to `--lexicon`".into(),
            Self::LexiconLine { .. } => {
                "a line is `word<TAB>spelling` or `word<TAB>/phonemes/`, with the language as an \
                 optional third column"
                    .into()
            }
            Self::SymbolTable { .. } => "use the table that was saved with the model".into(),
            Self::NoBuiltIn { .. } => "use `--pronunciation auto`: characters where there are no \
                 phonemes; or `--pronunciation espeak`"
                .into(),
            Self::EspeakMissing { .. } => {
                "install espeak-ng (for example `apt install espeak-ng`), or leave out \
                 `--pronunciation espeak`"
                    .into()
            }
            Self::EspeakExchange { .. } => {
                "check that the temporary directory has space and may be written to".into()
            }
            Self::EspeakFailed { .. } => {
                "run `espeak-ng --ipa -q hello` by hand to see whether it works, or leave out \
                 `--pronunciation espeak`"
                    .into()
            }
            Self::EspeakTimeout { .. } => {
                "see whether the machine is overloaded, or leave out `--pronunciation espeak`"
                    .into()
            }
        })
    }
}

fn script_hint(script: Script, configured: &[Language]) -> String {
    match Language::ALL.into_iter().find(|language| language.script() == script) {
        Some(language) => {
            format!(
                "add its language, for example `--languages {}`",
                extended(configured, language)
            )
        }
        None => format!("no supported language is written in {script} script; remove the row"),
    }
}

fn extended(configured: &[Language], language: Language) -> String {
    let tags: Vec<_> = configured.iter().chain([&language]).map(|l| l.tag()).collect();
    tags.join(",")
}

fn listed(languages: &[Language]) -> String {
    let tags: Vec<_> = languages.iter().map(|language| language.tag()).collect();
    tags.join(", ")
}
