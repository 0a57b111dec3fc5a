//! Training of a neural vocoder on the same corpus and pipeline as a voice. Start reading at [`trainer`].
//!
//! In: a prepared corpus, settings, devices. Out: a directory with checkpoints, and a record of what happened. Needs no
//! text and no alignment.

pub mod segments; // 1. recordings become segments on the model's device
pub mod validation; // 2. held-out segments, and samples
pub mod state; // 3. a run as a checkpoint saves it; new and resumed runs
pub mod trainer; // 4. the training loop
