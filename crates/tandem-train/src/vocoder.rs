//! Training of a neural vocoder on the same corpus and pipeline as a voice. Start reading at [`trainer`].
//!
//! In: a prepared corpus, settings, devices. Out: a directory with checkpoints, and a record of what happened. Needs no
//! text and no alignment.

pub mod predicted_mel; // 1. mel frames that a voice predicts
pub mod segments; // 1. recordings become segments on the model's device
pub mod validation; // 2. held-out segments, and samples
pub mod adversary; // 3. a discriminator in training
pub mod state; // 4. a run as a checkpoint saves it; new and resumed runs
pub mod trainer; // 5. the training loop
