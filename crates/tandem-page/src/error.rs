//! Errors of pages, with hints.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use tandem_telemetry::TelemetryError;
use tandem_units::Hint;

/// A run cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Nothing there to follow.
    #[error("there is no run record in `{}`", path.display())]
    NoRecord { path: PathBuf },
    /// Another program listens there.
    #[error("port {} on this machine is in use", address.port())]
    PortTaken {
        /// Where the page was to be.
        address: SocketAddr,
    },
    /// The port cannot be used for another reason.
    #[error("cannot open a page at {address}")]
    Listen {
        /// Where the page was to be.
        address: SocketAddr,
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
            Self::PortTaken { .. } => Some("choose another port, or 0 for any free port".into()),
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("use a port above 1023, or 0 for any free port".into())
            }
            Self::Record(error) => error.hint(),
            Self::Listen { .. } | Self::Thread { .. } | Self::Read { .. } => None,
        }
    }
}
