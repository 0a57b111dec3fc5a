//! The path of the data, measured.

pub mod analyze; // what loading costs, and what to change
pub mod profile_runs; // the trainer with one part at a time replaced
pub mod rehearsal; // the feed in front of a consumer that only waits
