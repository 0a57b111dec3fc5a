//! What the symbols of a voice are: characters or phonemes.
//!
//! In: the document of a voice and a language. Out: [`Reading`]. The only place of the export that knows how the text
//! settings of a voice decide this.

use crate::ExportError;
use serde::Serialize;
use tandem_model::trained_voice::VoiceDocument;
use tandem_text::{Language, SymbolSource};

/// What one symbol represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// A written letter.
    Characters,
    /// A phoneme, as IPA.
    Phonemes,
}

impl Reading {
    /// How this voice reads texts of a language.
    pub fn of(document: &VoiceDocument, language: Language) -> Reading {
        match document.text.pronunciation.source(language) {
            Ok(SymbolSource::BuiltIn | SymbolSource::Espeak) => Reading::Phonemes,
            // A language without built-in phonemes has characters.
            Ok(SymbolSource::Characters) | Err(_) => Reading::Characters,
        }
    }

    /// The reading that all speakers share: a Piper voice has only one.
    pub fn common(all: impl IntoIterator<Item = Reading>) -> Result<Reading, ExportError> {
        let mut all = all.into_iter();
        let first = all.next().ok_or(ExportError::NoSpeaker)?;
        match all.all(|other| other == first) {
            true => Ok(first),
            false => Err(ExportError::MixedReadings),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speakers_of_one_voice_must_read_the_same_symbols() {
        use Reading::{Characters, Phonemes};
        assert!(matches!(Reading::common([Characters, Characters]), Ok(Characters)));
        assert!(matches!(Reading::common([Phonemes]), Ok(Phonemes)));
        let mixed = Reading::common([Phonemes, Characters]);
        assert!(matches!(mixed, Err(ExportError::MixedReadings)));
        assert!(matches!(Reading::common([]), Err(ExportError::NoSpeaker)));
    }
}
