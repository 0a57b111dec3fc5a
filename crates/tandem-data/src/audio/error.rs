//! Why a recording is refused: one line of fact, the cause, and the way out.

use std::io;
use std::path::PathBuf;
use tandem_disk::retry;
use tandem_units::{Bytes, Hint, Seconds};

/// What is wrong with one recording. The row it belongs to is listed and passed over.
#[derive(Debug, thiserror::Error)]
pub enum AudioError {
    /// The file could not be opened or read.
    #[error("cannot read recording `{}`", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is larger than is worth reading.
    #[error("the file has {size}, the limit is {limit}")]
    FileTooLarge {
        /// What the file has.
        size: Bytes,
        /// What is accepted.
        limit: Bytes,
    },
    /// There is not one byte in it.
    #[error("the file is empty")]
    EmptyFile,
    /// The content is of no audio format known here, whatever the name says.
    #[error("the content is not audio in a known format")]
    NotAudio,
    /// The content is recognised, but not read.
    #[error("{format} is not read")]
    Unsupported {
        /// What it is.
        format: String,
    },
    /// The file breaks the rules of its own format.
    #[error("broken file: {reason}")]
    Malformed {
        /// Which rule.
        reason: &'static str,
    },
    /// The decoder gave up part of the way.
    #[error("broken file: decoding fails after {at}")]
    Undecodable {
        /// How much was decoded before.
        at: Seconds,
        /// What the decoder said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The data ends before the header says it does.
    #[error("truncated: the header says {claimed} of samples, the file holds {held}")]
    TruncatedData {
        /// What the header says.
        claimed: Bytes,
        /// What is there.
        held: Bytes,
    },
    /// The sound ends before the header says it does.
    #[error("truncated: the header says {claimed}, the file holds {held}")]
    TruncatedSound {
        /// What the header says.
        claimed: Seconds,
        /// What could be decoded.
        held: Seconds,
    },
    /// The header's rate cannot be true.
    #[error("the header gives a sample rate of {rate} Hz, which cannot be right")]
    Rate {
        /// What the header says.
        rate: u32,
    },
    /// The header's channel count cannot be true.
    #[error("the header gives {channels} channels, which cannot be right")]
    Channels {
        /// What the header says.
        channels: usize,
    },
    /// There is a header, but nothing to hear.
    #[error("there are no samples in it")]
    NoSamples,
    /// Longer than an utterance can be.
    #[error("lasts {length}, the limit is {limit}")]
    TooLong {
        /// How long it is by its header.
        length: Seconds,
        /// What is accepted.
        limit: Seconds,
    },
    /// Its header does not say how long it is, and it did not end in time.
    #[error("still not at its end after {limit} of sound, the limit, from a file of {size}")]
    Endless {
        /// What is accepted.
        limit: Seconds,
        /// How small the file is that holds so much.
        size: Bytes,
    },
    /// Shorter than anything one can say.
    #[error("lasts {length}, the minimum is {limit}")]
    TooShort {
        /// How long it is.
        length: Seconds,
        /// What is accepted.
        limit: Seconds,
    },
    /// Nothing to hear in it.
    #[error("silent: the loudest sample is at {} of full scale, below {}", decibels(*peak), decibels(*limit))]
    Silent {
        /// The loudest sample, full scale at 1.0.
        peak: f32,
        /// What is accepted.
        limit: f32,
    },
    /// A float file whose values are not between -1 and 1.
    #[error("the loudest sample is {peak:.3e} times full scale")]
    OutOfScale {
        /// The loudest sample, full scale at 1.0.
        peak: f32,
    },
    /// A float file holds NaN or an infinity.
    #[error("the sample at {at} is not a number")]
    NotANumber {
        /// Where the first one is.
        at: Seconds,
    },
    /// The decoder has a fault that this file triggers.
    #[error("the decoder broke down on this file: {message}")]
    Panicked {
        /// What the decoder said.
        message: String,
    },
}

impl Hint for AudioError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Read { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "check the path, or the id in the manifest",
                io::ErrorKind::PermissionDenied => "give yourself permission to read the file",
                io::ErrorKind::InvalidInput => "put the recording itself in its place",
                _ if retry::gave_up(source) => retry::HINT,
                _ => return None,
            },
            Self::FileTooLarge { .. } => {
                "split the recording into utterances, or raise `audio.max_file`"
            }
            Self::TooLong { .. } | Self::Endless { .. } => {
                "split the recording into utterances, or raise `audio.max_length`"
            }
            Self::TooShort { .. } => "remove the row, or lower `audio.min_length`",
            Self::Silent { .. } => "record it again, or lower `audio.min_peak`",
            Self::EmptyFile
            | Self::NoSamples
            | Self::Malformed { .. }
            | Self::Undecodable { .. }
            | Self::TruncatedData { .. }
            | Self::TruncatedSound { .. } => "copy or export the file again from its source",
            Self::NotAudio | Self::Unsupported { .. } => {
                "convert it to 16-bit WAV or FLAC, e.g. `ffmpeg -i IN -c:a pcm_s16le OUT.wav`"
            }
            Self::Rate { .. } | Self::Channels { .. } => {
                "export the file again: its header is damaged"
            }
            Self::OutOfScale { .. } | Self::NotANumber { .. } => {
                "export it as 16-bit, or as float between -1 and 1"
            }
            Self::Panicked { .. } => {
                "convert it with another program, e.g. `ffmpeg -i IN OUT.wav`, and report the file"
            }
        };
        Some(hint.into())
    }
}

fn decibels(amplitude: f32) -> String {
    if amplitude <= 0.0 { "zero".into() } else { format!("{:.0} dB", 20.0 * amplitude.log10()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: AudioError, line: &str) {
        assert_eq!(error.to_string(), line);
        assert!(error.hint().is_some(), "{error} has no way out");
    }

    #[test]
    fn every_refusal_says_what_was_found_and_what_was_expected() {
        check(
            AudioError::TooLong { length: Seconds(36_000.0), limit: Seconds(120.0) },
            "lasts 10.0 h, the limit is 2.0 min",
        );
        check(
            AudioError::TruncatedData { claimed: Bytes(2000), held: Bytes(100) },
            "truncated: the header says 2.0 KiB of samples, the file holds 100 B",
        );
        check(
            AudioError::Silent { peak: 0.0, limit: 5e-4 },
            "silent: the loudest sample is at zero of full scale, below -66 dB",
        );
    }
}
