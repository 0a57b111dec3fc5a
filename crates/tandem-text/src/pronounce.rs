//! A hook for what the spelling does not show: ezafe, homographs, names.
//!
//! In: the words of one normalised sentence. Out: the same words, changed by the hook. Tandem has no
//! implementation; [`super::FrontEnd::with_pronounce`] accepts one.

use super::language::Language;
use super::words::Sentence;

/// Changes the words of a sentence before they become symbols.
///
/// A hook for Persian may write the ezafe of «کتابِ من»; one for English may set the phonemes of
/// `read` in the past tense. Called once per sentence, from many threads.
pub trait Pronounce: Send + Sync {
    /// Name and version: part of the cache key, so a new version means new transcripts.
    fn name(&self) -> String;

    /// May change `text` and `phonemes` of each word, and the words themselves.
    fn pronounce(&self, language: Language, sentence: &mut Sentence);
}
