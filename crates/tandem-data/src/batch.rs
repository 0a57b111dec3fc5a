//! From finished utterances to padded batches, in an order that anyone can compute again.
//!
//! In: the [`Lengths`] of a corpus, a [`BatchConfig`], an epoch. Out: an [`EpochPlan`], which
//! rows share a batch and when; and [`HostBatch`], the memory one batch is laid out in.
//! The order is a pure function of seed, epoch and lengths: the number of workers is never
//! asked. Reads no audio and no text. Next on the path: the upload to a device.

pub mod config; // how large, how long, which seed
pub mod length_buckets; // the few padded lengths
pub mod order; // seed and epoch to a permutation
pub mod plan; // which rows make which batch, and when
pub mod host_batch; // one padded batch in memory

pub use config::{BatchConfig, BatchError, auto_prefetch};
pub use host_batch::{HostBatch, RowInfo, RowMut, SYMBOL_PADDING};
pub use plan::{
    BatchShape, Batches, EpochPlan, LeftOut, Lengths, Padding, PlannedBatch, Position, Unfit,
};
