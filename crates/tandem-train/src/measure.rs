//! Measurements of loading, feeding and training on the user's own corpus.

pub mod analyze; // what loading costs, and what to change
pub mod profile_runs; // the trainer with one part at a time replaced
pub mod feed_benchmark; // the feed with a consumer that only sleeps
pub mod launches; // what a step asks of the CUDA driver
