//! Batches train a voice. Start reading at [`trainer`].

pub mod job; // what a run is given, and how it ended
pub mod start; // a new run
pub mod fine_tune; // a new run from a trained voice
pub mod resume; // a run continued from a checkpoint
pub mod state; // a run as a checkpoint saves it
pub mod plan; // what is decided before the first step
pub mod trainer; // the training loop
pub mod schedule; // step numbers, and what is due after a step
pub mod step; // gradients accumulated, weights changed
mod current_step; // what was trained of the step under way
pub mod ranks; // several processes that train together
pub mod all_reduce; // the sum of their gradients
pub mod shapes; // which padded shapes were seen, and what the first of each cost
pub mod warm_up; // every shape once, before the clock starts
mod graphs; // steps as CUDA graphs, captured before the clock starts
pub mod background; // background computation on the CPU that trains
mod services; // the background threads of a run
pub mod loss_reader; // losses read back from the device
pub mod checkpoint_writer; // checkpoints and which one is the best, on a thread of their own
mod checkpoint_queue; // what waits for it
pub mod best_so_far; // what `best.json` says
pub mod validation_set; // the batches and sentences of every validation
pub mod judged_sentences; // what a judge listens to
pub mod hearing; // a judge at validations
pub mod validator; // validation and samples, on a thread of their own
mod shared_validation; // one validation by several ranks
pub mod join; // waiting for a background thread, with a limit
pub mod validation_corpus; // a second corpus to validate on
pub mod memory_estimate; // the peak of memory, before anything is allocated
pub mod memory_accounting; // device memory in use, by owner
pub mod memory_watch; // whether memory grows
