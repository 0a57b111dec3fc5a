//! Training: a corpus becomes a cache, the cache becomes batches, batches train a voice.
//!
//! Folders are in the order of the data's path. Start reading at [`feed::route`] for batches, at
//! [`run::trainer`] for training.

pub mod data_settings; // 1. everything that changes what the model sees of a corpus
pub mod train_settings; // 1. how a voice is trained
pub mod file_config; // 1. the keys of a configuration file, and what was typed
pub mod prepare; // 2. a corpus becomes a cache
pub mod feed; // 3. the cache becomes batches on the model's device
pub mod loader; // 4. batches for a training loop outside of this program
pub mod run; // 4. batches train a voice
pub mod judge; // 4. a recogniser that writes down what a voice says
pub mod vocoder; // 4. the same for a neural vocoder
pub mod log; // 5. curves, pictures and audio of a run
pub mod measure; // the same path, measured: analyze, profile
pub mod error; // errors and hints

pub use data_settings::DataSettings;
pub use error::TrainError;
pub use feed::{FeedSettings, feed};
pub use prepare::summary::Summary;
pub use prepare::{PrepareOptions, Prepared, Watcher, prepare};
pub use run::plan::total_steps;
