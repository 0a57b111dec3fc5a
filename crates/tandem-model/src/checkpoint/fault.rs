//! What can be wrong with the files of a checkpoint.
//!
//! With `manifest.rs` and `sealed.rs` this is the part that parses untrusted bytes. It does not depend
//! on tensors: the fuzz targets are built from these three files alone.

use super::manifest::VERSION;
use std::io;
use tandem_units::Bytes;

/// A defect of a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A file that the manifest lists, or the manifest itself.
    #[error("`{file}` is missing")]
    Missing { file: String },
    #[error("`{file}` cannot be read: {source}")]
    Unreadable {
        file: String,
        #[source]
        source: io::Error,
    },
    /// A truncated or extended file; `expected` is from the manifest.
    #[error("`{file}` has {found} bytes instead of {expected}")]
    Size { file: String, expected: u64, found: u64 },
    /// Larger than any file that this program writes.
    #[error("`{file}` is larger than {limit}")]
    TooLarge { file: String, limit: Bytes },
    #[error("`{file}` was changed or damaged: its checksum does not match")]
    Changed { file: String },
    /// Written by another version of the program.
    #[error("it has format version {found}, this program reads version {VERSION}")]
    Version { found: u64 },
    /// The checksum matches or is missing, but the contents cannot be parsed.
    #[error("`{file}` is invalid: {why}")]
    Invalid { file: String, why: String },
    #[error("the directory is named after step {name}, its manifest has step {manifest}")]
    Renamed { name: u64, manifest: u64 },
}

impl tandem_units::Hint for Fault {}
