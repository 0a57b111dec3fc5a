//! What can go wrong between a corpus and its batches, as a fact, a cause and a way out.

use std::io;
use std::path::PathBuf;
use tandem_units::Hint;

/// A fault that stops the work on a corpus. A single bad row is not one: it is a
/// rejected row, listed and passed over.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file of the corpus or the cache could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file of the cache could not be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Hint for DataError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path for typing errors".into())
            }
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("give yourself read permission, or run as the owner".into())
            }
            Self::Read { .. } => None,
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some(
                "free some disk space and run the same command again: finished work is kept".into(),
            ),
            Self::Write { .. } => {
                Some("name a directory you may write to with `--cache-dir`".into())
            }
        }
    }
}
