//! A text to pieces that the voice can read: sentences, and parts of those that are too long.

use super::SynthesisError;
use tandem_data::text::sentences::split_sentences;
use tandem_data::text::{FrontEnd, Language, ProcessedText, TextError};

/// A sentence or a part of one, read.
pub struct Piece {
    /// As it stands in the text.
    pub text: String,
    /// The language it was read in.
    pub language: Language,
    /// What the voice gets.
    pub symbols: Vec<i32>,
    after: Silent,
}

/// What stands before a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silent {
    /// The end of a sentence.
    Long,
    /// The middle of one.
    Short,
}

impl Piece {
    /// Silence before it, as a share of a whole pause.
    pub fn silence_before(&self) -> f64 {
        match self.after {
            Silent::Long => 1.0,
            Silent::Short => 0.4,
        }
    }
}

/// All pieces of a text, and the parts that have nothing to say.
pub fn read(
    text: &str,
    language: Option<Language>,
    front_end: &FrontEnd,
) -> Result<(Vec<Piece>, Vec<String>), SynthesisError> {
    let (mut pieces, mut unsaid) = (Vec::new(), Vec::new());
    let mut after = Silent::Long;
    let mut waiting = split_sentences(text, front_end.max_symbols());
    waiting.reverse();
    while let Some(part) = waiting.pop() {
        if !part.contains(char::is_alphanumeric) {
            unsaid.push(part.to_owned());
            continue;
        }
        match front_end.read(part, language) {
            Ok(reading) => {
                pieces.push(piece(part, reading, after));
                let ended = part.trim_end_matches(['"', '\'', '”', '’', '»', ')', ']']);
                let whole = ended.ends_with(['.', '!', '?', '…', '؟', '؛', '۔']);
                after = if whole { Silent::Long } else { Silent::Short };
            }
            Err(TextError::NothingToSay { .. } | TextError::Empty) => unsaid.push(part.to_owned()),
            // Numbers grow when they are read: what fitted as text may not fit as symbols.
            Err(TextError::TooLong { .. }) if part.chars().count() > 1 => {
                let half = part.chars().count().div_ceil(2);
                waiting.extend(split_sentences(part, half).into_iter().rev());
            }
            Err(error) => return Err(SynthesisError::of_text(part, error)),
        }
    }
    if pieces.is_empty() {
        return Err(SynthesisError::NothingToSay);
    }
    Ok((pieces, unsaid))
}

fn piece(text: &str, reading: ProcessedText, after: Silent) -> Piece {
    let symbols = reading.transcript.ids().iter().map(|id| i32::from(id.0)).collect();
    Piece { text: text.to_owned(), language: reading.language, symbols, after }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_data::text::TextConfig;

    fn front_end(max_symbols: usize) -> FrontEnd {
        FrontEnd::new(&TextConfig { max_symbols, ..TextConfig::default() }).unwrap()
    }

    #[test]
    fn a_text_becomes_sentences_in_their_languages() {
        let (pieces, unsaid) =
            read("It rains.\n* * *\nباران می‌آید؟ Yes", None, &front_end(200)).unwrap();
        let found: Vec<_> = pieces.iter().map(|p| (p.text.as_str(), p.language.tag())).collect();
        assert_eq!(found[0], ("It rains.", "en"));
        assert_eq!(found[1], ("باران می‌آید؟", "fa"));
        assert_eq!(found[2], ("Yes", "en"));
        assert_eq!(unsaid, ["* * *"]);
        assert!(pieces.iter().all(|piece| piece.after == Silent::Long));
    }

    #[test]
    fn what_grows_too_long_when_it_is_read_is_cut_again() {
        let (pieces, _) = read("1999 2999 3999 4999", None, &front_end(60)).unwrap();
        assert!(pieces.len() > 1);
        assert!(pieces.iter().all(|piece| piece.symbols.len() <= 60));
        assert_eq!(pieces[1].after, Silent::Short);
        let text: Vec<_> = pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(text.join(" "), "1999 2999 3999 4999");
    }

    #[test]
    fn nothing_to_say_and_what_cannot_be_said_are_errors() {
        for empty in ["", "  \n", "...", "***"] {
            let error = read(empty, None, &front_end(200)).err();
            assert!(matches!(error, Some(SynthesisError::NothingToSay)), "{empty:?}: {error:?}");
        }
        let error = read("Fine. A ★ star.", None, &front_end(200)).err().unwrap();
        assert!(error.to_string().contains("A ★ star."), "{error}");
    }
}
