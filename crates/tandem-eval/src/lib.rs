//! Evaluates trained voices, and the transcripts they were trained on.
//!
//! In: a trained voice and a corpus. Out: scores and rankings. Trains nothing, writes nothing.

pub mod evaluate; // synthesized speech compared with held-out recordings
pub mod transcripts; // which transcripts do not match their recording
