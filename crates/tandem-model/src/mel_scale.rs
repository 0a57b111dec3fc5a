//! Normalisation of mel frames to mean 0 and standard deviation 1 over the corpus.
//!
//! In: natural logarithms of magnitudes. Out: the same, shifted and scaled by two values that are
//! saved with the voice.

use serde::{Deserialize, Serialize};

/// Mean and standard deviation over all values of the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MelScale {
    pub mean: f32,
    pub deviation: f32,
}

impl MelScale {
    /// Writes normalised values to the start of `out`; the rest is unchanged.
    pub fn normalise(&self, mel: &[f32], out: &mut [f32]) {
        for (out, value) in out.iter_mut().zip(mel) {
            *out = (value - self.mean) / self.deviation;
        }
    }

    /// The normalised values in a new vector.
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
