//! Splits a text into pieces that fit the model: sentences, and parts of sentences that are too long.
//!
//! In: a text and the front end. Out: [`Pieces`]: what is spoken, and what is not.

use super::SynthesisError;
use tandem_text::chat::{Speakable, TextFormat, TextTreatment, UnknownSigns, speakable};
use tandem_text::sentences::split_sentences;
use tandem_text::{FrontEnd, Language, ProcessedText, TextError};

/// A sentence or a part of one, as symbols.
pub struct Piece {
    /// The original text.
    pub text: String,
    pub language: Language,
    pub symbols: Vec<i32>,
    pause: Pause,
}

/// The pause before a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// After the end of a sentence.
    Long,
    /// Within a sentence.
    Short,
}

impl Piece {
    /// The pause before it, as a fraction of the full pause.
    pub fn pause_before(&self) -> f64 {
        match self.pause {
            Pause::Long => 1.0,
            Pause::Short => 0.4,
        }
    }
}

/// A text in pieces.
pub struct Pieces {
    pub pieces: Vec<Piece>,
    /// The parts without a pronounceable word.
    pub skipped: Vec<String>,
    /// Signs and code blocks that are not spoken.
    pub left_out: Vec<String>,
}

/// All pieces of a text.
pub fn read(
    text: &str,
    language: Option<Language>,
    treatment: TextTreatment,
    front_end: &FrontEnd,
) -> Result<Pieces, SynthesisError> {
    let (mut pieces, mut skipped) = (Vec::new(), Vec::new());
    let Speakable { text, mut left_out } = match treatment.format {
        TextFormat::Markdown => speakable(text),
        TextFormat::Plain => Speakable { text: text.into(), left_out: Vec::new() },
    };
    let mut pause = Pause::Long;
    let mut waiting = split_sentences(&text, front_end.max_symbols());
    waiting.reverse();
    while let Some(part) = waiting.pop() {
        if !part.contains(char::is_alphanumeric) {
            skipped.push(part.to_owned());
            continue;
        }
        let read = match treatment.unknown {
            UnknownSigns::Skip => front_end.read_known(part, language),
            UnknownSigns::Refuse => front_end.read(part, language).map(|read| (read, Vec::new())),
        };
        match read {
            Ok((reading, signs)) => {
                for sign in signs {
                    let shown = format!("`{sign}` (U+{:04X})", u32::from(sign));
                    if !left_out.contains(&shown) {
                        left_out.push(shown);
                    }
                }
                pieces.push(piece(part, reading, pause));
                let ended = part.trim_end_matches(['"', '\'', '”', '’', '»', ')', ']']);
                let whole = ended.ends_with(['.', '!', '?', '…', '؟', '؛', '۔']);
                pause = if whole { Pause::Long } else { Pause::Short };
            }
            Err(TextError::NothingToSay { .. } | TextError::Empty) => skipped.push(part.to_owned()),
            // Numbers become longer as words: a text that fits may not fit as symbols.
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
    Ok(Pieces { pieces, skipped, left_out })
}

fn piece(text: &str, reading: ProcessedText, pause: Pause) -> Piece {
    let symbols = reading.transcript.ids().iter().map(|id| i32::from(id.0)).collect();
    Piece { text: text.to_owned(), language: reading.language, symbols, pause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_text::TextConfig;

    fn front_end(max_symbols: usize) -> FrontEnd {
        FrontEnd::new(&TextConfig { max_symbols, ..TextConfig::default() }).unwrap()
    }

    #[test]
    fn a_text_becomes_sentences_in_their_languages() {
        let text = "It rains.\n* * *\nباران می‌آید؟ Yes";
        let Pieces { pieces, skipped, .. } =
            read(text, None, TextTreatment::default(), &front_end(200)).unwrap();
        let found: Vec<_> = pieces.iter().map(|p| (p.text.as_str(), p.language.tag())).collect();
        assert_eq!(found[0], ("It rains.", "en"));
        assert_eq!(found[1], ("باران می‌آید؟", "fa"));
        assert_eq!(found[2], ("Yes", "en"));
        assert_eq!(skipped, ["* * *"]);
        assert!(pieces.iter().all(|piece| piece.pause == Pause::Long));
    }

    #[test]
    fn a_piece_whose_symbols_do_not_fit_is_split_again() {
        let found = read("1999 2999 3999 4999", None, TextTreatment::default(), &front_end(60));
        let pieces = found.unwrap().pieces;
        assert!(pieces.len() > 1);
        assert!(pieces.iter().all(|piece| piece.symbols.len() <= 60));
        assert_eq!(pieces[1].pause, Pause::Short);
        let text: Vec<_> = pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(text.join(" "), "1999 2999 3999 4999");
    }

    #[test]
    fn texts_without_words_and_unknown_symbols_are_errors() {
        for empty in ["", "  \n", "...", "***"] {
            let error = read(empty, None, TextTreatment::default(), &front_end(200)).err();
            assert!(matches!(error, Some(SynthesisError::NothingToSay)), "{empty:?}: {error:?}");
        }
        let strict = TextTreatment { unknown: UnknownSigns::Refuse, ..TextTreatment::default() };
        let error = read("Fine. A ★ star.", None, strict, &front_end(200)).err().unwrap();
        assert!(error.to_string().contains("A ★ star."), "{error}");
    }

    #[test]
    fn unknown_signs_and_code_are_left_out_and_listed() {
        let text = "# News\n\nA ★ star → **here**. 👍\n\n```\nx\n```";
        let found = read(text, None, TextTreatment::default(), &front_end(200)).unwrap();
        let texts: Vec<_> = found.pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(texts, ["News.", "A ★ star → here."]);
        assert_eq!(found.left_out, ["a code block of 1 line", "`★` (U+2605)", "`→` (U+2192)"]);
        assert_eq!(found.skipped, ["👍"]);
        let plain = TextTreatment { format: TextFormat::Plain, ..TextTreatment::default() };
        let found = read("# News", None, plain, &front_end(200)).unwrap();
        assert_eq!(found.pieces[0].text, "# News");
    }
}
