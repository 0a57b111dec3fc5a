//! Errors of records and traces, with hints.

use crate::event::Schema;
use std::io;
use std::path::PathBuf;
use tandem_units::Hint;

/// A record or a trace could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The file could not be created or opened.
    #[error("cannot open run record `{}`", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Reading failed half-way.
    #[error("cannot read run record `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// No complete line in it.
    #[error("run record `{}` is empty", path.display())]
    Empty { path: PathBuf },
    /// Not one of our records.
    #[error("`{}` is not a run record: its first line is not a `{}` header", path.display(), crate::event::RunHeader::FORMAT)]
    Foreign { path: PathBuf },
    /// Written by a program with another major format.
    #[error("run record `{}` has format {}.{}, this program reads {}.x", path.display(), found.major, found.minor, Schema::CURRENT.major)]
    Version { path: PathBuf, found: Schema },
    /// A file could not be put in place.
    #[error("cannot write `{}`", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start the thread that {what}")]
    Thread {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

impl Hint for TelemetryError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Open { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                Some("name another file: a run never overwrites an existing record".into())
            }
            Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path; a record is a `.jsonl` file in the run's directory".into())
            }
            Self::Empty { .. } => {
                Some("the run was stopped before it wrote its first line; start it again".into())
            }
            Self::Foreign { .. } => {
                Some("name the `.jsonl` file that `tandem train` wrote for the run".into())
            }
            Self::Version { found, .. } if found.major > Schema::CURRENT.major => {
                Some("read it with the newer program that wrote it".into())
            }
            Self::Version { .. } => Some("read it with the older program that wrote it".into()),
            Self::Open { .. } | Self::Read { .. } | Self::Write { .. } | Self::Thread { .. } => {
                None
            }
        }
    }
}
