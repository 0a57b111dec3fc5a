//! The validation set: the same batches and sentences at every validation.
//!
//! In: held-out rows, or all rows of a second corpus. Out: [`ValidationSet`], in host memory. Each of several
//! ranks keeps its share of the batches. Next: [`crate::run::validator`].

use crate::TrainError;
use crate::feed::align::unaligned;
use crate::feed::languages::language_numbers;
use crate::feed::row_failures::RowFailures;
use crate::feed::schedule::Shard;
use crate::feed::skip_list::SkipList;
use crate::feed::{FeedSettings, Rows, feed};
use crate::prepare::Prepared;
use std::sync::Arc;
use tandem_data::batch::Position;
use tandem_data::cache::EntryBuffer;
use tandem_data::corpus::Split;
use tandem_model::synthesis::mel::Reference;
use tandem_model::train_batch::AlignedBatch;
use tandem_model::trained_voice::VoiceDocument;
use tandem_pipeline::{Adapt, CancelToken};
use tandem_telemetry::Recorder;
use tandem_units::Seed;

/// Batches of a validation at most, on all ranks together.
const BATCHES: usize = 16;
/// Sentences that are synthesized.
const SENTENCES: usize = 4;

/// What every validation of a run measures.
pub struct ValidationSet {
    /// The batches that this rank measures.
    pub batches: Vec<NumberedBatch>,
    /// Batches of all ranks.
    pub total: usize,
    pub sentences: Vec<Sentence>,
}

/// A batch and its place in the whole set.
pub struct NumberedBatch {
    pub number: u64,
    pub batch: AlignedBatch,
}

/// A sentence to synthesize: one per language.
pub struct Sentence {
    pub name: String,
    /// The normalised text.
    pub text: String,
    pub symbols: Vec<i32>,
    pub language: i32,
    pub reference: Reference,
}

impl ValidationSet {
    /// From the rows of a split, or from all rows; `None` where there are none.
    pub fn build(
        prepared: &Arc<Prepared>,
        split: Option<Split>,
        settings: &FeedSettings,
        document: &VoiceDocument,
        speakers: &[Vec<f32>],
        cancel: &CancelToken,
    ) -> Result<Option<ValidationSet>, TrainError> {
        let numbers = language_numbers(prepared, &document.languages)?;
        let rows = Rows::of(prepared, split).cache_row;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut buffer = EntryBuffer::default();
        let shard = settings.shard;
        let settings = FeedSettings {
            split,
            // Sentences may come from any batch.
            shard: Shard::ALL,
            start: Position::start(settings.batch.seed),
            first: 0,
            epochs: Some(1),
            adapt: Adapt::Off,
            // Batches of this pass have numbers of their own.
            row_failures: RowFailures::default(),
            skip_list: SkipList::default(),
            ..settings.clone()
        };
        let mut feed = feed(prepared, &settings, &Recorder::off(), cancel)?;
        let mut set = ValidationSet { batches: Vec::new(), total: 0, sentences: Vec::new() };
        while set.total < BATCHES
            && let Some(ready) = feed.next()?
        {
            let number = set.total as u64;
            let seed = Seed(number);
            let mut batch = unaligned(&ready, &document.scale, document.config.patch, seed);
            // Another corpus may number its languages in another way than the voice does.
            for language in &mut batch.languages[..ready.batch.used()] {
                *language = numbers.get(*language as usize).copied().unwrap_or(*language);
            }
            for row in 0..ready.batch.used() {
                let language = batch.languages[row];
                let new = set.sentences.iter().all(|other| other.language != language);
                if set.sentences.len() < SENTENCES && new {
                    let cached = rows[ready.batch.row_ids()[row] as usize] as usize;
                    let text = text_of(prepared, cached, &mut buffer).unwrap_or_default();
                    set.sentences.push(sentence(&batch, row, text, document, speakers));
                }
            }
            set.total += 1;
            if shard.has(number) {
                set.batches.push(NumberedBatch { number, batch });
            }
        }
        Ok(Some(set))
    }
}

fn text_of(prepared: &Prepared, row: usize, buffer: &mut EntryBuffer) -> Option<String> {
    let record = prepared.cache.row(row)?.record;
    Some(prepared.cache.text(record, buffer)?.normalized.to_owned())
}

fn sentence(
    batch: &AlignedBatch,
    row: usize,
    text: String,
    document: &VoiceDocument,
    speakers: &[Vec<f32>],
) -> Sentence {
    let language = batch.languages[row];
    let tag = document.languages.get(language as usize).cloned().unwrap_or_default();
    let reference = reference_of(&tag, document, speakers);
    let symbols = &batch.symbol_ids[row * batch.symbols..][..batch.symbol_counts[row]];
    Sentence { name: tag, text, symbols: symbols.to_vec(), language, reference }
}

/// The first speaker of a language; none in particular where there is none.
pub(crate) fn reference_of(
    language: &str,
    document: &VoiceDocument,
    speakers: &[Vec<f32>],
) -> Reference {
    let known = document.speakers.iter().position(|speaker| speaker.language == language);
    known.map_or(Reference::default(), |number| Reference {
        mel: speakers[number].clone(),
        level: document.speakers[number].level,
    })
}
