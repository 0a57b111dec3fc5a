//! Evaluates trained voices, and the transcripts they were trained on.
//!
//! In: a trained voice and a corpus. Out: scores and rankings. Trains nothing, writes nothing.

pub mod evaluate; // synthesized speech compared with held-out recordings
pub mod transcripts; // which transcripts do not match their recording
pub mod cutting; // where each sentence of a text is in a long recording
pub mod statistics; // what a corpus has, and what that is enough for
