//! What can go wrong with a checkpoint: as a fact, a cause and a way out.

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
        /// The run directory.
        directory: PathBuf,
        /// Who, such as `process 812, for 14 s`.
        owner: String,
    },
    /// The device failed before its tensors were read back.
    #[error("the tensors cannot be read back from their device")]
    Device {
        /// What the device said.
        #[source]
        source: Box<tandem_device::backend::DeviceError>,
    },
    /// The disk refused. Older checkpoints are what they were.
    #[error("cannot write checkpoint file `{}`", path.display())]
    Write {
        /// Which file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The run directory cannot be looked into.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// Which file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Neither a checkpoint nor a directory with checkpoints.
    #[error("there is no checkpoint at `{}`", path.display())]
    NotThere {
        /// What was named.
        path: PathBuf,
    },
    /// The checkpoint that was asked for is not whole.
    #[error("checkpoint `{}` cannot be used", path.display())]
    Broken {
        /// Its directory.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        fault: Fault,
    },
    /// There are checkpoints, and not one is whole.
    #[error("not one of {} checkpoints in `{}` can be used: {}", broken.len(), directory.display(),
        broken.iter().map(Broken::to_string).collect::<Vec<_>>().join("; "))]
    NoneWhole {
        /// The run directory.
        directory: PathBuf,
        /// All of them, newest first.
        broken: Vec<Broken>,
    },
    /// The checkpoints change faster than they can be read.
    #[error("the checkpoints in `{}` change while they are read", directory.display())]
    Restless {
        /// The run directory.
        directory: PathBuf,
    },
    /// The mark of the best checkpoint cannot be read.
    #[error("`{}` cannot be used", path.display())]
    BestUnreadable {
        /// The mark's file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        fault: Fault,
    },
    /// A score that cannot be compared.
    #[error("a checkpoint's score is {score}, which no other can be compared to")]
    Score {
        /// The score.
        score: f64,
    },
    /// A name that cannot be a file of a checkpoint.
    #[error("`{name}` cannot be a part of a checkpoint: {why}")]
    PartName {
        /// The name.
        name: String,
        /// The rule.
        why: &'static str,
    },
    /// A document that cannot be written as JSON, or is not what was expected.
    #[error("document `{name}` of a checkpoint does not fit")]
    Document {
        /// Its name.
        name: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A set of tensors or a document that should be there.
    #[error("the checkpoint has no `{name}`")]
    PartMissing {
        /// Its name.
        name: String,
    },
    /// A shape that does not fit its values.
    #[error("tensor `{name}` of shape {shape:?} was given {values} values")]
    ValueCount {
        /// The tensor.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
        /// How many values.
        values: usize,
    },
    /// The same name given to two tensors of a set.
    #[error("two tensors are called `{name}`")]
    TensorTwice {
        /// The name.
        name: String,
    },
    /// The model has a tensor that the checkpoint has not.
    #[error("the checkpoint has no tensor `{name}`")]
    TensorMissing {
        /// The tensor.
        name: String,
    },
    /// The checkpoint has tensors that the model has not.
    #[error("the checkpoint has {} tensors that the model has not, such as `{}`",
        names.len(), names.first().map_or("", String::as_str))]
    TensorsLeft {
        /// Their names.
        names: Vec<String>,
    },
    /// A tensor of another size than the model's.
    #[error("tensor `{name}` has shape {found:?}, the model needs {expected:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// What the model needs.
        expected: Vec<usize>,
        /// What is there.
        found: Vec<usize>,
    },
    /// A tensor of other numbers than the model's.
    #[error("tensor `{name}` holds {found}, the model needs {expected}")]
    Kind {
        /// The tensor.
        name: String,
        /// What the model needs.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
}

/// A checkpoint that was passed over.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {fault}", path.file_name().unwrap_or_default().to_string_lossy())]
pub struct Broken {
    /// Its directory.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub fault: Fault,
}

impl Hint for CheckpointError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Busy { .. } => {
                "wait for that run or end it, or name another `--checkpoint-dir`".into()
            }
            Self::Device { source } => return source.hint(),
            Self::Write { source, .. } if is_full(source) => {
                "free some disk space, or lower `--keep`: the checkpoints before are intact".into()
            }
            Self::Write { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
                "raise the limit for the size of a file (`ulimit -f`)".into()
            }
            Self::Write { .. } => {
                "name a directory you may write to with `--checkpoint-dir`".into()
            }
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "give yourself read permission, or run as the owner".into()
            }
            Self::Read { .. } => return None,
            Self::NotThere { .. } => {
                "name a run directory of `tandem train`, or one `step-...` inside of it".into()
            }
            Self::Broken { fault: Fault::Version { .. }, .. } => {
                "use the version of the program that wrote it (manifest.json says which)".into()
            }
            Self::Broken { .. } => {
                "name the run directory instead: its newest whole checkpoint is used".into()
            }
            Self::Restless { .. } => {
                "name one checkpoint, `RUN/step-...`, or let the run keep more of them (`--keep`)"
                    .into()
            }
            Self::NoneWhole { .. } => {
                "restore one from a copy, or name another `--checkpoint-dir` to start over".into()
            }
            Self::BestUnreadable { path, .. } => {
                format!("remove `{}`: the next best checkpoint writes it anew", path.display())
            }
            Self::Document { .. } | Self::PartMissing { .. } => {
                "it was written by another version of the program, or for another purpose".into()
            }
            Self::TensorMissing { .. }
            | Self::TensorsLeft { .. }
            | Self::Shape { .. }
            | Self::Kind { .. } => "the checkpoint is of another model: use the `--model-size` \
                and text settings it was trained with, or another `--checkpoint-dir`"
                .into(),
            Self::Score { .. } => "the loss it was made from is no number: lower `--lr`".into(),
            Self::PartName { .. } | Self::ValueCount { .. } | Self::TensorTwice { .. } => {
                return None;
            }
        };
        Some(hint)
    }
}

/// No room on the disk, or none that this user may have.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
