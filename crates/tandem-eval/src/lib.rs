//! Judges finished voices and the transcripts they were trained on.
//!
//! In: a trained voice and a corpus. Out: scores and rankings. Trains nothing, writes nothing.

pub mod evaluate; // a voice against recordings it never saw
pub mod transcripts; // which transcripts do not match their recording
