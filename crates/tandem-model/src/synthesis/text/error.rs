//! What can fail between a text and its samples.

use crate::synthesis::mel::SamplingOptions;
use crate::trained_voice::{KnownSpeaker, VoiceError};
use crate::vocoder::VocoderError;
use std::path::PathBuf;
use tandem_audio::AudioError;
use tandem_audio::mel::MelError;
use tandem_device::backend::DeviceError;
use tandem_text::{Language, TextError};
use tandem_units::Hint;

/// Why a text cannot be synthesized.
#[derive(Debug, thiserror::Error)]
pub enum SynthesisError {
    #[error(transparent)]
    Voice(#[from] VoiceError),
    #[error("the text front end that this voice was trained with cannot be opened")]
    FrontEnd(#[source] TextError),
    #[error("cannot read `{text}`")]
    Text {
        /// The beginning of the sentence.
        text: String,
        #[source]
        source: TextError,
    },
    #[error("the text contains no pronounceable word")]
    NothingToSay,
    /// A language that was not in the training data.
    #[error("this voice does not speak `{language}`")]
    Language { language: Language, known: Vec<String> },
    #[error("this voice has no speaker `{name}`")]
    Speaker { name: String, known: Vec<String> },
    #[error("cannot use `{}` as a reference", path.display())]
    Reference {
        path: PathBuf,
        #[source]
        source: AudioError,
    },
    /// The mel frames of the reference cannot be computed.
    #[error(transparent)]
    Mel(#[from] MelError),
    #[error("{key} is {value}, expected {expected}")]
    SamplingOptions { key: &'static str, value: String, expected: &'static str },
    #[error("the vocoder cannot turn the predicted mel frames into samples")]
    Vocoder(#[from] VocoderError),
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl SynthesisError {
    pub(super) fn of_text(text: &str, source: TextError) -> SynthesisError {
        let short: String = text.chars().take(60).collect();
        let dots = if short.len() < text.len() { "…" } else { "" };
        SynthesisError::Text { text: short + dots, source }
    }

    pub(super) fn unknown_speaker(name: &str, known: &[KnownSpeaker]) -> SynthesisError {
        let known = known.iter().map(|speaker| speaker.name.clone()).collect();
        SynthesisError::Speaker { name: name.to_owned(), known }
    }
}

impl Hint for SynthesisError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Voice(error) => error.hint(),
            Self::FrontEnd(error) => error.hint(),
            Self::Text { source, .. } => match source {
                TextError::LanguageNotConfigured { configured, .. }
                | TextError::ScriptNotConfigured { configured, .. } => {
                    let known: Vec<_> = configured.iter().map(|language| language.tag()).collect();
                    Some(format!("this voice reads {}", known.join(", ")))
                }
                other => other.hint(),
            },
            Self::NothingToSay => Some("write at least one word".into()),
            Self::Language { known, .. } => Some(format!("it speaks {}", known.join(", "))),
            Self::Speaker { known, .. } if known.is_empty() => {
                Some("give a recording to imitate with `--reference`".into())
            }
            Self::Speaker { known, .. } => Some(format!("it has {}", known.join(", "))),
            Self::Reference { source, .. } => match source {
                AudioError::TooShort { .. } | AudioError::Silent { .. } => {
                    Some("record a few seconds of clear speech".into())
                }
                other => other.hint(),
            },
            Self::Mel(error) => error.hint(),
            Self::SamplingOptions { .. } => Some("leave it out for the default".into()),
            Self::Vocoder(error) => error.hint(),
            Self::Device(error) => error.hint(),
        }
    }
}

/// Refuses values outside of the useful range.
pub(super) fn check_sampling(sampling: &SamplingOptions) -> Result<(), SynthesisError> {
    let wrong =
        |key, value: String, expected| SynthesisError::SamplingOptions { key, value, expected };
    if !(1..=1000).contains(&sampling.steps) {
        let expected = "a whole number from 1 to 1000";
        return Err(wrong("the number of steps", sampling.steps.to_string(), expected));
    }
    if !(0.0..=2.0).contains(&sampling.temperature) {
        let expected = "a number from 0 to 2";
        return Err(wrong("the temperature", sampling.temperature.to_string(), expected));
    }
    if !(0.25..=4.0).contains(&sampling.speed) {
        let expected = "a number from 0.25 to 4";
        return Err(wrong("the speed", sampling.speed.to_string(), expected));
    }
    Ok(())
}
