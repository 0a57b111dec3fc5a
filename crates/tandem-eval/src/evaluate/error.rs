//! Errors of an evaluation, each with a hint.

use std::path::PathBuf;
use tandem_audio::AudioError;
use tandem_audio::mel::MelError;
use tandem_data::corpus::Split;
use tandem_device::backend::DeviceError;
use tandem_model::metrics::MetricError;
use tandem_model::synthesis::text::SynthesisError;
use tandem_pipeline::PipelineError;
use tandem_text::TextError;
use tandem_units::Hint;

/// Why a voice or a row cannot be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    #[error("`{}` has no {} rows", corpus.display(), name(*split))]
    NoRows { corpus: PathBuf, split: Split },
    #[error("none of {rows} rows could be evaluated; the first: {first}")]
    NothingScored {
        rows: usize,
        /// The error of the first row.
        first: String,
    },
    #[error("cannot read the recording of `{id}`")]
    Recording {
        id: String,
        #[source]
        source: AudioError,
    },
    #[error("cannot read the text of `{id}`")]
    Text {
        id: String,
        #[source]
        source: TextError,
    },
    /// The file of word start times cannot be read.
    #[error("cannot read `{}`", path.display())]
    Timings {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Voice(#[from] SynthesisError),
    #[error(transparent)]
    Metric(#[from] MetricError),
    #[error(transparent)]
    Mel(#[from] MelError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The user stopped it.
    #[error("the evaluation was stopped")]
    Stopped(#[source] PipelineError),
}

impl EvaluateError {
    pub(super) fn cancelled() -> EvaluateError {
        EvaluateError::Stopped(PipelineError::Cancelled)
    }

    /// Whether only this row fails, so that the evaluation can continue.
    pub(super) fn is_row_error(&self) -> bool {
        match self {
            Self::Recording { .. } | Self::Metric(_) => true,
            Self::Text { source, .. } => !source.stops_the_run(),
            Self::Voice(error) => {
                matches!(error, SynthesisError::Language { .. } | SynthesisError::Vocoder(_))
            }
            _ => false,
        }
    }

    /// The error with its causes, on one line.
    pub(super) fn with_causes(&self) -> String {
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
                "list them in `metadata_eval.csv`, or evaluate training rows with `--train`".into(),
            ),
            Self::NoRows { .. } => Some("use another corpus".into()),
            Self::NothingScored { .. } => {
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
