//! What does not fit, and the smallest budget that would be enough.

use super::Side;
use crate::backend::DeviceError;
use tandem_data::batch::BatchShape;
use tandem_units::{Bytes, Hint};

/// Why memory is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// A charge exceeds the budget.
    #[error(
        "{owner} needs {needed} on the {} device, where {in_use} of its budget of {budget} are in use",
        side.name()
    )]
    OverBudget { side: Side, owner: String, needed: Bytes, in_use: Bytes, budget: Bytes },
    /// The batch of the longest bucket does not fit, so training would stop there.
    #[error(
        "the largest batch of this corpus ({} x {} frames, {} symbols) needs {needed} on the {} \
         device, whose budget is {budget}",
        shape.rows, shape.frames, shape.symbols, side.name()
    )]
    WorstBatch { side: Side, shape: BatchShape, needed: Bytes, budget: Bytes },
    /// The predicted peak is above what is free. Nothing large was allocated.
    #[error("{peak}; {most} are {available}")]
    PeakTooLarge {
        /// What needs how much.
        peak: String,
        needed: Bytes,
        most: Bytes,
        /// Where the limit comes from.
        available: String,
        /// The largest batch size that fits; `None` if not even one row does.
        largest: Option<usize>,
        /// The flag that sets the limit, if it is a budget.
        flag: Option<&'static str>,
    },
    /// The device failed on the batch of the longest bucket.
    #[error(
        "a step on the largest batch of this corpus ({} x {} frames, {} symbols) failed",
        shape.rows, shape.frames, shape.symbols
    )]
    WorstBatchFailed {
        shape: BatchShape,
        #[source]
        source: DeviceError,
    },
}

impl Hint for MemoryError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::OverBudget { side, needed, in_use, .. } => format!(
                "set {} {} or more, or use a smaller --batch-size or --prefetch-buffer-size",
                side.flag(),
                megabytes(*needed + *in_use)
            ),
            Self::WorstBatch { side, needed, .. } => format!(
                "set {} {} or more, which is the smallest that works, or use a smaller \
                 --batch-size",
                side.flag(),
                megabytes(*needed)
            ),
            Self::PeakTooLarge { needed, largest, flag, .. } => {
                let raise = flag.map(|flag| format!(", or set {flag} {}", megabytes(*needed)));
                let raise = raise.unwrap_or_default();
                match largest {
                    Some(rows) => {
                        format!("use `--batch-size {rows}`, the largest that fits{raise}")
                    }
                    None => format!(
                        "not even one row fits: use a smaller --model-size, --num-workers, \
                         --prefetch-buffer-size or --max-mel-frames{raise}"
                    ),
                }
            }
            Self::WorstBatchFailed { .. } => {
                "use a smaller --batch-size or --max-mel-frames".into()
            }
        })
    }
}

/// Rounded up, so that the suggested value is enough.
pub(super) fn megabytes(size: Bytes) -> u64 {
    size.0.div_ceil(1 << 20)
}
