//! Text to sound with a trained voice.

pub mod mel; // symbols to mel frames
pub mod text; // whole texts, sentence by sentence, to sound
