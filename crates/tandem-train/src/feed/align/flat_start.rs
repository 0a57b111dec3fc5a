//! The flat start: an alignment that needs no trained voice, for the first steps.
//!
//! In: the first utterances of a corpus. Out: [`FlatStart`]. A pure function of the corpus, the
//! seed and the batch settings: a resumed run computes the same one. Next:
//! [`crate::feed::align`] uses it in the first steps.

use crate::TrainError;
use crate::feed::FeedSettings;
use crate::feed::first_batches::for_first_batches;
use crate::prepare::Prepared;
use std::sync::Arc;
use tandem_model::alignment::flat_start::{FlatStart, FlatStartUtterance};
use tandem_model::mel_scale::MelScale;
use tandem_pipeline::CancelToken;

/// Utterances to estimate from: enough for every symbol, and only seconds of work.
const UTTERANCES: usize = 400;

pub fn estimate_flat_start(
    prepared: &Arc<Prepared>,
    settings: &FeedSettings,
    scale: &MelScale,
    cancel: &CancelToken,
) -> Result<FlatStart, TrainError> {
    let mut utterances = Vec::new();
    let batches = UTTERANCES.div_ceil(settings.batch.batch_size.max(1));
    for_first_batches(prepared, settings, batches, cancel, |ready| {
        let batch = &ready.batch;
        let (shape, bands) = (batch.shape(), batch.bands());
        for row in 0..batch.row_ids().len() {
            let symbols = batch.symbol_counts()[row] as usize;
            let frames = batch.frame_counts()[row] as usize;
            let mel = &batch.mel()[row * shape.frames * bands..][..frames * bands];
            utterances.push(FlatStartUtterance {
                symbols: batch.symbols()[row * shape.symbols..][..symbols].to_vec(),
                language: batch.languages()[row],
                mel: scale.normalised(mel),
            });
        }
    })?;
    FlatStart::learn(&utterances, prepared.settings.mel.bands).ok_or(TrainError::NothingMeasured)
}
