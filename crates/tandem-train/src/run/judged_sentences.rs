//! Held-out sentences that a judge listens to, the same ones at every validation.
//!
//! In: held-out rows. Out: [`JudgedSentence`]s, spread over them. Next: [`crate::run::validator`].

use crate::feed::Rows;
use crate::prepare::Prepared;
use crate::run::validation_set::{Sentence, reference_of};
use tandem_data::cache::EntryBuffer;
use tandem_data::corpus::Split;
use tandem_model::trained_voice::VoiceDocument;
use tandem_text::Language;

/// Sentences of one validation. More would tell steps apart better; this many take a few seconds.
const SENTENCES: usize = 16;

/// A sentence and its text.
pub struct JudgedSentence {
    pub sentence: Sentence,
    pub language: Language,
    /// The normalised text of the row.
    pub text: String,
}

/// From the rows of a split, or from all rows.
pub fn judged_sentences(
    prepared: &Prepared,
    split: Option<Split>,
    document: &VoiceDocument,
    speakers: &[Vec<f32>],
) -> Vec<JudgedSentence> {
    let rows = Rows::of(prepared, split).cache_row;
    let (count, mut buffer) = (rows.len().min(SENTENCES), EntryBuffer::default());
    let mut chosen = Vec::new();
    for place in 0..count {
        let row = rows[place * rows.len() / count] as usize;
        let Some(row) = prepared.cache.row(row) else { continue };
        let Some(text) = prepared.cache.text(row.record, &mut buffer) else { continue };
        let Ok(language) = text.language.parse::<Language>() else { continue };
        let number = document.languages.iter().position(|known| known == text.language);
        let Some(number) = number else { continue };
        let symbols = text.symbols().map(i32::from).collect();
        let reference = reference_of(text.language, document, speakers);
        let name = row.id.to_owned();
        let text = text.normalized.to_owned();
        let language_number = number as i32;
        let sentence =
            Sentence { name, text: text.clone(), symbols, language: language_number, reference };
        chosen.push(JudgedSentence { sentence, language, text });
    }
    chosen
}
