//! From a speech corpus to training batches, in host memory.
//!
//! In: a corpus directory. Out: [`batch::HostBatch`], ready for upload. Uses no device and starts no
//! thread: callers decide how many threads run at once.

pub mod corpus; // 1. manifests to utterances
pub mod text; // 2. text to symbols
pub mod audio; // 3. recordings to samples to mel frames
pub mod cache; // 4. prepared rows on disk, by key
pub mod batch; // 5. utterances to padded batches, in order
pub mod panic_guard; // a panic in a library becomes an error
pub mod error; // every error on the path, with a hint

pub use error::DataError;
