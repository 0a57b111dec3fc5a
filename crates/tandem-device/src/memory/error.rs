//! What does not fit, and the smallest budget that would do.

use super::Side;
use crate::backend::DeviceError;
use tandem_data::batch::BatchShape;
use tandem_units::{Bytes, Hint};

/// Why memory cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// A charge that goes past the budget.
    #[error(
        "{owner} needs {asked} on the {} device, which holds {held} of its budget of {budget}",
        side.name()
    )]
    OverBudget {
        /// Whose budget.
        side: Side,
        /// Who asked.
        owner: String,
        /// For how much.
        asked: Bytes,
        /// What is held already.
        held: Bytes,
        /// The budget.
        budget: Bytes,
    },
    /// The longest bucket's batch does not fit: every later run would stop there.
    #[error(
        "the largest batch of this corpus ({} x {} frames, {} symbols) takes {needed} on the {} \
         device, whose budget is {budget}",
        shape.rows, shape.frames, shape.symbols, side.name()
    )]
    WorstBatch {
        /// Whose budget.
        side: Side,
        /// The batch.
        shape: BatchShape,
        /// What it takes.
        needed: Bytes,
        /// The budget.
        budget: Bytes,
    },
    /// The device failed on the longest bucket's batch.
    #[error(
        "a step on the largest batch of this corpus ({} x {} frames, {} symbols) failed",
        shape.rows, shape.frames, shape.symbols
    )]
    WorstBatchFailed {
        /// The batch.
        shape: BatchShape,
        /// What happened.
        #[source]
        source: DeviceError,
    },
}

impl Hint for MemoryError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::OverBudget { side, asked, held, .. } => format!(
                "type {} {} or more, or take a smaller --batch-size or --prefetch-buffer-size",
                side.flag(),
                megabytes(*asked + *held)
            ),
            Self::WorstBatch { side, needed, .. } => format!(
                "type {} {} or more: that is the smallest that works; or take a smaller \
                 --batch-size",
                side.flag(),
                megabytes(*needed)
            ),
            Self::WorstBatchFailed { .. } => {
                "take a smaller --batch-size or --max-mel-frames".into()
            }
        })
    }
}

/// Rounded up, so that what is typed is enough.
pub(super) fn megabytes(size: Bytes) -> u64 {
    size.0.div_ceil(1 << 20)
}
