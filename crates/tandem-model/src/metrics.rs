//! Metrics of synthesized speech.
//!
//! In: mel frames, samples, durations or embeddings of synthesized and recorded speech. Out: metrics, and
//! advice if a metric is out of its limits. Runs no model.

pub mod frames; // mel frames that can be compared
pub mod warping; // dynamic time warping
pub mod distortion; // mel-cepstral distortion, in dB
pub mod duration; // errors of durations
pub mod modulation; // fine detail and level
pub mod pitch; // fundamental frequency
pub mod speaker; // distance of two speaker embeddings
pub mod alignment; // health of an alignment
pub mod scores; // all metrics of one utterance, and their means

pub use alignment::{AlignmentHealth, HealthLimits};
pub use distortion::{Distortion, MeanMel, mel_cepstral_distortion};
pub use frames::MelFrames;
pub use modulation::{LEVEL_GATE, Modulation, level};
pub use pitch::{PitchConfig, PitchTrack};
pub use scores::{Scores, Tally};
pub use speaker::cosine_distance;
pub use warping::Band;

use tandem_units::Hint;

/// Why a metric cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MetricError {
    #[error("there is no {what} to compare")]
    Empty { what: &'static str },
    /// Two sizes should be equal.
    #[error("{what}: {found} cannot be compared with {expected}")]
    Size { what: &'static str, found: usize, expected: usize },
    /// A value is NaN, infinite, or out of range.
    #[error("value {index} of the {what} is {value}, expected {expected}")]
    Value { what: &'static str, index: usize, value: f64, expected: &'static str },
}

impl Hint for MetricError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Empty { .. } => "leave the utterance out: it has no audio or no text".into(),
            Self::Size { .. } => "compare only speech with the same settings".into(),
            Self::Value { .. } => {
                "use an earlier checkpoint: training has diverged in this one".into()
            }
        })
    }
}
