//! Why a voice cannot be exported.

use tandem_units::Hint;

/// Why a voice cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The checkpoint lacks a tensor that its own configuration needs.
    #[error("the voice has no tensor `{name}`")]
    Weight { name: String },
    #[error("there is no speaker to export")]
    NoSpeaker,
    /// A Piper voice has one way to turn text into symbols.
    #[error("some of the speakers read characters, others phonemes")]
    MixedReadings,
    #[error("`steps` is {steps}, expected 1 to {most}")]
    Steps { steps: usize, most: usize },
    #[error(transparent)]
    Vocoder(#[from] tandem_model::vocoder::VocoderError),
    #[error(transparent)]
    Weights(#[from] tandem_model::checkpoint::CheckpointError),
    #[error("the JSON file of the voice cannot be written")]
    Json(#[from] serde_json::Error),
}

impl Hint for ExportError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Weight { .. } => Some("use the version of tandem that trained the voice".into()),
            Self::NoSpeaker => Some("name a recording of a speaker with `--reference`".into()),
            Self::MixedReadings => {
                Some("choose speakers of one language with `--speaker`, one voice for each".into())
            }
            Self::Steps { .. } => Some("8 steps are enough for most voices".into()),
            Self::Vocoder(error) => error.hint(),
            Self::Weights(error) => error.hint(),
            Self::Json(_) => None,
        }
    }
}
