//! The voice: Burn modules, losses, device placement, checkpoints, synthesis.
//!
//! In: host batches of `tandem-data`. Out: trained weights, mel frames, sound. Starts no thread,
//! prints nothing. Next on the path: `tandem-train`, which runs it.

pub mod size; // how large a voice is
pub mod device; // backends, and how a device is opened
pub mod inventory; // what this build finds on this machine
pub mod placement; // which device does what
pub mod upload; // host batch to data device
pub mod transfer; // data device to model device
pub mod device_mel; // mel frames on the data device, and whether that pays
pub mod memory; // budgets, who holds what, growth
pub mod shapes; // how many shapes, and what meeting one costs
