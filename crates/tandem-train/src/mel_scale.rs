//! Mel frames in the units the model learns in: mean 0 and deviation 1 over the corpus.
//!
//! In: logarithms of magnitudes. Out: the same, shifted and scaled by two numbers that travel
//! with the voice.

use crate::TrainError;
use crate::feed::{FeedSettings, feed};
use crate::prepare::Prepared;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tandem_data::batch::Position;
use tandem_pipeline::{Adapt, CancelToken};
use tandem_telemetry::Recorder;

/// Batches that are looked at.
const BATCHES: usize = 16;

/// Where zero is, and how much one is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MelScale {
    /// The mean of all numbers.
    pub mean: f32,
    /// Their standard deviation.
    pub deviation: f32,
}

impl MelScale {
    /// Of the first batches of a corpus.
    pub fn measure(
        prepared: &Arc<Prepared>,
        settings: &FeedSettings,
        cancel: &CancelToken,
    ) -> Result<MelScale, TrainError> {
        let settings = FeedSettings {
            start: Position::start(settings.batch.seed),
            epochs: Some(1),
            adapt: Adapt::Off,
            reference_frames: 0,
            ..settings.clone()
        };
        let mut batches = feed(prepared, &settings, &Recorder::off(), cancel)?;
        let (mut count, mut sum, mut squares) = (0u64, 0f64, 0f64);
        for _ in 0..BATCHES {
            let Some(ready) = batches.next()? else { break };
            let row = ready.batch.shape().frames * ready.batch.bands();
            let rows = ready.batch.mel().chunks_exact(row).zip(ready.batch.frame_counts());
            for (mel, &frames) in rows {
                for &value in &mel[..frames as usize * ready.batch.bands()] {
                    count += 1;
                    sum += f64::from(value);
                    squares += f64::from(value) * f64::from(value);
                }
            }
        }
        if count == 0 {
            return Err(TrainError::NothingMeasured);
        }
        let mean = sum / count as f64;
        let variance = (squares / count as f64 - mean * mean).max(1e-6);
        Ok(MelScale { mean: mean as f32, deviation: variance.sqrt() as f32 })
    }

    /// Writes normalised numbers; places without a number keep what they have.
    pub fn normalise(&self, mel: &[f32], out: &mut [f32]) {
        for (out, value) in out.iter_mut().zip(mel) {
            *out = (value - self.mean) / self.deviation;
        }
    }

    /// Back to logarithms of magnitudes, in place.
    pub fn restore(&self, mel: &mut [f32]) {
        for value in mel {
            *value = *value * self.deviation + self.mean;
        }
    }
}
