//! Errors of pages, with hints.

use std::io;
use std::path::PathBuf;
use tandem_http::HttpError;
use tandem_telemetry::TelemetryError;
use tandem_units::Hint;

/// A run cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Nothing there to follow.
    #[error("there is no run record in `{}`", path.display())]
    NoRecord { path: PathBuf },
    /// The port cannot be used, or its server does not start.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A thread could not be started.
    #[error("cannot start the thread that {what}")]
    Thread {
        what: &'static str,
        #[source]
        source: io::Error,
    },
    /// A file of the run cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Not a record, or of another version.
    #[error(transparent)]
    Record(#[from] TelemetryError),
}

impl Hint for PageError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoRecord { .. } => Some(
                "name the `--checkpoint-dir` of a training run, or the `.jsonl` file itself".into(),
            ),
            Self::Http(error) => error.hint(),
            Self::Record(error) => error.hint(),
            Self::Thread { .. } | Self::Read { .. } => None,
        }
    }
}
