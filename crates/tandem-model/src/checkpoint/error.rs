//! What can fail with a checkpoint: the fact, the cause, and a hint.

pub use super::fault::Fault;
use std::io;
use std::path::PathBuf;
use tandem_units::Hint;

/// Why a checkpoint could not be written, read or used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Another process writes checkpoints there.
    #[error("`{}` is in use by {owner}", directory.display())]
    Busy {
        directory: PathBuf,
        /// Such as `process 812, for 14 s`.
        owner: String,
    },
    /// The device failed before its tensors were read back.
    #[error("the tensors cannot be read back from their device")]
    Device {
        #[source]
        source: Box<tandem_device::backend::DeviceError>,
    },
    /// A write failed. Older checkpoints are unchanged.
    #[error("cannot write checkpoint file `{}`", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The run directory cannot be listed.
    #[error("cannot read `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The path is neither a checkpoint nor a directory with checkpoints.
    #[error("there is no checkpoint at `{}`", path.display())]
    NotThere { path: PathBuf },
    /// The requested checkpoint is damaged.
    #[error("checkpoint `{}` cannot be used", path.display())]
    Broken {
        path: PathBuf,
        #[source]
        fault: Fault,
    },
    /// There are checkpoints, but all of them are damaged.
    #[error("none of the {} checkpoints in `{}` can be used: {}", broken.len(), directory.display(),
        broken.iter().map(Broken::to_string).collect::<Vec<_>>().join("; "))]
    NoneWhole {
        directory: PathBuf,
        /// Newest first.
        broken: Vec<Broken>,
    },
    /// The checkpoint that a run directory stands for is damaged, and another one is not.
    #[error("the checkpoint to use in `{}` is damaged: {}", directory.display(),
        damaged.iter().map(Broken::to_string).collect::<Vec<_>>().join("; "))]
    Damaged {
        directory: PathBuf,
        damaged: Vec<Broken>,
        /// The newest one that can be used.
        whole: PathBuf,
    },
    /// The checkpoints change faster than they can be read.
    #[error("the checkpoints in `{}` change while they are read", directory.display())]
    Restless { directory: PathBuf },
    /// The mark of the best checkpoint cannot be read.
    #[error("`{}` cannot be used", path.display())]
    BestUnreadable {
        path: PathBuf,
        #[source]
        fault: Fault,
    },
    /// NaN or infinite scores cannot be compared.
    #[error("the score of the checkpoint is not finite: {score}")]
    Score { score: f64 },
    /// A name that cannot be a file of a checkpoint.
    #[error("`{name}` cannot be a part of a checkpoint: {why}")]
    PartName { name: String, why: &'static str },
    /// A document that cannot be written as JSON, or is not what was expected.
    #[error("document `{name}` of a checkpoint has unexpected contents")]
    Document {
        name: String,
        #[source]
        source: serde_json::Error,
    },
    /// A tensor set or document is missing.
    #[error("the checkpoint has no `{name}`")]
    PartMissing { name: String },
    /// A shape does not match the number of values.
    #[error("tensor `{name}` of shape {shape:?} was given {values} values")]
    ValueCount { name: String, shape: Vec<usize>, values: usize },
    #[error("two tensors are called `{name}`")]
    TensorTwice { name: String },
    #[error("the checkpoint has no tensor `{name}`")]
    TensorMissing { name: String },
    #[error("the checkpoint has {} tensors that are not in the model, such as `{}`",
        names.len(), names.first().map_or("", String::as_str))]
    TensorsLeft { names: Vec<String> },
    #[error("tensor `{name}` has shape {found:?}, the model needs {expected:?}")]
    Shape { name: String, expected: Vec<usize>, found: Vec<usize> },
    #[error("tensor `{name}` has {found}, the model needs {expected}")]
    Kind { name: String, expected: &'static str, found: &'static str },
}

/// A damaged checkpoint that was skipped.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {fault}", path.file_name().unwrap_or_default().to_string_lossy())]
pub struct Broken {
    pub path: PathBuf,
    #[source]
    pub fault: Fault,
}

impl Hint for Broken {}

impl Hint for CheckpointError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Busy { .. } => {
                "wait for that run or stop it, or use another `--checkpoint-dir`".into()
            }
            Self::Device { source } => return source.hint(),
            Self::Write { source, .. } if is_full(source) => {
                "free some disk space, or lower `--keep`; checkpoints that were complete before are intact"
                    .into()
            }
            Self::Write { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
                "raise the limit for file sizes (`ulimit -f`)".into()
            }
            Self::Write { .. } => {
                "set `--checkpoint-dir` to a directory with write permission".into()
            }
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "grant read permission, or run as the owner".into()
            }
            Self::Read { .. } => return None,
            Self::NotThere { .. } => {
                "give a run directory of `tandem train`, or one of its `step-...` directories".into()
            }
            Self::Broken { fault: Fault::Version { .. }, .. } => {
                "use the version of the program that wrote it (manifest.json says which)".into()
            }
            Self::Broken { .. } => {
                "name another `step-...` directory of the run, or restore this one from a backup".into()
            }
            Self::Damaged { whole, .. } => format!(
                "restore it from a backup, or name `{}` instead of the run directory: it can be used",
                whole.display()
            ),
            Self::Restless { .. } => {
                "give one checkpoint, `RUN/step-...`, or keep more checkpoints in that run (`--keep`)"
                    .into()
            }
            Self::NoneWhole { .. } => {
                "restore one from a backup, or use another `--checkpoint-dir` to start over".into()
            }
            Self::BestUnreadable { path, .. } => {
                format!("remove `{}`: the next best checkpoint writes it again", path.display())
            }
            Self::Document { .. } | Self::PartMissing { .. } => {
                "it was written by another version of the program, or for another purpose".into()
            }
            Self::TensorMissing { .. }
            | Self::TensorsLeft { .. }
            | Self::Shape { .. }
            | Self::Kind { .. } => "the checkpoint belongs to another model: use the `--model-size` \
                and text settings it was trained with, or another `--checkpoint-dir`"
                .into(),
            Self::Score { .. } => "the validation loss is NaN or infinite: lower `--lr`".into(),
            Self::PartName { .. } | Self::ValueCount { .. } | Self::TensorTwice { .. } => {
                return None;
            }
        };
        Some(hint)
    }
}

/// The disk or the quota of the user is full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
