//! From a speech corpus to training batches, in host memory.
//!
//! Never sees a device, starts no thread: callers decide how many run at once.

pub mod audio; // samples to mel frames
pub mod error; // what can go wrong on the whole path, with the way out

pub use error::DataError;
