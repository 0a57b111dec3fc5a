//! What can go wrong while a voice is judged.

use std::path::PathBuf;
use tandem_data::audio::AudioError;
use tandem_data::audio::mel::MelError;
use tandem_data::corpus::Split;
use tandem_data::text::TextError;
use tandem_device::backend::DeviceError;
use tandem_model::metrics::MetricError;
use tandem_model::synthesis::text::SynthesisError;
use tandem_pipeline::PipelineError;
use tandem_units::Hint;

/// Why a voice or a row is not judged.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// The corpus has no rows of this kind.
    #[error("`{}` has no {} rows", corpus.display(), name(*split))]
    NoRows {
        /// Which corpus.
        corpus: PathBuf,
        /// Which rows.
        split: Split,
    },
    /// Not one row could be judged.
    #[error("not one of {rows} rows could be judged; the first: {first}")]
    NothingJudged {
        /// How many there are.
        rows: usize,
        /// What is wrong with the first.
        first: String,
    },
    /// A recording cannot be read.
    #[error("cannot hear `{id}`")]
    Recording {
        /// Its name in the corpus.
        id: String,
        /// What is wrong with it.
        #[source]
        source: AudioError,
    },
    /// A text cannot be read.
    #[error("cannot read the text of `{id}`")]
    Text {
        /// Its name in the corpus.
        id: String,
        /// What is wrong with it.
        #[source]
        source: TextError,
    },
    /// The list of when words begin cannot be read.
    #[error("cannot read `{}`", path.display())]
    Timings {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The voice cannot speak.
    #[error(transparent)]
    Voice(#[from] SynthesisError),
    /// Two things cannot be compared.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// No mel frames.
    #[error(transparent)]
    Mel(#[from] MelError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The user stopped it.
    #[error("the voice was not judged to the end")]
    Stopped(#[source] PipelineError),
}

impl EvaluateError {
    /// As the user asked.
    pub(super) fn cancelled() -> EvaluateError {
        EvaluateError::Stopped(PipelineError::Cancelled)
    }

    /// Whether other rows may still be judged.
    pub(super) fn is_of_one_row(&self) -> bool {
        match self {
            Self::Recording { .. } | Self::Metric(_) => true,
            Self::Text { source, .. } => !source.stops_the_run(),
            Self::Voice(error) => {
                matches!(error, SynthesisError::Language { .. } | SynthesisError::Vocoder(_))
            }
            _ => false,
        }
    }

    /// The fact with its causes, on one line.
    pub(super) fn whole(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
}

impl Hint for EvaluateError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoRows { split: Split::Eval, .. } => Some(
                "name them in `metadata_eval.csv`, or judge training rows with `--train`".into(),
            ),
            Self::NoRows { .. } => Some("name another corpus".into()),
            Self::NothingJudged { .. } => {
                Some("check that corpus and voice have a language in common".into())
            }
            Self::Timings { .. } => Some("make it readable, or move it out of the corpus".into()),
            Self::Recording { source, .. } => source.hint(),
            Self::Text { source, .. } => source.hint(),
            Self::Voice(error) => error.hint(),
            Self::Metric(error) => error.hint(),
            Self::Mel(error) => error.hint(),
            Self::Device(error) => error.hint(),
            Self::Stopped(error) => error.hint(),
        }
    }
}

fn name(split: Split) -> &'static str {
    match split {
        Split::Train => "training",
        Split::Eval => "held-out",
    }
}
