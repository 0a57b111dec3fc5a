//! Mean and deviation of a corpus's mel frames, for normalisation, and the level of its speech.
//!
//! In: the first batches of a corpus. Out: [`MelScale`], which is saved with the voice.

use crate::TrainError;
use crate::feed::FeedSettings;
use crate::feed::first_batches::for_first_batches;
use crate::prepare::Prepared;
use std::sync::Arc;
use tandem_model::mel_scale::MelScale;
use tandem_model::metrics::{MelFrames, level};
use tandem_pipeline::CancelToken;

/// Batches that are measured.
const BATCHES: usize = 16;

/// Measures the first batches of a corpus.
pub fn measure_mel_scale(
    prepared: &Arc<Prepared>,
    settings: &FeedSettings,
    cancel: &CancelToken,
) -> Result<MelScale, TrainError> {
    let (mut count, mut sum, mut squares) = (0u64, 0f64, 0f64);
    let mut levels: Vec<f64> = Vec::new();
    for_first_batches(prepared, settings, BATCHES, cancel, |ready| {
        let row = ready.batch.shape().frames * ready.batch.bands();
        let rows = ready.batch.mel().chunks_exact(row).zip(ready.batch.frame_counts());
        for (mel, &frames) in rows {
            let mel = &mel[..frames as usize * ready.batch.bands()];
            levels.extend(MelFrames::new(mel, ready.batch.bands()).map(level));
            for &value in mel {
                count += 1;
                sum += f64::from(value);
                squares += f64::from(value) * f64::from(value);
            }
        }
    })?;
    if count == 0 {
        return Err(TrainError::NothingMeasured);
    }
    let mean = sum / count as f64;
    let variance = (squares / count as f64 - mean * mean).max(1e-6);
    let level = levels.iter().sum::<f64>() / levels.len().max(1) as f64;
    let level = (!levels.is_empty()).then_some(level as f32);
    Ok(MelScale { mean: mean as f32, deviation: variance.sqrt() as f32, level })
}
