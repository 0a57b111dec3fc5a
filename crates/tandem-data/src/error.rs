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
    /// The corpus is read-only and there is no user directory to keep its cache in.
    #[error("`{}` cannot be written and this user has no home directory", corpus.display())]
    NoHome {
        /// The corpus.
        corpus: PathBuf,
    },
    /// The cache was written and is not readable right after.
    #[error("the cache just written at `{}` cannot be used: {why}", path.display())]
    CacheLost {
        /// The index.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
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
            Self::CacheLost { .. } => {
                Some("check the disk (`dmesg`), then run the same command again".into())
            }
            Self::Write { .. } | Self::NoHome { .. } => {
                Some("name a directory you may write to with `--cache-dir`".into())
            }
        }
    }
}
