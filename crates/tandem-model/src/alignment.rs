//! Alignment: which frames belong to which symbol.
//!
//! In: mel frames and a mean frame per symbol. Out: frames per symbol, by the best monotonic path.

mod distance; // weighted squared distances of all frames to all symbols
pub mod symbol_gaussians; // what the frames of each symbol look like
pub mod search; // the best monotonic path
pub mod flat_start; // the first alignment, from an untrained state

pub use search::{Aligner, log_likelihoods};
