//! The voice: Burn modules, losses, device placement, checkpoints, synthesis.
//!
//! In: host batches of `tandem-data`. Out: trained weights, mel frames, sound. Starts no thread,
//! prints nothing. Next on the path: `tandem-train`, which runs it.

pub use burn::module::Module;
pub use burn::tensor::{Device, Int, Tensor, TensorData};

pub mod size; // how large a voice is
pub mod ops; // what a training step spends its time in
pub mod layers; // the small parts every module is made of
pub mod block; // attention and feed-forward, steered by a condition
pub mod text_encoder; // symbols to mean frames
pub mod reference_encoder; // somebody's speech to a voice vector
pub mod duration; // how long each symbol is spoken
pub mod decoder; // the flow from mean frames to real ones
mod likeness; // how far frames are from sounds
pub mod alignment; // which frames say which symbol
pub mod flat_start; // the first alignment, before the voice knows anything
pub mod lesson; // a batch with all that a step needs
pub mod voice; // the whole, and its losses
pub mod weights; // a module as a list of named tensors
pub mod optimizer; // how weights are changed
pub mod mel_scale; // mel frames in the units of the model
pub mod synthesis; // text to mel frames
pub mod trained; // a voice as it is kept
pub mod checkpoint; // a voice and its training on disk, whole or not at all

pub mod vocoder; // mel frames to sound
pub mod griffin_lim; // the vocoder that needs no training
pub mod wav; // sound to a file
pub mod narration; // whole texts told by a trained voice
pub mod metrics; // how a voice is judged
pub mod device; // backends, and how a device is opened
pub mod inventory; // what this build finds on this machine
pub mod placement; // which device does what
pub mod upload; // host batch to data device
pub mod transfer; // data device to model device
pub mod device_mel; // mel frames on the data device, and whether that pays
pub mod memory; // budgets, who holds what, growth
pub mod shapes; // how many shapes, and what meeting one costs
