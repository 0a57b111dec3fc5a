//! The user's spellings and pronunciations.
//!
//! In: a UTF-8 file of lines `word<TAB>spelling` or `word<TAB>/phonemes/`, with the language as
//! an optional third column; `#` begins a comment line. Out: [`Lexicon`], applied to whole
//! words of normalised text. An invalid line stops the run with its number.

use super::error::LexiconFault;
use super::language::Language;
use super::symbols::SymbolTable;
use super::words::{Sentence, in_word};
use super::{DiacriticsPolicy, TextError, normalize};
use std::collections::HashMap;
use std::path::Path;

/// The entries by language and word.
#[derive(Clone, Debug, Default)]
pub struct Lexicon {
    entries: HashMap<(Language, String), Entry>,
    text: String,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    spelling: Option<Given>,
    phonemes: Option<Given>,
}

#[derive(Clone, Debug)]
struct Given {
    text: String,
    /// The line has a language; it has priority over one without.
    own: bool,
}

impl Lexicon {
    /// Reads the file. Words and spellings are normalised as the text will be.
    pub fn read(
        path: &Path,
        languages: &[Language],
        policy: DiacriticsPolicy,
        table: &SymbolTable,
    ) -> Result<Self, TextError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TextError::Lexicon { path: path.to_owned(), source })?;
        Self::parse(text, path, languages, policy, table)
    }

    /// Parses the text of a file; `path` is used in error messages.
    pub fn parse(
        text: String,
        path: &Path,
        languages: &[Language],
        policy: DiacriticsPolicy,
        table: &SymbolTable,
    ) -> Result<Self, TextError> {
        let mut lexicon = Self::default();
        let mut seen = HashMap::new();
        for (index, line) in text.trim_start_matches('\u{FEFF}').lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            Line::parse(line, table)
                .and_then(|parsed| parsed.check_new(index + 1, &mut seen))
                .and_then(|parsed| lexicon.add(&parsed, languages, policy, table))
                .map_err(|fault| TextError::LexiconLine {
                    path: path.to_owned(),
                    line: index + 1,
                    fault,
                })?;
        }
        Ok(Self { text, ..lexicon })
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The text of the file, for a fingerprint and for the saved model.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Replaces the spelling and phonemes of words with an entry.
    pub fn apply(&self, language: Language, sentence: &mut Sentence) {
        for word in &mut sentence.words {
            let Some(entry) = self.entries.get(&(language, word.text.clone())) else { continue };
            if let Some(phonemes) = &entry.phonemes {
                word.phonemes = Some(phonemes.text.clone());
            }
            if let Some(spelling) = &entry.spelling {
                word.text.clone_from(&spelling.text);
            }
        }
    }

    fn add(
        &mut self,
        line: &Line<'_>,
        languages: &[Language],
        policy: DiacriticsPolicy,
        table: &SymbolTable,
    ) -> Result<(), LexiconFault> {
        let wanted: Vec<_> = match line.language {
            Some(language) => vec![language],
            None => languages.to_vec(),
        };
        let mut used = false;
        for language in wanted {
            let word = normalize(line.word, language, policy);
            if word.is_empty() || !word.chars().all(in_word) {
                continue;
            }
            used = true;
            let text = match line.value {
                Value::Phonemes(phonemes) => phonemes.to_owned(),
                // Vowel signs are kept: they are a common reason for an entry.
                Value::Spelling(text) => normalize(text, language, DiacriticsPolicy::Keep),
            };
            known(&text, table)?;
            let given = Given { text, own: line.language.is_some() };
            self.entries.entry((language, word)).or_default().set(&line.value, given);
        }
        if used { Ok(()) } else { Err(LexiconFault::Word { word: line.word.into() }) }
    }
}

impl Entry {
    fn set(&mut self, value: &Value<'_>, given: Given) {
        let entry = match value {
            Value::Spelling(_) => &mut self.spelling,
            Value::Phonemes(_) => &mut self.phonemes,
        };
        if given.own || entry.as_ref().is_none_or(|old| !old.own) {
            *entry = Some(given);
        }
    }
}

struct Line<'a> {
    word: &'a str,
    value: Value<'a>,
    language: Option<Language>,
}

enum Value<'a> {
    Spelling(&'a str),
    Phonemes(&'a str),
}

impl<'a> Line<'a> {
    fn parse(line: &'a str, table: &SymbolTable) -> Result<Self, LexiconFault> {
        let columns: Vec<_> = line.split('\t').map(str::trim).collect();
        let (word, value, language) = match columns.as_slice() {
            [word, value] => (*word, *value, None),
            [word, value, language] => (*word, *value, Some(*language).filter(|l| !l.is_empty())),
            _ => return Err(LexiconFault::Columns { found: columns.len() }),
        };
        let language = language
            .map(|given| {
                given.parse().map_err(|_| LexiconFault::Language { given: given.to_owned() })
            })
            .transpose()?;
        let inner = value.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let value = inner.map_or(Value::Spelling(value), |text| Value::Phonemes(text.trim()));
        if matches!(value, Value::Spelling("") | Value::Phonemes("")) {
            return Err(LexiconFault::NoSpelling { word: word.into() });
        }
        if let Value::Phonemes(text) = value {
            known(text, table)?;
        }
        Ok(Self { word, value, language })
    }

    fn check_new(
        self,
        number: usize,
        seen: &mut HashMap<(String, bool, Option<Language>), usize>,
    ) -> Result<Self, LexiconFault> {
        let spelled = matches!(self.value, Value::Spelling(_));
        let key = (self.word.to_lowercase(), spelled, self.language);
        match seen.insert(key, number) {
            Some(first) => Err(LexiconFault::Repeated { word: self.word.into(), first }),
            None => Ok(self),
        }
    }
}

fn known(text: &str, table: &SymbolTable) -> Result<(), LexiconFault> {
    match text.chars().find(|symbol| table.id(*symbol).is_none()) {
        Some(symbol) => Err(LexiconFault::Symbol { symbol }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::sentences;
    use super::*;
    use std::io::Write;

    fn read(contents: &str) -> Result<Lexicon, TextError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(contents.as_bytes()).unwrap();
        let languages = [Language::English, Language::Persian];
        Lexicon::read(file.path(), &languages, DiacriticsPolicy::Strip, &SymbolTable::standard())
    }

    #[track_caller]
    fn check(contents: &str, language: Language, text: &str, changed: &str) {
        let lexicon = read(contents).unwrap();
        let mut found = sentences(text);
        found.iter_mut().for_each(|sentence| lexicon.apply(language, sentence));
        assert_eq!(found.iter().map(Sentence::to_string).collect::<String>(), changed);
    }

    #[track_caller]
    fn check_fault(contents: &str, number: usize, fault: LexiconFault) {
        match read(contents) {
            Err(TextError::LexiconLine { line, fault: found, .. }) => {
                assert_eq!((line, found), (number, fault));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn whole_words_are_replaced_and_parts_are_not() {
        let file = "# names\nnginx\tengine x\nQt\tcute\n";
        check(file, Language::English, "nginx, qt and qtab.", "engine x, cute and qtab.");
    }

    #[test]
    fn arabic_spellings_of_a_word_find_its_entry() {
        check("علي\tعَلی\n", Language::Persian, "علی آمد", "عَلی آمد");
    }

    #[test]
    fn an_entry_with_a_language_has_priority() {
        let file = "data\tday ta\ten\ndata\tda ta\n";
        check(file, Language::English, "data", "day ta");
        check(file, Language::Persian, "data", "da ta");
    }

    #[test]
    fn phonemes_do_not_change_the_spelling() {
        check("tomato\t/təmˈɑːtoʊ/\n", Language::English, "a tomato", "a tomato");
        let lexicon = read("tomato\t/təmˈɑːtoʊ/\n").unwrap();
        let mut found = sentences("tomato");
        lexicon.apply(Language::English, &mut found[0]);
        assert_eq!(found[0].words[0].phonemes.as_deref(), Some("təmˈɑːtoʊ"));
    }

    #[test]
    fn a_bad_line_is_named_with_its_number() {
        check_fault("a\tb\nword\n", 2, LexiconFault::Columns { found: 1 });
        check_fault("two words\tx\n", 1, LexiconFault::Word { word: "two words".into() });
        check_fault("\n\nx\t\n", 3, LexiconFault::NoSpelling { word: "x".into() });
        check_fault("x\ta★\n", 1, LexiconFault::Symbol { symbol: '★' });
        check_fault("x\ty\tklingon\n", 1, LexiconFault::Language { given: "klingon".into() });
        check_fault("x\ty\nX\tz\n", 2, LexiconFault::Repeated { word: "X".into(), first: 1 });
    }

    #[test]
    fn a_missing_file_is_named() {
        let found = Lexicon::read(
            Path::new("no/such/lexicon"),
            &[Language::English],
            DiacriticsPolicy::Strip,
            &SymbolTable::standard(),
        );
        assert!(found.unwrap_err().to_string().contains("no/such/lexicon"));
    }
}
