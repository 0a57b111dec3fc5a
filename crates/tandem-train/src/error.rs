//! Errors of preparing, feeding and training, each with a hint.

use crate::prepare::too_long::TooLong;
use crate::train_settings::Precision;
use std::path::PathBuf;
use tandem_audio::mel::MelError;
use tandem_cluster::ClusterError;
use tandem_data::DataError;
use tandem_data::batch::BatchError;
use tandem_data::corpus::RejectedRow;
use tandem_device::backend::DeviceError;
use tandem_device::memory::MemoryError;
use tandem_model::checkpoint::CheckpointError;
use tandem_model::device_mel::DeviceMelError;
use tandem_model::gradients::ReduceError;
use tandem_model::trained_voice::VoiceError;
use tandem_model::vocoder::VocoderError;
use tandem_model::weights::WeightsError;
use tandem_pipeline::PipelineError;
use tandem_settings::OutOfRange;
use tandem_telemetry::TelemetryError;
use tandem_text::TextError;
use tandem_units::Hint;

/// An error that stops preparing, feeding or training.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Text(#[from] TextError),
    #[error(transparent)]
    Mel(#[from] MelError),
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The record, the log or the device samples of a run.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    #[error("the settings cannot be written as JSON")]
    Settings(#[source] serde_json::Error),
    #[error("{workers} workers are too many: at most {most} are of use on {cores} cores")]
    TooManyWorkers { workers: usize, most: usize, cores: usize },
    #[error("`train.judge` cannot be used")]
    Judge(#[from] crate::judge::JudgeError),
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// A setting does not fit another one.
    #[error("`{key}` is {value}, expected {expected}")]
    BadSetting {
        /// The key in a configuration file.
        key: &'static str,
        /// The flag that sets it.
        flag: &'static str,
        value: String,
        expected: &'static str,
    },
    #[error(
        "{} of {rows} rows are unusable ({:.1} %), the limit is {:.1} %; `{}` lists them",
        rejected.len(), 100.0 * rejected.len() as f64 / *rows as f64, 100.0 * limit, list.display()
    )]
    TooManyRejected {
        rejected: Vec<RejectedRow>,
        rows: usize,
        /// Share of rows.
        limit: f64,
        /// The file that lists the rejected rows.
        list: PathBuf,
        /// Those beyond the length limits.
        too_long: Vec<TooLong>,
    },
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
    /// Consecutive steps with non-finite gradients.
    #[error("{steps} steps in a row, up to step {step}, had NaN or infinite gradients")]
    NonFinite {
        steps: u32,
        /// The last of them.
        step: u64,
    },
    #[error("the model device cannot compute in {requested:?}")]
    Precision { requested: Precision },
    #[error("neither a number of steps nor a number of epochs is set")]
    Endless,
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Gradients of several processes cannot be summed.
    #[error(transparent)]
    Reduce(#[from] ReduceError),
    /// Another rank is lost or stopped.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Another rank could not process its rows.
    #[error("another rank cannot process rows: {why}")]
    RemoteRows { why: String },
    /// The weights of a rank are not those of rank 0.
    #[error(
        "the weights of rank {rank} on host {host} differ from those of rank 0 at step {step}: its \
         machine or its device computes wrong"
    )]
    Drift { rank: usize, host: String, step: u64 },
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
    /// The temporary file of the mel frames that a voice predicts.
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
    #[error(transparent)]
    Voice(#[from] VoiceError),
    #[error(transparent)]
    Vocoder(#[from] VocoderError),
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    DeviceMel(#[from] DeviceMelError),
    #[error("mel frames cannot be computed on the data device: it is the CPU")]
    NoMelDevice,
    #[error("there is no checkpoint in `{}`", directory.display())]
    NothingToResume { directory: PathBuf },
    #[error("`{}` holds a run already, at step {step}", directory.display())]
    RunExists {
        directory: PathBuf,
        /// The step of its newest checkpoint.
        step: u64,
    },
    /// The data of a resumed run changed. `--allow-changes` continues with the new data.
    #[error("the run at step {step} cannot continue as it was: {what}")]
    Changed {
        step: u64,
        /// What changed, and the consequence.
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
    /// The voice of `--from` does not fit the settings.
    #[error("the voice in `{}` cannot be fine-tuned with these settings: {what}", path.display())]
    OtherVoice {
        path: PathBuf,
        what: String,
        /// What to type or do instead.
        way_out: String,
    },
    /// The scratch directory of a profile cannot be written.
    #[error("cannot write to `{}`", path.display())]
    Scratch {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("nothing could be measured: none of the sampled recordings can be read")]
    NothingMeasured,
    /// The corpus has languages that the voice was not trained on.
    #[error(
        "`{}` has rows in {}, the voice was trained on {}",
        corpus.display(), unknown.join(", "), known.join(", ")
    )]
    UnknownLanguages {
        corpus: PathBuf,
        /// Language tags.
        unknown: Vec<String>,
        /// Language tags of the voice.
        known: Vec<String>,
    },
    /// Recordings of the validation corpus are in the training corpus, too.
    #[error(
        "{rows} of {of} recordings of `{}` are also trained on, such as `{first}`",
        corpus.display()
    )]
    ValidationOverlap {
        /// The validation corpus.
        corpus: PathBuf,
        rows: usize,
        of: usize,
        /// The id of the first one.
        first: String,
    },
    /// The corpus has no usable rows of the requested split.
    #[error("`{}` has no usable rows of this split", corpus.display())]
    NoRows { corpus: PathBuf },
    /// More speakers or languages than a 16-bit number can count.
    #[error("the corpus names more than 65,535 {what}")]
    TooManyNames {
        /// Speakers or languages.
        what: &'static str,
    },
    /// The saved state of a loader belongs to other data or other batches.
    #[error("the state does not fit this loader: {what}")]
    LoaderState { what: String },
    #[error("none of {rows} rows is usable; `{}` lists the reasons", list.display())]
    NothingUsable {
        rejected: Vec<RejectedRow>,
        rows: usize,
        /// The file that lists the rejected rows.
        list: PathBuf,
        /// Those beyond the length limits.
        too_long: Vec<TooLong>,
    },
}

impl TrainError {
    /// The rejected rows, where too many rows are unusable.
    pub fn rejected(&self) -> &[RejectedRow] {
        match self {
            Self::TooManyRejected { rejected, .. } | Self::NothingUsable { rejected, .. } => {
                rejected
            }
            _ => &[],
        }
    }

    /// Whether the user stopped the run.
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
            Self::Settings(_) | Self::Judge(_) => None,
            Self::Checkpoint(error) => error.hint(),
            Self::Voice(error) => error.hint(),
            Self::Vocoder(error) => error.hint(),
            Self::Weights(error) => error.hint(),
            Self::Device(error) => error.hint(),
            Self::Memory(error) => error.hint(),
            Self::DeviceMel(error) => error.hint(),
            Self::NoMelDevice => Some("leave out `--mel-on device`, or select a GPU as data device".into()),
            Self::Thread(_) => Some("the system allows no more threads; see `ulimit -u`".into()),
            Self::NonFinite { .. } => {
                Some("resume with a lower `--lr`, or with `--mixed-precision off`".into())
            }
            Self::Precision { .. } => Some("use `--mixed-precision off`".into()),
            Self::Endless => Some("give `--max-steps` or `--epochs`".into()),
            Self::NothingToResume { .. } => Some("leave out `--resume` to start a new run".into()),
            Self::RunExists { .. } => {
                Some("add `--resume` to continue it, or use another `--checkpoint-dir`".into())
            }
            Self::Changed { .. } => Some(
                "start a new run in another `--checkpoint-dir`, or add `--allow-changes` to \
                 continue with the data as it is now, from the start of the next epoch"
                    .into(),
            ),
            Self::Reduce(error) => error.hint(),
            Self::Cluster(error) => error.hint(),
            Self::RemoteRows { .. } => None,
            Self::Drift { .. } => Some(
                "resume with `--resume` without that machine; check its memory and its device".into(),
            ),
            Self::Incompatible { way_out, .. } | Self::OtherVoice { way_out, .. } => {
                Some(way_out.clone())
            }
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
            Self::TooManyWorkers { most, .. } => Some(format!(
                "set `--num-workers` to {most} or less, or leave it out for one per core"
            )),
            Self::OutOfRange(error) => error.hint(),
            Self::BadSetting { key, flag, .. } => Some(format!(
                "correct `{flag}` or the key `{key}`, or leave it out for the default"
            )),
            Self::Scratch { .. } => Some("set TMPDIR to another directory".into()),
            Self::NothingMeasured => Some("run `tandem prepare --verify` to see why".into()),
            Self::UnknownLanguages { .. } => Some(
                "remove those rows from the corpus, or train on a corpus that has their languages, \
                 too; where a language was detected wrongly, set it in the manifest's \
                 `language` column"
                    .into(),
            ),
            Self::ValidationOverlap { .. } => Some(
                "validation needs recordings that are not trained on: remove those rows from one of \
                 the two corpora, or leave out `--val-data` to validate on held-out rows"
                    .into(),
            ),
            Self::LoaderState { .. } => Some(
                "create the loader with the corpus, split, seed and batch settings of the run that \
                 saved the state; workers and buffers may differ"
                    .into(),
            ),
            Self::NoRows { .. } => Some("`tandem prepare` shows which rows there are".into()),
            Self::TooManyNames { .. } => {
                Some("check that the columns of the manifest are in the right order".into())
            }
            Self::TooManyRejected { too_long, .. } => Some(format!(
                "{}repair the rows as the last column of the list suggests, or raise `--max-rejected`",
                keeping(too_long)
            )),
            Self::NothingUsable { too_long, .. } => Some(format!(
                "{}repair the rows as the last column of the list suggests",
                keeping(too_long)
            )),
        }
    }
}

/// The flags that keep rows beyond the length limits, as the start of a hint.
fn keeping(too_long: &[TooLong]) -> String {
    if too_long.is_empty() {
        return String::new();
    }
    let rows: usize = too_long.iter().map(|over| over.rows).sum();
    let flags: Vec<String> = too_long.iter().map(TooLong::flag).collect();
    format!("`{}` keeps {rows} rows that are too long; ", flags.join(" "))
}
