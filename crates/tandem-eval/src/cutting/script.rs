//! The text of a long recording, as the aligner needs it.
//!
//! In: sentences, and the front end of the text. Out: [`Script`]: phrases of words of symbols. Marks, stress and length are
//! left out: a mark has no sound, and a pause may be anywhere between two words. Next: [`super::placement`].

use tandem_model::alignment::symbol_gaussians::SymbolKey;
use tandem_text::{FrontEnd, Language, SymbolTable};

/// Marks of a phoneme that have no frames of their own.
const MODIFIERS: &str =
    "ˈˌːˑʼʰʱʲʷˠˤ˞\u{200C}\u{303}\u{329}\u{325}\u{32A}\u{32F}\u{30A}\u{32C}\u{330}\u{361}\u{31D}";
/// Marks after which a sentence may be divided.
const CLAUSE_MARKS: &str = ",،;؛:–—";

/// A part of a sentence up to a mark.
#[derive(Clone, Debug)]
pub struct Phrase {
    /// Number of its sentence.
    pub sentence: usize,
    /// As written, with its mark.
    pub text: String,
    /// Not empty; each has symbols.
    pub words: Vec<Vec<SymbolKey>>,
}

impl Phrase {
    pub fn symbols(&self) -> impl Iterator<Item = SymbolKey> {
        self.words.iter().flatten().copied()
    }
}

/// A sentence whose text cannot be read, and why.
pub struct Unreadable {
    pub sentence: usize,
    pub why: String,
}

pub struct Script {
    pub phrases: Vec<Phrase>,
    pub unreadable: Vec<Unreadable>,
}

impl Script {
    pub fn read(front_end: &FrontEnd, sentences: &[String], language: Option<Language>) -> Script {
        let mut script = Script { phrases: Vec::new(), unreadable: Vec::new() };
        for (number, sentence) in sentences.iter().enumerate() {
            match phrases_of(front_end, sentence, number, language) {
                Ok(phrases) if phrases.is_empty() => {
                    let why = "no word in it can be said".into();
                    script.unreadable.push(Unreadable { sentence: number, why });
                }
                Ok(phrases) => script.phrases.extend(phrases),
                Err(error) => {
                    script.unreadable.push(Unreadable { sentence: number, why: error.to_string() });
                }
            }
        }
        script
    }
}

fn phrases_of(
    front_end: &FrontEnd,
    sentence: &str,
    number: usize,
    language: Option<Language>,
) -> Result<Vec<Phrase>, tandem_text::TextError> {
    let language = front_end.read(sentence, language)?.language;
    let mut phrases: Vec<Phrase> = Vec::new();
    for text in clauses(sentence) {
        let read = front_end.read(text, Some(language))?;
        let words = words_of(read.transcript.ids(), front_end.table(), language);
        match phrases.last_mut() {
            // A clause of marks belongs to the one before.
            Some(last) if words.is_empty() => {
                last.text = format!("{} {text}", last.text);
            }
            _ if words.is_empty() => {}
            _ => phrases.push(Phrase { sentence: number, text: text.into(), words }),
        }
    }
    Ok(phrases)
}

/// Pieces of a sentence, each ending with a mark that a space follows.
fn clauses(sentence: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut chars = sentence.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let spaced = chars.peek().is_some_and(|(_, next)| next.is_whitespace());
        if CLAUSE_MARKS.contains(c) && spaced {
            let end = at + c.len_utf8();
            pieces.push(sentence[start..end].trim());
            start = end;
        }
    }
    pieces.push(sentence[start..].trim());
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn words_of(
    ids: &[tandem_text::SymbolId],
    table: &SymbolTable,
    language: Language,
) -> Vec<Vec<SymbolKey>> {
    let mut words = vec![Vec::new()];
    for id in ids {
        match table.symbol(*id) {
            Some(symbol) if MODIFIERS.contains(symbol) => {}
            Some(symbol) if symbol.is_alphabetic() => {
                let last = words.last_mut().expect("never empty");
                last.push((language.index() as i32, i32::from(id.0)));
            }
            Some(' ') => words.push(Vec::new()),
            _ => {}
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_text::TextConfig;

    #[test]
    fn a_sentence_is_phrases_of_words_and_an_unknown_sign_is_named() {
        let front_end = FrontEnd::new(&TextConfig::default()).unwrap();
        let sentences = ["Yes, 1,000 men came: all of them.", "★", "«بله»، آمد."].map(String::from);
        let script = Script::read(&front_end, &sentences, None);
        let texts: Vec<&str> = script.phrases.iter().map(|phrase| &phrase.text[..]).collect();
        assert_eq!(texts, ["Yes,", "1,000 men came:", "all of them.", "«بله»،", "آمد."]);
        assert_eq!(script.phrases[1].words.len(), 4, "one thousand men came");
        assert_eq!((script.unreadable.len(), script.unreadable[0].sentence), (1, 1));
        assert!(script.unreadable[0].why.contains('★'), "{}", script.unreadable[0].why);
        assert_ne!(script.phrases[0].words[0][0].0, script.phrases[4].words[0][0].0, "languages");
    }
}
