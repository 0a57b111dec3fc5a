//! How a voice is judged: each judgement is a number with a definition.
//!
//! In: mel frames, samples, durations or embeddings of what was said and of what should have been.
//! Out: numbers, and advice where a number is out of its bounds. Runs no model.

pub mod frames; // mel frames that can be compared
pub mod warping; // which frame belongs to which, when lengths differ
pub mod distortion; // how far two spectra are apart, in dB
pub mod duration; // how far two lengths are apart
pub mod pitch; // how high a voice is
pub mod speaker; // how far two voices are apart
pub mod alignment; // whether text and sound found each other
pub mod scores; // all of these for one utterance, and their means

pub use alignment::{AlignmentHealth, HealthLimits};
pub use distortion::{Distortion, MeanMel, mel_cepstral_distortion};
pub use frames::MelFrames;
pub use pitch::{PitchConfig, PitchTrack};
pub use scores::{Scores, Tally};
pub use speaker::cosine_distance;
pub use warping::Band;

use tandem_units::Hint;

/// Why two things cannot be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MetricError {
    /// There is nothing to compare.
    #[error("there is no {what} to compare")]
    Empty {
        /// Of what.
        what: &'static str,
    },
    /// Two sizes that should be one.
    #[error("{what}: {found} cannot be compared with {expected}")]
    Size {
        /// Of what.
        what: &'static str,
        /// Of the one.
        found: usize,
        /// Of the other.
        expected: usize,
    },
    /// A value is NaN, infinite, or not what it should be.
    #[error("value {index} of the {what} is {value}, expected {expected}")]
    Value {
        /// Of what.
        what: &'static str,
        /// Where.
        index: usize,
        /// What stands there.
        value: f64,
        /// What may stand there.
        expected: &'static str,
    },
}

impl Hint for MetricError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Empty { .. } => "leave the utterance out: it has no sound or no text".into(),
            Self::Size { .. } => "compare only what was made with the same settings".into(),
            Self::Value { .. } => {
                "use an earlier checkpoint: the weights of this one have gone astray".into()
            }
        })
    }
}
