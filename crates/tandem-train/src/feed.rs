//! The cache becomes batches on the model's device. Start reading at [`route`].
//!
//! Modules are in the order a batch takes.

pub mod buffers; // how many batches may wait, on the host and for the model
pub mod route; // the whole path as one expression, up to the host
pub mod train_route; // the same path, on to the model's device
pub mod schedule; // 1. which batch comes next
pub mod recording; // 2. one recording, read and decoded
pub mod load; // 2. text from the cache, recordings read and decoded
pub mod row_failures; // 2. rows that fail during a run, and the limit
pub mod skip_list; // 2. rows skipped on purpose, for tests
pub mod reference; // 2. a reference segment of each row's speaker
pub mod mel; // 3. sound to mel frames, on the thread that decodes
pub mod device_mel; // 3. the same on the data device
pub mod mel_placement; // 3. where mel frames are computed, and why
pub mod worker_mel; // 3. a worker's own mel kernel
pub mod align; // 4. frames per symbol, ahead of the step that uses them
pub mod transfer; // 5. to the model's device
pub mod first_batches; // the first batches, read before training
pub mod mel_scale; // mean and deviation of mel frames
pub mod languages; // a corpus's languages, by the voice's numbers

pub use route::{FeedSettings, Rows, feed};
