//! From a speech corpus to training batches, in host memory.
//!
//! In: a corpus directory. Out: [`batch::HostBatch`], ready for upload. Uses no device and starts no
//! thread: callers decide how many threads run at once.

pub mod corpus; // 1. manifests to utterances
pub mod import; // 1. a row of any corpus as a FLAC file
pub mod long_text; // 1. the text of a long recording as sentences
pub mod cache; // 2. prepared rows on disk, by key
pub mod batch; // 3. utterances to padded batches, in order
pub mod error; // every error on the path, with a hint

pub use error::DataError;
