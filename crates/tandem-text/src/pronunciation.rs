//! Phonemes without another program: which languages have them, and how words get them.
//!
//! In: the words of a normalised sentence. Out: the same words with phonemes (IPA), and which of
//! them were guessed or have none. Opens no file: the data is part of the program. A word without
//! phonemes keeps its characters. Next on the path: [`super::symbols`].

mod arpabet; // the phones of English
mod packed_lexicon; // the CMU dictionary
mod letter_to_sound; // unknown English words
mod inflection; // plurals, possessives, -ed, -ing, compounds
mod homographs; // read, lead, live: by their neighbours
mod english; // an English sentence
mod persian; // a Persian sentence: a list, forms by rule, ezafe

pub use persian::{HomographSight, replace_model as replace_persian_model};

use super::TextError;
use super::language::Language;
use super::words::{self, Sentence, Word};
use serde::{Deserialize, Deserializer, Serialize};
use tandem_settings::{SettingValue, ValueKind, words};

/// Where the symbols of a text come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pronunciation {
    /// Built-in phonemes for the languages that have them, characters for the others.
    #[default]
    Auto,
    /// Written letters.
    Characters,
    /// Built-in phonemes; a language without them is an error.
    BuiltIn,
    /// Built-in phonemes for English, characters for the others. [`Self::Auto`] was this up to version 2 of the voice
    /// format.
    BuiltInEnglish,
    /// Phonemes of the program espeak-ng, for every language.
    Espeak,
}

impl SettingValue for Pronunciation {
    const KIND: ValueKind = ValueKind::Word;
    const WORDS: &'static [&'static str] = words!(Pronunciation);

    fn parse(text: &str) -> Result<Pronunciation, String> {
        let known = Pronunciation::ALL.into_iter().find(|source| source.name() == text);
        known.ok_or_else(|| format!("expected {}", Pronunciation::WORDS.join(", ")))
    }

    fn text(&self) -> String {
        self.name().to_string()
    }
}

impl Pronunciation {
    pub const ALL: [Self; 5] =
        [Self::Auto, Self::Characters, Self::BuiltIn, Self::BuiltInEnglish, Self::Espeak];

    /// As it is typed and saved.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Characters => "characters",
            Self::BuiltIn => "built-in",
            Self::BuiltInEnglish => "built-in-english",
            Self::Espeak => "espeak",
        }
    }

    /// What is used for one language.
    pub fn source(self, language: Language) -> Result<SymbolSource, TextError> {
        match (self, language) {
            (Self::Characters, _) => Ok(SymbolSource::Characters),
            (Self::Espeak, _) => Ok(SymbolSource::Espeak),
            (Self::Auto, _) => Ok(Self::of_auto(language)),
            (Self::BuiltIn, Language::English | Language::Persian)
            | (Self::BuiltInEnglish, Language::English) => Ok(SymbolSource::BuiltIn),
            (Self::BuiltInEnglish, _) => Ok(SymbolSource::Characters),
            (Self::BuiltIn, _) => Err(TextError::NoBuiltIn { language }),
        }
    }

    /// What [`Self::Auto`] uses for a language.
    // Saved voices say `auto` too: another answer here needs another version of the voice format.
    pub fn of_auto(language: Language) -> SymbolSource {
        match language {
            Language::English | Language::Persian => SymbolSource::BuiltIn,
            _ => SymbolSource::Characters,
        }
    }
}

impl<'de> Deserialize<'de> for Pronunciation {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        const NAMES: [&str; 5] = ["auto", "characters", "built-in", "built-in-english", "espeak"];
        let name = String::deserialize(from)?;
        // Up to version 2 of the text front end, all phonemes were those of espeak-ng.
        let name = if name == "phonemes" { "espeak" } else { &name };
        let known = Self::ALL.into_iter().find(|source| source.name() == name);
        known.ok_or_else(|| serde::de::Error::unknown_variant(name, &NAMES))
    }
}

impl std::fmt::Display for Pronunciation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What the symbols of one language are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SymbolSource {
    Characters,
    BuiltIn,
    Espeak,
}

impl std::fmt::Display for SymbolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Characters => "characters",
            Self::BuiltIn => "built-in phonemes",
            Self::Espeak => "phonemes of espeak-ng",
        })
    }
}

/// Words that no list has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Uncertain {
    /// All words of the text that were read with built-in phonemes.
    #[serde(skip)]
    pub words: usize,
    /// Read by the letter-to-sound model.
    pub guessed: Vec<String>,
    /// Without phonemes: their symbols are characters.
    pub as_characters: Vec<String>,
    /// Persian words with an ezafe that is not written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ezafe: Vec<String>,
}

impl Uncertain {
    pub fn counts(&self) -> WordCounts {
        let [words, guessed, as_characters] =
            [self.words, self.guessed.len(), self.as_characters.len()].map(|count| count as u64);
        WordCounts { words, guessed, as_characters }
    }
}

/// How many words were read with built-in phonemes, and how many of them no list has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordCounts {
    pub words: u64,
    pub guessed: u64,
    pub as_characters: u64,
}

impl std::ops::AddAssign for WordCounts {
    fn add_assign(&mut self, more: Self) {
        self.words += more.words;
        self.guessed += more.guessed;
        self.as_characters += more.as_characters;
    }
}

/// The text of sentences in phonemes. Words that have phonemes already keep them.
pub fn read(language: Language, sentences: &[Sentence], uncertain: &mut Uncertain) -> String {
    let mut out = String::with_capacity(64);
    for sentence in sentences {
        out.push_str(&sentence.lead);
        uncertain.words += sentence.words.len();
        // The ezafe is decided for a whole sentence.
        let persian = match language {
            Language::Persian => persian::read(&sentence.words),
            _ => Vec::new(),
        };
        for (place, word) in sentence.words.iter().enumerate() {
            match (&word.phonemes, persian.get(place)) {
                (Some(phonemes), _) => out.push_str(phonemes),
                (None, Some(said)) => persian_word(word, said, &mut out, uncertain),
                (None, None) => {
                    word_phonemes(language, &sentence.words, place, &mut out, uncertain)
                }
            }
            // A hyphen joins two words into one.
            out.push_str(if word.tail == "-" { "" } else { &word.tail });
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Takes the kasre at the ends of Persian words, and the fathe of «وَ», from the text with its vowel signs, where it has
/// the same words.
pub fn mark_ezafe(sentences: &mut [Sentence], raw: &str, with_signs: impl Fn() -> String) {
    const KASRE: char = '\u{650}';
    const VA: &str = "و\u{64E}";
    if !raw.contains(KASRE) && !raw.contains(VA) {
        return;
    }
    let marked = words::sentences(&with_signs());
    let count = |sentences: &[Sentence]| -> Vec<usize> {
        sentences.iter().map(|sentence| sentence.words.len()).collect()
    };
    if count(&marked) != count(sentences) {
        return;
    }
    let words = sentences.iter_mut().flat_map(|sentence| &mut sentence.words);
    for (word, marked) in words.zip(marked.iter().flat_map(|sentence| &sentence.words)) {
        if marked.text.ends_with(KASRE) && persian::is_persian(&word.text) {
            word.text.push(KASRE);
        } else if marked.text == VA && word.text == "و" {
            word.text.push_str(&VA['و'.len_utf8()..]);
        }
    }
}

fn word_phonemes(
    language: Language,
    words: &[Word],
    place: usize,
    out: &mut String,
    uncertain: &mut Uncertain,
) {
    let text = &words[place].text;
    let outcome = match language {
        Language::English => english::read(words, place, out),
        _ => Outcome::Unknown,
    };
    note(text, outcome, out, uncertain);
}

fn persian_word(word: &Word, said: &persian::Said, out: &mut String, uncertain: &mut Uncertain) {
    // A word of other letters alone has no sounds.
    let outcome = if said.phonemes.is_empty() { Outcome::Unknown } else { said.outcome };
    out.push_str(&said.phonemes);
    note(&word.text, outcome, out, uncertain);
    if said.ezafe {
        uncertain.ezafe.push(word.text.clone());
    }
}

fn note(text: &str, outcome: Outcome, out: &mut String, uncertain: &mut Uncertain) {
    match outcome {
        Outcome::Known => {}
        Outcome::Guessed => uncertain.guessed.push(text.to_owned()),
        Outcome::Unknown => {
            out.push_str(text);
            uncertain.as_characters.push(text.to_owned());
        }
    }
}

/// How the phonemes of a word were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Known,
    Guessed,
    /// Nothing was written.
    Unknown,
}

/// How the English dictionary has a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedAs {
    Word,
    /// Its phones are the names of its letters.
    Letters,
}

/// How the English dictionary, with the forms of its words, has `word`.
pub fn listed_english(word: &str) -> Option<ListedAs> {
    english::listed(word)
}

/// The IPA of an English word in the names of phones: `HH AH0 L OW1`.
pub fn arpabet_ipa(names: &str) -> Option<String> {
    arpabet::ipa_of_names(names)
}

/// What the Persian models see of a normalised text: for each sentence the text, class, last sounds and what follows of
/// each part, and its listed phonemes. For the script that trains them.
pub fn persian_parts(normalized: &str) -> Vec<Vec<[String; 5]>> {
    let sentences = words::sentences(normalized);
    let row = |(part, listed): (_, Option<String>)| -> [String; 5] {
        let persian::Part { text, class, sounds, after } = part;
        [text, class, sounds, after.to_owned(), listed.unwrap_or_default()]
    };
    let rows =
        |sentence: &Sentence| persian::parts_of(&sentence.words).into_iter().map(row).collect();
    sentences.iter().map(rows).collect()
}

/// What the trained weights see of the words with several readings: for each sentence.
#[doc(hidden)]
pub fn persian_homographs(normalized: &str) -> Vec<Vec<HomographSight>> {
    let sentences = words::sentences(normalized);
    sentences.iter().map(|sentence| persian::homographs_of(&sentence.words)).collect()
}

/// What the model of the ezafe says of each part of a normalised text. For the script that trains it.
pub fn persian_tags(normalized: &str) -> Vec<bool> {
    words::sentences(normalized)
        .iter()
        .flat_map(|sentence| persian::tags_of(&sentence.words))
        .collect()
}

/// The symbols that the phonemes of a language consist of, without marks; none for a language without phonemes.
pub fn inventory(language: Language) -> Option<String> {
    match language {
        Language::English => Some(arpabet::symbols()),
        Language::Persian => Some(persian::SYMBOLS.into()),
        _ => None,
    }
}

/// Identifies the built-in data: part of the cache key.
pub fn fingerprint() -> [u64; 3] {
    [packed_lexicon::fingerprint(), letter_to_sound::fingerprint(), persian::fingerprint()]
}

#[cfg(test)]
mod tests;
