//! Vocoders: mel frames to samples.
//!
//! In: log-mel frames as the model predicts them. Out: samples at the rate of the mel settings.
//! Writes no file ([`crate::vocoder::wav`] does) and starts no thread. [`VocoderChoice`] is the only
//! place that knows the implementations.

pub mod griffin_lim; // phase reconstruction, needs no training
pub mod neural; // a trained network
pub mod wav; // samples to a file

use griffin_lim::{GriffinLim, GriffinLimConfig};
use neural::trained::{TrainedVocoder, VocoderFileError, attached_to};
use std::path::{Path, PathBuf};
use tandem_audio::mel::{MelConfig, MelError};
use tandem_units::{Hint, Samples};

/// The largest log-mel value that is accepted. Full scale gives about 3; this is far above it, and
/// its square still fits single precision.
pub const LOUDEST: f32 = 30.0;

/// Which vocoder is used, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum VocoderChoice {
    /// The neural vocoder that belongs to the voice; Griffin-Lim for a voice without one.
    OfVoice(GriffinLimConfig),
    GriffinLim(GriffinLimConfig),
    /// A checkpoint or run of `tandem train-vocoder`, or a voice with a vocoder.
    Neural(PathBuf),
}

impl VocoderChoice {
    /// The choice for the voice of this checkpoint: never [`VocoderChoice::OfVoice`].
    pub fn for_voice(&self, voice: &Path) -> VocoderChoice {
        match self {
            VocoderChoice::OfVoice(config) => match attached_to(voice) {
                Some(path) => VocoderChoice::Neural(path),
                None => VocoderChoice::GriffinLim(config.clone()),
            },
            other => other.clone(),
        }
    }

    /// The vocoder for mel frames of these settings.
    pub fn open(&self, mel: &MelConfig) -> Result<Box<dyn Vocoder>, VocoderError> {
        match self {
            // Without a voice there is no vocoder that belongs to it.
            VocoderChoice::OfVoice(config) | VocoderChoice::GriffinLim(config) => {
                Ok(Box::new(GriffinLim::new(mel, config.clone())?))
            }
            VocoderChoice::Neural(path) => {
                let read = TrainedVocoder::read(path)?;
                match read.vocoder.mel() == mel {
                    true => Ok(Box::new(read.vocoder)),
                    false => Err(VocoderError::OtherMel { path: read.path }),
                }
            }
        }
    }

    /// For messages.
    pub fn name(&self) -> &'static str {
        match self {
            VocoderChoice::OfVoice(_) => "vocoder",
            VocoderChoice::GriffinLim(_) => "Griffin-Lim",
            VocoderChoice::Neural(_) => "neural vocoder",
        }
    }
}

impl Default for VocoderChoice {
    fn default() -> VocoderChoice {
        VocoderChoice::OfVoice(GriffinLimConfig::SPEECH)
    }
}

/// Turns mel frames into samples. Owns its tables and scratch memory: one per thread.
pub trait Vocoder: Send {
    /// The mel settings that its input must have been computed with.
    fn mel(&self) -> &MelConfig;

    /// The samples of these frames, full scale at 1.0; louder parts may exceed it. Returns as many
    /// samples as [`samples_of`]. The same frames give the same samples.
    /// Shape: `[frames, bands]`, natural logarithms, frame after frame.
    fn synthesize(&mut self, mel: &[f32]) -> Result<Vec<f32>, VocoderError>;
}

/// The number of samples for a number of frames (at least one): the middle of the lengths that have
/// this many frames, so that features computed from the samples have as many frames again.
pub fn samples_of(frames: usize, config: &MelConfig) -> Samples {
    let half = (config.hop.0 / 2).max(1);
    // With a hop of one sample, a single frame would have no sample.
    Samples((frames * config.hop.0).saturating_sub(half).max(1))
}

/// Why no samples could be computed.
#[derive(Debug, thiserror::Error)]
pub enum VocoderError {
    /// The mel settings themselves are invalid.
    #[error("the vocoder cannot use these mel settings")]
    Settings(#[source] MelError),
    #[error("`{key}` is {value}, expected {expected}")]
    Setting { key: &'static str, value: String, expected: &'static str },
    #[error("there are no mel frames to synthesize")]
    Empty,
    /// The values do not fill whole frames.
    #[error("{values} values are not a whole number of mel frames with {bands} bands")]
    Shape { values: usize, bands: usize },
    /// A value is NaN, infinite or louder than [`LOUDEST`].
    #[error("band {band} of mel frame {frame} has the unusable value {value}")]
    Value {
        /// From 0.
        frame: usize,
        /// From 0.
        band: usize,
        value: f32,
    },
    #[error(transparent)]
    File(#[from] VocoderFileError),
    #[error("the vocoder `{}` was trained on mel frames with other settings", path.display())]
    OtherMel { path: PathBuf },
    #[error("the checkpoint `{}` has no voice", path.display())]
    NotAVoice { path: PathBuf },
}

impl Hint for VocoderError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Settings(cause) => return cause.hint(),
            Self::Setting { key, .. } => format!("correct `{key}`, or leave it out"),
            Self::Empty => "give the voice a text with at least one word to say".into(),
            Self::Shape { bands, .. } => {
                format!("use frames of {bands} bands, computed with the mel settings of this voice")
            }
            Self::Value { .. } => {
                "use an earlier checkpoint: training has diverged in this one".into()
            }
            Self::File(error) => return error.hint(),
            Self::OtherMel { .. } => {
                "train a vocoder on the corpus of the voice, with the same `mel` settings".into()
            }
            Self::NotAVoice { .. } => "name the directory of a `tandem train` run".into(),
        })
    }
}

/// Refuses an empty input, an incomplete frame, and values that no mel frame has.
pub fn check_mel(mel: &[f32], bands: usize) -> Result<(), VocoderError> {
    if mel.is_empty() {
        return Err(VocoderError::Empty);
    }
    if !mel.len().is_multiple_of(bands) {
        return Err(VocoderError::Shape { values: mel.len(), bands });
    }
    // Minus infinity would be silence, but a model only predicts it when it has diverged.
    match mel.iter().position(|value| !(value.is_finite() && *value <= LOUDEST)) {
        None => Ok(()),
        Some(index) => Err(VocoderError::Value {
            frame: index / bands,
            band: index % bands,
            value: mel[index],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_of_some_frames_have_as_many_frames() {
        for hop in [1, 2, 255, 256, 1024] {
            let hop = tandem_units::Hop(hop);
            let config = MelConfig { hop, ..MelConfig::SPEECH_22K };
            for frames in [1, 2, 3, 100].into_iter().filter(|frames| hop.0 * frames > 1) {
                assert_eq!(config.frames(samples_of(frames, &config)).0, frames, "{hop:?}");
            }
        }
    }

    #[test]
    fn an_invalid_mel_is_refused_with_the_frame_and_band() {
        let mut mel = vec![-5.0; 240];
        assert!(check_mel(&mel, 80).is_ok());
        assert!(matches!(check_mel(&[], 80), Err(VocoderError::Empty)));
        let shape = check_mel(&mel, 79).unwrap_err();
        assert_eq!(
            shape.to_string(),
            "240 values are not a whole number of mel frames with 79 bands"
        );
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 50.0] {
            mel[85] = bad;
            let error = check_mel(&mel, 80).unwrap_err();
            assert!(matches!(error, VocoderError::Value { frame: 1, band: 5, .. }), "{error}");
            assert!(error.hint().is_some());
        }
    }
}
