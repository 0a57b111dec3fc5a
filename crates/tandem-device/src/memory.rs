//! Who holds how much on which device, and whether that stays within its budget.
//!
//! In: charges of the pipeline, figures of the allocator. Out: an account per device
//! ([`DeviceLedger`]), a refusal before step 1 where the worst batch cannot fit
//! ([`check_worst_batch`]), a warning with its owner where memory grows ([`GrowthWatch`]).
//! Frees nothing and limits no allocator: the tensor library has no limit to set.

mod error;
mod figures;
mod ledger;
mod watch;
mod worst_batch;

pub use error::MemoryError;
pub use figures::{MemoryFigures, figures_of};
pub use ledger::{Charge, DeviceLedger, OwnerShare};
pub use watch::{DATA_GROWTH, Growth, GrowthWatch, MODEL_GROWTH};
pub use worst_batch::{HeldBefore, Room, WorstBatch, check_worst_batch};

use serde::Serialize;

/// What a budget is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Batches and features.
    Data,
    /// Weights, gradients, optimiser state, activations.
    Model,
}

impl Side {
    /// The name, as messages have it.
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
