//! Devices: the only crate that names vendors.
//!
//! In: what a build contains and what a machine has. Out: open devices, their budgets, and samples
//! of their load. Knows nothing of speech or of a model. Modules are in the order a run uses them.

pub use burn::tensor::Device;

pub mod backend; // which backends are built in, and how a device is opened
pub mod inventory; // every device of this machine, and the links between them
pub mod placement; // which device does data work, which one holds the model
pub mod memory; // budgets, accounting by owner, growth
pub mod cpu_use; // what this process used of the CPUs
pub mod sampler; // utilisation and memory, once a second
