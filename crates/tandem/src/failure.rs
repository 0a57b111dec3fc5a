//! An error as a user sees it: the fact, its causes, and the way out; once, at the top.

pub use crate::advised::Advised;
use crate::printer::ReaderGone;
use owo_colors::OwoColorize;
use std::error::Error;
use tandem_data::DataError;
use tandem_data::audio::AudioError;
use tandem_data::audio::mel::MelError;
use tandem_data::batch::BatchError;
use tandem_data::text::TextError;
use tandem_device::backend::DeviceError;
use tandem_device::memory::MemoryError;
use tandem_device::placement::PlacementError;
use tandem_eval::evaluate::EvaluateError;
use tandem_insight::chart::ChartError;
use tandem_insight::compare::CompareError;
use tandem_insight::measured::MeasureError;
use tandem_insight::plan::PlanError;
use tandem_insight::scaling::ScalingError;
use tandem_model::checkpoint::CheckpointError;
use tandem_model::device_mel::DeviceMelError;
use tandem_model::synthesis::text::SynthesisError;
use tandem_model::trained_voice::VoiceError;
use tandem_model::vocoder::wav::WavError;
use tandem_page::PageError;
use tandem_pipeline::PipelineError;
use tandem_telemetry::TelemetryError;
use tandem_train::TrainError;
use tandem_train::log::picture::PictureError;
use tandem_units::Hint;

/// The whole error as text: `error:`, one `caused by:` for each cause, `hint:` where there is one.
pub fn explain(error: &anyhow::Error) -> String {
    let mut text = format!("{} {error}", "error:".red().bold());
    for cause in error.chain().skip(1) {
        text.push_str(&format!("\n  caused by: {cause}"));
    }
    if let Some(hint) = error.chain().find_map(hint_of) {
        text.push_str(&format!("\n{} {hint}", "hint:".cyan().bold()));
    }
    text
}

/// The way out of an error, where it knows one.
pub fn way_out(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(hint_of)
}

/// Whether the reader of our output went away (`tandem ... | head`): no fault of the run's.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<ReaderGone>())
}

/// Whether the user stopped it.
pub fn is_cancelled(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(PipelineError::Cancelled))
            || cause.downcast_ref().is_some_and(TrainError::is_cancelled)
    })
}

fn hint_of(cause: &(dyn Error + 'static)) -> Option<String> {
    fn of<E: Error + Hint + 'static>(cause: &(dyn Error + 'static)) -> Option<String> {
        cause.downcast_ref::<E>().and_then(Hint::hint)
    }
    // One line for each error type that commands pass on.
    of::<Advised>(cause)
        .or_else(|| of::<DataError>(cause))
        .or_else(|| of::<TextError>(cause))
        .or_else(|| of::<AudioError>(cause))
        .or_else(|| of::<MelError>(cause))
        .or_else(|| of::<BatchError>(cause))
        .or_else(|| of::<CheckpointError>(cause))
        .or_else(|| of::<MemoryError>(cause))
        .or_else(|| of::<VoiceError>(cause))
        .or_else(|| of::<EvaluateError>(cause))
        .or_else(|| of::<SynthesisError>(cause))
        .or_else(|| of::<WavError>(cause))
        .or_else(|| of::<TrainError>(cause))
        .or_else(|| of::<MeasureError>(cause))
        .or_else(|| of::<PlanError>(cause))
        .or_else(|| of::<PictureError>(cause))
        .or_else(|| of::<PipelineError>(cause))
        .or_else(|| of::<TelemetryError>(cause))
        .or_else(|| of::<PageError>(cause))
        .or_else(|| of::<PlacementError>(cause))
        .or_else(|| of::<DeviceError>(cause))
        .or_else(|| of::<DeviceMelError>(cause))
        .or_else(|| of::<CompareError>(cause))
        .or_else(|| of::<ScalingError>(cause))
        .or_else(|| of::<ChartError>(cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;
    use std::io;

    #[test]
    fn an_error_shows_its_causes_and_the_hint_of_the_cause() {
        let cause = DataError::Read {
            path: "metadata.csv".into(),
            source: io::Error::from(io::ErrorKind::NotFound),
        };
        let error = Err::<(), _>(cause).context("cannot prepare `corpus`").unwrap_err();
        let plain = anstream::adapter::strip_str(&explain(&error)).to_string();
        assert_eq!(
            plain,
            "error: cannot prepare `corpus`\n  caused by: cannot read `metadata.csv`\n  \
             caused by: entity not found\nhint: check the path for typing errors"
        );
    }
}
