//! Joins the data side, the pipeline and the telemetry.
//!
//! [`mod@prepare`] turns a corpus into a cache, [`mod@feed`] turns the cache into batches for a consumer
//! thread. Threads are the pipeline's; what a row or a batch is belongs to `tandem-data`.

pub mod settings; // 1. everything that changes what the model sees of a corpus
mod worker_mel; // a worker's own mel kernel
pub mod examine; // 2. one row: kept as it is, or made anew
mod write; // 3. the one who writes what was examined, in order
pub mod prepare; // 4. all rows, on all workers, into the cache
pub mod summary; // 5. what preparing did, for people and scripts
pub mod feed; // 6. the path of a batch, written down once
pub mod tickets; // 7. which batch comes next
pub mod known_languages; // a corpus's languages, by the voice's numbers
pub mod references; // another stretch of each row's speaker
pub mod load; // 8. a planned batch gets its text and its sound
pub mod preprocess; // 9. sound becomes mel frames
pub mod device_preprocess; // the same on the data device
pub mod assemble; // 10. both on one thread, while the sound is in the processor's cache
pub mod mel_place; // where mel frames are made, and why
pub mod rehearsal; // 11. the feed in front of a stand-in for the model
pub mod survey; // the first batches, looked at before training
pub mod mel_scale; // mel frames in the model's units
pub mod first_alignment; // what the first steps are aligned with
pub mod beside; // computation beside the training, on the processor that trains
pub mod snapshots; // the readers that align
pub mod align; // texts laid over sound
pub mod text_fit; // one text over one recording
pub mod holdings; // who holds how much on which device
pub mod place; // lessons to the model's device
pub mod lessons; // the path of a lesson, written down once; or from memory
pub mod train_settings; // 12. how a voice is trained
pub mod learner; // 13. one lesson after the other
pub mod warm_up; // every shape is met before the clock starts
pub mod memory_watch; // whether memory grows while a run goes on
pub mod loss_reader; // losses become numbers
pub mod run_state; // a run as a checkpoint keeps it
pub mod keeper; // checkpoints, written beside the training
pub mod validation_corpus; // a second corpus to validate on
pub mod examiner; // validation and samples, beside the training
pub mod job; // what a run is given, and what became of it
mod run_plan; // what is settled before the first step
pub mod beginning; // a new run, or one taken up again
pub mod trainer; // 14. the run
pub mod picture; // mel frames and alignments, drawn
pub mod run_log; // curves, pictures and sound while a voice learns
pub mod evaluate; // how good a voice is
pub mod transcripts; // which transcripts do not say what is heard
pub mod analyze; // what loading costs, and what to change
pub mod profile_runs; // the trainer with one part at a time taken away
pub mod error; // what can go wrong on the way

pub use error::TrainError;
pub use feed::{FeedSettings, feed};
pub use prepare::{PrepareOptions, Prepared, Watcher, prepare};
pub use run_plan::total_steps;
pub use settings::DataSettings;
pub use summary::Summary;
