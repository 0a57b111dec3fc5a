//! Mel frames to sound.
//!
//! In: mel frames as the model gives them. Out: samples at the rate of the mel settings. Writes no
//! file ([`crate::vocoder::wav`] does) and starts no thread. The one implementation is
//! [`GriffinLim`](crate::vocoder::griffin_lim::GriffinLim); a trained one will be another.

pub mod griffin_lim; // the vocoder that needs no training
pub mod wav; // sound to a file

use tandem_data::audio::mel::{MelConfig, MelError};
use tandem_units::{Hint, Samples};

/// The largest log-mel value that is still a sound. Full scale gives about 3; this is far beyond,
/// and its square still fits single precision.
pub const LOUDEST: f32 = 30.0;

/// Turns mel frames into sound. Owns its tables and scratch: one per thread.
pub trait Vocoder: Send {
    /// The settings that its mel frames must have been made with.
    fn mel(&self) -> &MelConfig;

    /// The sound of these frames, full scale at 1.0; louder parts may go beyond it. As many
    /// samples as [`samples_of`] says. The same frames give the same samples.
    /// Shape: `[frames, bands]`, natural logarithms, frame after frame.
    fn speak(&mut self, mel: &[f32]) -> Result<Vec<f32>, VocoderError>;
}

/// Samples that a number of frames (at least one) becomes: the middle of the lengths that have so
/// many frames, so that features made of the sound have as many frames again.
pub fn samples_of(frames: usize, config: &MelConfig) -> Samples {
    let half = (config.hop.0 / 2).max(1);
    // With a hop of one sample, a single frame has none: one is the least that can be heard.
    Samples((frames * config.hop.0).saturating_sub(half).max(1))
}

/// Why no sound could be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum VocoderError {
    /// The mel settings themselves cannot be used.
    #[error("these mel settings cannot be turned into sound")]
    Settings(#[source] MelError),
    /// A setting of the vocoder makes no sense.
    #[error("`{key}` is {value}, expected {expected}")]
    Setting {
        /// Which one.
        key: &'static str,
        /// What it was set to.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// There is no frame to speak.
    #[error("there are no mel frames to speak")]
    Empty,
    /// The values do not fill whole frames.
    #[error("{values} values are no whole number of mel frames with {bands} bands")]
    Shape {
        /// How many values were given.
        values: usize,
        /// Bands of a frame.
        bands: usize,
    },
    /// A value is NaN, infinite or beyond all loudness.
    #[error("band {band} of mel frame {frame} is not a usable number ({value})")]
    Value {
        /// Which frame, from 0.
        frame: usize,
        /// Which band, from 0.
        band: usize,
        /// What stands there.
        value: f32,
    },
}

impl Hint for VocoderError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Settings(cause) => return cause.hint(),
            Self::Setting { key, .. } => format!("correct `{key}`, or leave it out"),
            Self::Empty => "give the voice a text with at least one word to say".into(),
            Self::Shape { bands, .. } => {
                format!("use frames of {bands} bands, made with the settings of this voice")
            }
            Self::Value { .. } => {
                "use an earlier checkpoint: the weights of this one have gone astray".into()
            }
        })
    }
}

/// Refuses what is no mel: nothing, half a frame, or a value that is no loudness.
pub fn check_mel(mel: &[f32], bands: usize) -> Result<(), VocoderError> {
    if mel.is_empty() {
        return Err(VocoderError::Empty);
    }
    if !mel.len().is_multiple_of(bands) {
        return Err(VocoderError::Shape { values: mel.len(), bands });
    }
    // NaN compares as not usable. Minus infinity would be silence, but no model means it.
    match mel.iter().position(|value| !(value.is_finite() && *value <= LOUDEST)) {
        None => Ok(()),
        Some(place) => Err(VocoderError::Value {
            frame: place / bands,
            band: place % bands,
            value: mel[place],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sound_of_some_frames_has_as_many_frames() {
        for hop in [1, 2, 255, 256, 1024] {
            let hop = tandem_units::Hop(hop);
            let config = MelConfig { hop, ..MelConfig::SPEECH_22K };
            for frames in [1, 2, 3, 100].into_iter().filter(|frames| hop.0 * frames > 1) {
                assert_eq!(config.frames(samples_of(frames, &config)).0, frames, "{hop:?}");
            }
        }
    }

    #[test]
    fn what_is_no_mel_is_refused_with_its_place() {
        let mut mel = vec![-5.0; 240];
        assert_eq!(check_mel(&mel, 80), Ok(()));
        assert_eq!(check_mel(&[], 80), Err(VocoderError::Empty));
        assert_eq!(check_mel(&mel, 79), Err(VocoderError::Shape { values: 240, bands: 79 }));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 50.0] {
            mel[85] = bad;
            let error = check_mel(&mel, 80).unwrap_err();
            assert!(matches!(error, VocoderError::Value { frame: 1, band: 5, .. }), "{error}");
            assert!(error.hint().is_some());
        }
    }
}
