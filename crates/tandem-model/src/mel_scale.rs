//! Mel frames in the units the model learns in: mean 0 and deviation 1 over the corpus.
//!
//! In: natural logarithms of magnitudes. Out: the same, shifted and scaled by two numbers that
//! travel with the voice.

use serde::{Deserialize, Serialize};

/// Where zero is, and how much one is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MelScale {
    /// The mean of all numbers.
    pub mean: f32,
    /// Their standard deviation.
    pub deviation: f32,
}

impl MelScale {
    /// Writes normalised numbers; places without a number keep what they have.
    pub fn normalise(&self, mel: &[f32], out: &mut [f32]) {
        for (out, value) in out.iter_mut().zip(mel) {
            *out = (value - self.mean) / self.deviation;
        }
    }

    /// The same, in memory of its own.
    pub fn normalised(&self, mel: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; mel.len()];
        self.normalise(mel, &mut out);
        out
    }

    /// Back to logarithms of magnitudes, in place.
    pub fn restore(&self, mel: &mut [f32]) {
        for value in mel {
            *value = *value * self.deviation + self.mean;
        }
    }
}
