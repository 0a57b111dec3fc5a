//! The voice: Burn modules, losses, device placement, checkpoints, synthesis.
//!
//! In: host batches of `tandem-data`. Out: trained weights, mel frames, sound. Starts no thread,
//! prints nothing. Next on the path: `tandem-train`, which runs it.

pub mod size; // how large a voice is
pub mod checkpoint; // a voice and its training on disk, whole or not at all
