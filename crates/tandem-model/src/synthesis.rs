//! Text to speech with a trained voice.
//!
//! In: text or symbols. Out: mel frames and samples. Next: [`crate::vocoder`].

pub mod mel; // symbols to mel frames
pub mod text; // whole texts, sentence by sentence, to samples
