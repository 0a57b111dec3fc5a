//! Recordings to mel frames.
//!
//! In: a recording. Out: [`mel::Mel`] at the corpus rate. Starts no thread.
//! Next on the path: the cache.

pub mod mel; // samples to mel frames
