//! What can go wrong between a corpus and its consumer.

use crate::train_settings::Precision;
use std::path::PathBuf;
use tandem_data::DataError;
use tandem_data::audio::mel::MelError;
use tandem_data::batch::BatchError;
use tandem_data::corpus::RejectedRow;
use tandem_data::text::TextError;
use tandem_device::backend::DeviceError;
use tandem_device::memory::MemoryError;
use tandem_model::checkpoint::CheckpointError;
use tandem_model::device_mel::DeviceMelError;
use tandem_model::gradients::ReduceError;
use tandem_model::trained_voice::VoiceError;
use tandem_model::weights::WeightsError;
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
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
    /// Non-finite gradients, one step after the other.
    #[error("{steps} steps in a row, up to step {step}, had NaN or infinite gradients")]
    NonFinite {
        steps: u32,
        /// The last one.
        step: u64,
    },
    /// The device has no such numbers.
    #[error("the model device cannot compute in {asked:?}")]
    Precision {
        /// What was asked for.
        asked: Precision,
    },
    /// Nothing says when training ends.
    #[error("neither steps nor epochs say when training ends")]
    Endless,
    /// A checkpoint cannot be written or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Gradients of several processes cannot be summed.
    #[error(transparent)]
    Reduce(#[from] ReduceError),
    /// The checkpoint writer itself failed.
    #[error("the checkpoint writer failed: {why}; {}", safe_step(*safe))]
    CheckpointWriter {
        why: String,
        /// The newest step that is on disk.
        safe: Option<u64>,
    },
    /// The validator or another background thread made no progress at the end of a run.
    #[error("{what} did not end: {why}")]
    BackgroundThread { what: &'static str, why: String },
    /// A list of rows to skip cannot be used.
    #[error("line {line} of `{}` is not a batch number, a row id and a role", path.display())]
    SkipList { path: PathBuf, line: usize },
    /// Too many rows failed within one epoch.
    #[error(
        "{failed} of {rows} rows could not be read in epoch {epoch} ({:.1} %), the limit is {:.1} %; the last: `{last}`: {why}",
        100.0 * *failed as f64 / *rows as f64, 100.0 * limit
    )]
    TooManyFailed {
        failed: usize,
        rows: usize,
        epoch: u32,
        limit: f64,
        /// The id of the row that failed last.
        last: String,
        why: String,
    },
    /// A voice cannot be read.
    #[error(transparent)]
    Voice(#[from] VoiceError),
    /// Weights do not fit.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A device has not enough memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Mel frames cannot be made on the data device.
    #[error(transparent)]
    DeviceMel(#[from] DeviceMelError),
    /// There is no device that could make mel frames.
    #[error("mel frames are to be made on the data device, which is the processor")]
    NoMelDevice,
    /// There is nothing to resume.
    #[error("there is no checkpoint in `{}`", directory.display())]
    NothingToResume {
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// A run is there already.
    #[error("`{}` holds a run already, at step {step}", directory.display())]
    RunExists {
        /// The run's directory.
        directory: PathBuf,
        /// Its newest checkpoint.
        step: u64,
    },
    /// The data of a resumed run changed. `--allow-changes` continues with the new data.
    #[error("the run at step {step} cannot continue as it was: {what}")]
    Changed {
        step: u64,
        /// What changed, and what that means.
        what: String,
    },
    /// A resumed voice does not fit the settings or the corpus, whatever is allowed.
    #[error("the run at step {step} cannot continue: {what}")]
    Incompatible {
        step: u64,
        what: String,
        /// What to type or do instead.
        way_out: String,
    },
    /// There is no room for what a run must put somewhere.
    #[error("cannot write to `{}`", path.display())]
    Scratch {
        /// Where.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Not one of the sampled recordings could be read.
    #[error("nothing could be measured: not one sampled recording can be read")]
    NothingMeasured,
    /// The corpus has languages that the voice has never learned.
    #[error(
        "`{}` has rows in {}, the voice knows {}",
        corpus.display(), unknown.join(", "), known.join(", ")
    )]
    UnknownLanguages {
        /// Which corpus.
        corpus: PathBuf,
        /// Tags of those languages.
        unknown: Vec<String>,
        /// Tags of the voice's own.
        known: Vec<String>,
    },
    /// Recordings of the validation corpus are trained on.
    #[error(
        "{rows} of {of} recordings of `{}` are trained on too, such as `{first}`",
        corpus.display()
    )]
    LearnedFrom {
        /// The validation corpus.
        corpus: PathBuf,
        /// So many.
        rows: usize,
        /// Of so many.
        of: usize,
        /// The id of the first.
        first: String,
    },
    /// The corpus has no rows of the kind that is asked for.
    #[error("`{}` has no such rows", corpus.display())]
    NoRows {
        /// Which corpus.
        corpus: PathBuf,
    },
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

fn safe_step(safe: Option<u64>) -> String {
    match safe {
        Some(step) => format!("the checkpoint of step {step} is safe on disk"),
        None => "this run has no checkpoint on disk yet".into(),
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
            Self::Checkpoint(error) => error.hint(),
            Self::Voice(error) => error.hint(),
            Self::Weights(error) => error.hint(),
            Self::Device(error) => error.hint(),
            Self::Memory(error) => error.hint(),
            Self::DeviceMel(error) => error.hint(),
            Self::NoMelDevice => Some("leave out `--mel-on device`, or name a GPU".into()),
            Self::Thread(_) => Some("the system allows no more threads; see `ulimit -u`".into()),
            Self::NonFinite { .. } => {
                Some("resume with a lower `--lr`, or with `--mixed-precision off`".into())
            }
            Self::Precision { .. } => Some("use `--mixed-precision off`".into()),
            Self::Endless => Some("give `--max-steps` or `--epochs`".into()),
            Self::NothingToResume { .. } => Some("leave out `--resume` to begin a run".into()),
            Self::RunExists { .. } => {
                Some("add `--resume` to go on, or name another `--checkpoint-dir`".into())
            }
            Self::Changed { .. } => Some(
                "start a new run in another `--checkpoint-dir`, or add `--allow-changes` to \
                 continue with the data as it is now, from the start of the next epoch"
                    .into(),
            ),
            Self::Reduce(error) => error.hint(),
            Self::Incompatible { way_out, .. } => Some(way_out.clone()),
            Self::CheckpointWriter { .. } => {
                Some("check the disk of `--checkpoint-dir`, then add `--resume`".into())
            }
            Self::BackgroundThread { .. } => {
                Some("the device or the disk does not answer; the run can be resumed".into())
            }
            Self::SkipList { .. } => {
                Some("separate the columns by tabs; the role is `utterance` or `reference`".into())
            }
            Self::TooManyFailed { .. } => Some(
                "check that the disk with the recordings is mounted and readable, then add \
                 `--resume`; `--max-rejected` sets the limit"
                    .into(),
            ),
            Self::BadSetting { key, flag: Some(flag), .. } => Some(format!(
                "correct `{flag}` or the key `{key}`, or leave it out for the default"
            )),
            Self::BadSetting { key, flag: None, .. } => {
                Some(format!("correct `{key}`, or leave it out for the default"))
            }
            Self::Scratch { .. } => Some("name another place with TMPDIR".into()),
            Self::NothingMeasured => Some("run `tandem prepare --verify` to see why".into()),
            Self::UnknownLanguages { .. } => Some(
                "take those rows out of the corpus, or train on a corpus that has their languages \
                 too; where a language was only guessed wrong, name it in the manifest's \
                 `language` column"
                    .into(),
            ),
            Self::LearnedFrom { .. } => Some(
                "a voice shows what it has learned on what it never heard: take those rows out of \
                 one of the two, or leave out `--val-data` to validate on rows held out"
                    .into(),
            ),
            Self::NoRows { .. } => Some("`tandem prepare` says which rows there are".into()),
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
