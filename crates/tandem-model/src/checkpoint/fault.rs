//! What can be wrong with a checkpoint's files: as a fact.
//!
//! With `manifest.rs` and `sealed.rs` it makes up the part that reads foreign bytes, which knows no
//! tensor: the fuzz targets are built from these three files alone.

use super::manifest::VERSION;
use std::io;
use tandem_units::Bytes;

/// What is wrong with a checkpoint's files.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A file that the manifest lists, or the manifest itself.
    #[error("`{file}` is missing")]
    Missing {
        /// Its name.
        file: String,
    },
    /// A file that cannot be read.
    #[error("`{file}` cannot be read: {source}")]
    Unreadable {
        /// Its name.
        file: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file that was cut short or grew.
    #[error("`{file}` has {found} bytes instead of {expected}")]
    Size {
        /// Its name.
        file: String,
        /// What the manifest says.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// A file that is larger than any of ours.
    #[error("`{file}` is larger than {limit}")]
    TooLarge {
        /// Its name.
        file: String,
        /// The most that is read.
        limit: Bytes,
    },
    /// A file whose bytes are not those that were written.
    #[error("`{file}` was changed or damaged: its checksum does not fit")]
    Changed {
        /// Its name.
        file: String,
    },
    /// A checkpoint that another version of the program wrote.
    #[error("it has format version {found}, this program reads version {VERSION}")]
    Version {
        /// The version it has.
        found: u64,
    },
    /// A file that fits its checksum, or has none, and makes no sense.
    #[error("`{file}` makes no sense: {why}")]
    Nonsense {
        /// Its name.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// A directory that is named after another step than its manifest.
    #[error("its name says step {name}, its manifest step {manifest}")]
    Renamed {
        /// The step of the directory's name.
        name: u64,
        /// The step of the manifest.
        manifest: u64,
    },
}
