//! Device memory: how much is in use by whom, and whether that stays within the budget.
//!
//! In: charges of the pipeline, figures of the allocator. Out: the accounting of each device
//! ([`DeviceMemory`]), an error before step 1 if the largest batch does not fit
//! ([`check_worst_batch`]), and a warning that names the owner if memory grows ([`GrowthWatch`]).
//! Frees nothing and limits no allocator: Burn has no limit to set.

mod accounting;
mod error;
mod figures;
mod free;
mod phases;
mod scratch;
mod watch;
mod worst_batch;

pub use accounting::{Charge, DeviceMemory, OwnerShare};
pub use error::MemoryError;
pub use figures::{MemoryFigures, figures_of};
pub use free::{FreeMemory, MemorySource, free_host_memory};
pub use phases::{Phase, PhaseWatch};
pub use scratch::{tuner_scratch, tuner_scratch_of};
pub use watch::{DATA_GROWTH, Growth, GrowthWatch, MODEL_GROWTH};
pub use worst_batch::{MemoryBaseline, MemoryNeed, WorstBatch, check_worst_batch};

use serde::Serialize;

/// What a budget is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Batches and features.
    Data,
    /// Weights, gradients, optimizer state, activations.
    Model,
}

impl Side {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Side::Data => "data",
            Side::Model => "model",
        }
    }

    /// The flag that sets its budget.
    pub fn flag(self) -> &'static str {
        match self {
            Side::Data => "--data-gpu-memory",
            Side::Model => "--model-gpu-memory",
        }
    }
}
