//! The place for a reader that knows what letters do not say: ezafe, homographs, names.
//!
//! In: the words of one normalised sentence. Out: the same words, changed where the reader
//! knows better. Tandem ships none; [`super::FrontEnd::with_pronounce`] takes yours.

use super::language::Language;
use super::words::Sentence;

/// Changes the words of a sentence before they become symbols.
///
/// A Persian reader may write the ezafe of «کتابِ من», an English one may give `read` in
/// past tense its phonemes. Called once per sentence, from many threads.
pub trait Pronounce: Send + Sync {
    /// Name and version: part of the cache key, so a new version means new transcripts.
    fn name(&self) -> String;

    /// May change `text` and `phonemes` of each word, and the words themselves.
    fn pronounce(&self, language: Language, sentence: &mut Sentence);
}
