//! From a speech corpus to training batches, in host memory.
//!
//! Never sees a device, starts no thread: callers decide how many run at once.

pub mod corpus; // 1. who said what, in which file
pub mod text; // 2. words to symbols
pub mod audio; // 3. recordings to samples to mel frames
pub mod cache; // 4. prepared rows on disk, by key
pub mod batch; // 5. utterances to padded batches, in order
pub mod panic_guard; // a panic in a library becomes an error
pub mod error; // what can go wrong on the whole path, with the way out

pub use error::DataError;
