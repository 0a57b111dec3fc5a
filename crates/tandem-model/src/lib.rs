//! The voice: network, alignment, optimizer, checkpoints, synthesis, vocoder.
//!
//! In: host batches of `tandem-data`. Out: trained weights, mel frames, samples. Starts no thread,
//! prints nothing. Next on the path: `tandem-train`, which runs it.

pub use burn::module::Module;
pub use burn::tensor::{Device, Int, Tensor, TensorData};

mod host_tensor; // host arrays to tensors
mod upload; // many arrays in one upload, as tensors of the thread that uses them
pub mod mel_scale; // mel frames, normalised for the model
pub mod spectral_detail; // synthesized frames that move more, as recordings do
pub mod device_mel; // mel frames computed on the data device, and whether that pays
pub mod alignment; // which frames belong to which symbol
pub mod train_batch; // a batch with everything that a training step needs
pub mod network; // the modules of the voice, and its losses
pub mod weights; // a module as a list of named tensors
pub mod between_threads; // tensors of one thread, used by another
pub mod gradients; // gradients summed over batches and processes
pub mod loss_scale; // the factor of losses for half floats
pub mod micro_batches; // the gradients of a batch
pub mod optimizer; // AdamW, clipping, EMA
#[cfg_attr(not(feature = "any-gpu"), path = "step_graph/absent.rs")]
pub mod step_graph; // a whole step as one CUDA graph
pub mod checkpoint; // a voice and its training on disk, complete or not at all
pub mod trained_voice; // a voice read from a checkpoint
pub mod synthesis; // text to mel frames to samples
pub mod vocoder; // mel frames to samples
pub mod metrics; // how a voice is measured
