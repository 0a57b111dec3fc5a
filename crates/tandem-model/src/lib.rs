//! The voice: Burn modules, losses, device placement, checkpoints, synthesis.
//!
//! In: host batches of `tandem-data`. Out: trained weights, mel frames, sound. Starts no thread,
//! prints nothing. Next on the path: `tandem-train`, which runs it.

pub mod size; // how large a voice is

pub mod vocoder; // mel frames to sound
pub mod griffin_lim; // the vocoder that needs no training
pub mod wav; // sound to a file
pub mod metrics; // how a voice is judged
