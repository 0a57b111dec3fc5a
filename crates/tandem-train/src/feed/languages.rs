//! Maps the languages of a corpus to the language numbers of a voice.
//!
//! In: a prepared corpus and a voice's list. Out: one number for each language of the corpus; a
//! language that the voice was not trained on is an error, since any number would be another
//! language's. Speakers need no such map: the voice is conditioned on a reference segment.

use crate::TrainError;
use crate::prepare::Prepared;

/// The voice's number of each language of the corpus, in the corpus's order.
pub fn language_numbers(prepared: &Prepared, known: &[String]) -> Result<Vec<i32>, TrainError> {
    let tags = &prepared.cache.meta().languages;
    let number = |tag: &String| known.iter().position(|other| other == tag);
    let unknown: Vec<String> = tags.iter().filter(|tag| number(tag).is_none()).cloned().collect();
    if !unknown.is_empty() {
        let (corpus, known) = (prepared.root.clone(), known.to_vec());
        return Err(TrainError::UnknownLanguages { corpus, unknown, known });
    }
    Ok(tags.iter().filter_map(number).map(|number| number as i32).collect())
}
