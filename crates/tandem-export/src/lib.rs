//! Trained voices for other programs: ONNX graphs and Piper voices.
//!
//! In: a voice, its vocoder, and the speakers to include. Out: the bytes of an ONNX model, and JSON files beside it.
//! Writes no file, runs no graph, prints nothing. The graphs compute what `tandem_model::synthesis` computes, from symbol
//! ids to samples. Next on the path: `tandem export`, which writes the files.

mod error; // errors with hints
mod messages; // the part of the ONNX format that is written
mod graph; // nodes, constants and values of a graph
mod layers; // linear, norm, attention
mod input_symbols; // ids of the caller to symbols of the voice
mod espeak_rewrites; // symbols of espeak-ng to symbols of the voice
mod acoustic; // symbols to mel frames
mod spectrum; // short-time Fourier transforms
mod neural; // mel frames to samples, with a trained vocoder
mod griffin_lim; // mel frames to samples, without one
pub mod model; // the whole graph
pub mod reading; // characters or phonemes
pub mod symbol_map; // characters to ids, and what Unicode decomposition does to them
pub mod piper; // the JSON file of a Piper voice
pub mod description; // the JSON file of an ONNX voice

pub use error::ExportError;
pub use model::{ExportedSpeaker, ExportedVocoder, InputNotation, NoiseSource, OPSET, VoiceExport};
