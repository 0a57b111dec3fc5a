//! A second corpus to validate on, held against the one that is trained on.
//!
//! In: both, prepared with the same settings. Out: what is worth saying, or an error that says
//! what to do. Every usable row of the second one is a question. Next: [`crate::run::validator`].

use crate::TrainError;
use crate::feed::Rows;
use crate::feed::languages::language_numbers;
use crate::prepare::Prepared;
use std::collections::{BTreeSet, HashSet};
use tandem_data::cache::Fingerprint;
use tandem_data::corpus::Split;

/// What a second corpus is beside the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationFacts {
    /// Rows to validate on.
    pub rows: usize,
    /// Speakers that are not trained on. The voice imitates them from their own recordings.
    pub new_speakers: Vec<String>,
}

/// Whether what is learned from the one can be seen on the other: every language must be known,
/// and no recording may be in both.
pub fn check_validation(
    training: &Prepared,
    validation: &Prepared,
) -> Result<ValidationFacts, TrainError> {
    language_numbers(validation, &training.cache.meta().languages)?;
    let learned = Rows::of(training, Split::Train);
    let asked = Rows::of(validation, None);
    let hash = |prepared: &Prepared, row: u32| -> Option<Fingerprint> {
        prepared.cache.record(row as usize).map(|record| record.audio_hash)
    };
    let heard: HashSet<Fingerprint> =
        learned.cache_row.iter().filter_map(|&row| hash(training, row)).collect();
    let both = asked
        .cache_row
        .iter()
        .filter(|&&row| hash(validation, row).is_some_and(|recording| heard.contains(&recording)));
    let both: Vec<u32> = both.copied().collect();
    if let Some(&first) = both.first() {
        let first = validation.cache.row(first as usize);
        return Err(TrainError::LearnedFrom {
            corpus: validation.root.clone(),
            rows: both.len(),
            of: asked.cache_row.len(),
            first: first.map_or_else(String::new, |row| row.id.to_string()),
        });
    }
    let named = |prepared: &Prepared, rows: &Rows| -> BTreeSet<String> {
        let names = &prepared.cache.meta().speakers;
        let used = rows.by_speaker.keys().filter_map(|&number| names.get(usize::from(number)));
        used.filter(|name| !name.is_empty()).cloned().collect()
    };
    let known = named(training, &learned);
    let new_speakers = named(validation, &asked).difference(&known).cloned().collect();
    Ok(ValidationFacts { rows: asked.cache_row.len(), new_speakers })
}
