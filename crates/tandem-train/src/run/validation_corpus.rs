//! A second corpus to validate on, checked against the training corpus.
//!
//! In: both corpora, prepared with the same settings. Out: [`ValidationFacts`], or an error with a
//! hint. Validation uses every usable row of the second corpus. Next: [`crate::run::validator`].

use crate::TrainError;
use crate::feed::Rows;
use crate::feed::languages::language_numbers;
use crate::prepare::Prepared;
use std::collections::{BTreeSet, HashSet};
use tandem_data::corpus::Split;
use tandem_disk::Fingerprint;

/// What the user should know about a validation corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationFacts {
    /// Rows to validate on.
    pub rows: usize,
    /// Speakers that are not trained on. The voice gets their reference segments from this corpus.
    pub new_speakers: Vec<String>,
}

/// Fails where a language is not in the training corpus, or where a recording is in both corpora.
pub fn check_validation(
    training: &Prepared,
    validation: &Prepared,
) -> Result<ValidationFacts, TrainError> {
    language_numbers(validation, &training.cache.meta().languages)?;
    let trained = Rows::of(training, Split::Train);
    let validated = Rows::of(validation, None);
    let hash = |prepared: &Prepared, row: u32| -> Option<Fingerprint> {
        prepared.cache.record(row as usize).map(|record| record.audio_hash)
    };
    let trained_hashes: HashSet<Fingerprint> =
        trained.cache_row.iter().filter_map(|&row| hash(training, row)).collect();
    let both = validated.cache_row.iter().filter(|&&row| {
        hash(validation, row).is_some_and(|recording| trained_hashes.contains(&recording))
    });
    let both: Vec<u32> = both.copied().collect();
    if let Some(&first) = both.first() {
        let first = validation.cache.row(first as usize);
        return Err(TrainError::ValidationOverlap {
            corpus: validation.root.clone(),
            rows: both.len(),
            of: validated.cache_row.len(),
            first: first.map_or_else(String::new, |row| row.id.to_string()),
        });
    }
    let named = |prepared: &Prepared, rows: &Rows| -> BTreeSet<String> {
        let names = &prepared.cache.meta().speakers;
        let used = rows.by_speaker.keys().filter_map(|&number| names.get(usize::from(number)));
        used.filter(|name| !name.is_empty()).cloned().collect()
    };
    let known = named(training, &trained);
    let new_speakers = named(validation, &validated).difference(&known).cloned().collect();
    Ok(ValidationFacts { rows: validated.cache_row.len(), new_speakers })
}
