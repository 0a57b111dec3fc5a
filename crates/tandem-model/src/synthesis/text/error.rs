//! What can go wrong between a text and its sound.

use crate::synthesis::mel::SamplingOptions;
use crate::trained_voice::{KnownSpeaker, VoiceError};
use crate::vocoder::VocoderError;
use std::path::PathBuf;
use tandem_data::audio::AudioError;
use tandem_data::audio::mel::MelError;
use tandem_data::text::{Language, TextError};
use tandem_device::backend::DeviceError;
use tandem_units::Hint;

/// Why a text is not told.
#[derive(Debug, thiserror::Error)]
pub enum SynthesisError {
    /// The voice cannot be read.
    #[error(transparent)]
    Voice(#[from] VoiceError),
    /// The voice's way to read text cannot be set up.
    #[error("texts cannot be read the way this voice was trained")]
    FrontEnd(#[source] TextError),
    /// A part of the text cannot be read.
    #[error("cannot read `{text}`")]
    Text {
        /// Its beginning.
        text: String,
        /// What is wrong with it.
        #[source]
        source: TextError,
    },
    /// Not one word.
    #[error("the text has nothing to say")]
    NothingToSay,
    /// A language that the voice has not learned.
    #[error("this voice does not speak `{language}`")]
    Language {
        /// Which.
        language: Language,
        /// Those it has learned.
        known: Vec<String>,
    },
    /// A name that is not one of its speakers.
    #[error("this voice keeps no speaker `{name}`")]
    Speaker {
        /// What was asked for.
        name: String,
        /// Those it keeps.
        known: Vec<String>,
    },
    /// The recording to imitate cannot be used.
    #[error("cannot use `{}` as a reference", path.display())]
    Reference {
        /// Which recording.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: AudioError,
    },
    /// No mel frames of the reference.
    #[error(transparent)]
    Mel(#[from] MelError),
    /// A setting of the manner makes no sense.
    #[error("{key} is {value}, expected {expected}")]
    SamplingOptions {
        /// Which.
        key: &'static str,
        /// What was asked for.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// No sound of the frames.
    #[error("the voice spoke, and no sound can be made of it")]
    Vocoder(#[from] VocoderError),
    /// The device failed.
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
            Self::Speaker { known, .. } => Some(format!("it keeps {}", known.join(", "))),
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

/// Refuses what would not be speech.
pub(super) fn check_manner(sampling: &SamplingOptions) -> Result<(), SynthesisError> {
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
