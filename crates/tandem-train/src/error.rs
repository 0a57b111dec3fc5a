//! What can go wrong between a corpus and its consumer.

use std::path::PathBuf;
use tandem_data::DataError;
use tandem_data::audio::mel::MelError;
use tandem_data::batch::BatchError;
use tandem_data::corpus::RejectedRow;
use tandem_data::text::TextError;
use tandem_pipeline::PipelineError;
use tandem_telemetry::TelemetryError;
use tandem_units::Hint;

/// A fault that stops preparing or feeding.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// Corpus or cache.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The text front end cannot work at all.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The mel settings make no sense.
    #[error(transparent)]
    Mel(#[from] MelError),
    /// A stage failed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The record, the log or the device samples of a run.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// Settings that cannot be written down.
    #[error("the settings cannot be written as JSON")]
    Settings(#[source] serde_json::Error),
    /// A setting that cannot be carried out.
    #[error("`{key}` is {value}, expected {expected}")]
    BadSetting {
        /// Which one, as in a configuration file.
        key: &'static str,
        /// The flag that sets it, where there is one.
        flag: Option<&'static str>,
        /// What it was set to.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// More rows are unusable than the limit allows.
    #[error(
        "{} of {rows} rows are unusable ({:.1} %), the limit is {:.1} %; `{}` lists them",
        rejected.len(), 100.0 * rejected.len() as f64 / *rows as f64, 100.0 * limit, list.display()
    )]
    TooManyRejected {
        /// Unusable rows.
        rejected: Vec<RejectedRow>,
        /// All rows.
        rows: usize,
        /// The share that is allowed.
        limit: f64,
        /// The file that lists them.
        list: PathBuf,
    },
    /// The batch settings do not fit the corpus.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Not one of the sampled recordings could be read.
    #[error("nothing could be measured: not one sampled recording can be read")]
    NothingMeasured,
    /// More speakers or languages than a batch can number.
    #[error("the corpus names more than 65,535 {what}")]
    TooManyNames {
        /// Speakers or languages.
        what: &'static str,
    },
    /// Not one row can be used.
    #[error("not one of {rows} rows is usable; `{}` says why", list.display())]
    NothingUsable {
        /// Why, row by row.
        rejected: Vec<RejectedRow>,
        /// All rows.
        rows: usize,
        /// The file that lists them.
        list: PathBuf,
    },
}

impl TrainError {
    /// The rows that made it fail, where too many are unusable.
    pub fn rejected(&self) -> &[RejectedRow] {
        match self {
            Self::TooManyRejected { rejected, .. } | Self::NothingUsable { rejected, .. } => {
                rejected
            }
            _ => &[],
        }
    }

    /// Whether the user asked to stop.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Pipeline(PipelineError::Cancelled))
    }
}

impl Hint for TrainError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Data(error) => error.hint(),
            Self::Text(error) => error.hint(),
            Self::Mel(error) => error.hint(),
            Self::Pipeline(error) => error.hint(),
            Self::Batch(error) => error.hint(),
            Self::Telemetry(error) => error.hint(),
            Self::Settings(_) => None,
            Self::BadSetting { key, flag: Some(flag), .. } => Some(format!(
                "correct `{flag}` or the key `{key}`, or leave it out for the default"
            )),
            Self::BadSetting { key, flag: None, .. } => {
                Some(format!("correct `{key}`, or leave it out for the default"))
            }
            Self::NothingMeasured => Some("run `tandem prepare --verify` to see why".into()),
            Self::TooManyNames { .. } => {
                Some("check that the manifest's columns are what they should be".into())
            }
            Self::TooManyRejected { .. } => {
                Some("mend the rows by the list's last column, or raise `--max-rejected`".into())
            }
            Self::NothingUsable { .. } => Some("mend the rows by the list's last column".into()),
        }
    }
}
