//! From prepared utterances to padded batches, in a reproducible order.
//!
//! In: the [`Lengths`] of a corpus, a [`BatchConfig`], an epoch. Out: an [`EpochPlan`], which lists
//! the rows of each batch in order; and [`HostBatch`], the memory of one batch. The order is a pure
//! function of seed, epoch and lengths; it does not depend on the number of workers. Reads no audio
//! and no text. Next on the path: the upload to a device.

pub mod config; // batch size, limits, seed
pub mod length_buckets; // the few padded lengths
pub mod order; // seed and epoch to a permutation
pub mod plan; // which rows share a batch, and the order of batches
pub mod host_batch; // one padded batch in memory

pub use config::{BatchConfig, BatchError, auto_prefetch};
pub use host_batch::{HostBatch, RowInfo, RowMut, SYMBOL_PADDING};
pub use plan::{
    BatchShape, Batches, EpochPlan, LeftOut, Lengths, Padding, PlannedBatch, Position, Unfit,
};
