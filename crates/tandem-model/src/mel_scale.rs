//! Normalisation of mel frames to mean 0 and standard deviation 1 over the corpus.
//!
//! In: natural logarithms of magnitudes. Out: the same, shifted and scaled by two values that are
//! saved with the voice. The level of the corpus is saved too: speech is synthesized at that level.

use crate::metrics::{MelFrames, level};
use serde::{Deserialize, Serialize};

/// Mean and standard deviation over all values of the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MelScale {
    pub mean: f32,
    pub deviation: f32,
    /// Mean level of the recordings in dB, as [`level`] measures it; none in checkpoints of older versions.
    #[serde(default)]
    pub level: Option<f32>,
}

/// The largest correction of a level, in dB: a voice that has learned nothing is not made loud.
pub const LARGEST_GAIN: f64 = 6.0;

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

    /// Shifts an utterance to the level of its speaker, or to that of the corpus where the speaker has none. A voice
    /// predicts means of logarithms, which are quieter than the recordings they are means of.
    pub fn match_level(&self, mel: &mut [f32], bands: usize, of_speaker: Option<f32>) {
        let wanted = of_speaker.or(self.level);
        let (Some(wanted), Ok(frames)) = (wanted, MelFrames::new(mel, bands)) else { return };
        let gain = (f64::from(wanted) - level(frames)).clamp(-LARGEST_GAIN, LARGEST_GAIN);
        let shift = (gain * std::f64::consts::LN_10 / 20.0) as f32;
        mel.iter_mut().for_each(|value| *value += shift);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_speech_is_raised_to_the_level_of_the_speaker_or_the_corpus() {
        let mut mel = vec![-2.0f32, -1.5, -1.0, -2.5];
        let at_first = level(MelFrames::new(&mel, 2).unwrap());
        let scale = |above: f64| MelScale {
            mean: 0.0,
            deviation: 1.0,
            level: Some((at_first + above) as f32),
        };
        scale(3.0).match_level(&mut mel, 2, None);
        let raised = level(MelFrames::new(&mel, 2).unwrap());
        assert!((raised - at_first - 3.0).abs() < 1e-4, "{raised}");
        // Silence is not made into noise.
        scale(40.0).match_level(&mut mel, 2, None);
        let raised_again = level(MelFrames::new(&mel, 2).unwrap());
        assert!((raised_again - raised - LARGEST_GAIN).abs() < 1e-4);
        let quieter = (raised_again - 2.0) as f32;
        scale(40.0).match_level(&mut mel, 2, Some(quieter));
        assert!((level(MelFrames::new(&mel, 2).unwrap()) - f64::from(quieter)).abs() < 1e-4);
    }
}
