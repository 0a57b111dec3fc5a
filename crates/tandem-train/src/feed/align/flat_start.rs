//! What texts are aligned with before the voice knows anything.
//!
//! In: the first utterances of a corpus. Out: [`FlatStart`]. A pure function of the corpus, the
//! seed and the batch settings: a run that is taken up again finds the same one. Next:
//! [`crate::feed::align`] uses it in the first steps.

use crate::TrainError;
use crate::feed::FeedSettings;
use crate::feed::first_batches::survey;
use crate::prepare::Prepared;
use std::sync::Arc;
use tandem_model::alignment::flat_start::{FlatStart, FlatStartUtterance};
use tandem_model::mel_scale::MelScale;
use tandem_pipeline::CancelToken;

/// Utterances that it is learned from: enough for every letter, and seconds of work.
const UTTERANCES: usize = 400;

/// Learned from the first utterances of a corpus.
pub fn learn_first_alignment(
    prepared: &Arc<Prepared>,
    settings: &FeedSettings,
    scale: &MelScale,
    cancel: &CancelToken,
) -> Result<FlatStart, TrainError> {
    let mut heard = Vec::new();
    let batches = UTTERANCES.div_ceil(settings.batch.batch_size.max(1));
    survey(prepared, settings, batches, cancel, |ready| {
        let batch = &ready.batch;
        let (shape, bands) = (batch.shape(), batch.bands());
        for row in 0..batch.row_ids().len() {
            let symbols = batch.symbol_counts()[row] as usize;
            let frames = batch.frame_counts()[row] as usize;
            let mel = &batch.mel()[row * shape.frames * bands..][..frames * bands];
            heard.push(FlatStartUtterance {
                symbols: batch.symbols()[row * shape.symbols..][..symbols].to_vec(),
                language: batch.languages()[row],
                mel: scale.normalised(mel),
            });
        }
    })?;
    FlatStart::learn(&heard, prepared.settings.mel.bands).ok_or(TrainError::NothingMeasured)
}
