//! Why a recording is refused: the fact, the cause and a hint.

use std::io;
use std::path::PathBuf;
use tandem_disk::retry;
use tandem_units::{Bytes, Hint, Seconds};

/// What is wrong with one recording. Its row is listed as rejected and left out.
#[derive(Debug, thiserror::Error)]
pub enum AudioError {
    #[error("cannot read recording `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the file has {size}, the limit is {limit}")]
    FileTooLarge { size: Bytes, limit: Bytes },
    #[error("the file is empty")]
    EmptyFile,
    /// The content is not in a known audio format, whatever the file name says.
    #[error("the content is not audio in a known format")]
    NotAudio,
    /// The format is recognised, but not supported.
    #[error("{format} is not supported")]
    Unsupported { format: String },
    /// The file violates its own format.
    #[error("broken file: {reason}")]
    Malformed { reason: &'static str },
    #[error("broken file: decoding fails after {at}")]
    Undecodable {
        /// The duration that was decoded before the error.
        at: Seconds,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The data is shorter than the header says.
    #[error("truncated: the header says {claimed} of samples, the file holds {held}")]
    TruncatedData { claimed: Bytes, held: Bytes },
    /// The decoded sound is shorter than the header says.
    #[error("truncated: the header says {claimed}, the file holds {held}")]
    TruncatedSound { claimed: Seconds, held: Seconds },
    #[error("the header gives a sample rate of {rate} Hz, which cannot be right")]
    Rate { rate: u32 },
    #[error("the header gives {channels} channels, which cannot be right")]
    Channels { channels: usize },
    #[error("there are no samples in it")]
    NoSamples,
    #[error("lasts {length}, the limit is {limit}")]
    TooLong {
        /// The length in the header.
        length: Seconds,
        limit: Seconds,
    },
    /// The header has no length, and the sound did not end before the limit.
    #[error("still not at its end after {limit} of sound, the limit, from a file of {size}")]
    Endless {
        limit: Seconds,
        /// Size of the file.
        size: Bytes,
    },
    #[error("lasts {length}, the minimum is {limit}")]
    TooShort { length: Seconds, limit: Seconds },
    /// Silence was cut from its ends.
    #[error("{length} are left after trimming, the minimum is {limit}")]
    TrimmedTooShort { length: Seconds, limit: Seconds },
    #[error("lasts {length}, loudness is measured over {limit} or more")]
    TooShortForLoudness { length: Seconds, limit: Seconds },
    #[error("too quiet for a loudness: nothing in it is above -70 LUFS")]
    TooQuietForLoudness,
    /// The meter refuses the rate or the samples.
    #[error("its loudness cannot be measured: {message}")]
    Loudness { message: String },
    /// Nothing to hear in it.
    #[error("silent: the loudest sample is at {} of full scale, below {}", decibels(*peak), decibels(*limit))]
    Silent {
        /// The peak, full scale at 1.0.
        peak: f32,
        limit: f32,
    },
    /// A float file whose values are far outside -1 to 1.
    #[error("the loudest sample is {peak:.3e} times full scale")]
    OutOfScale {
        /// The peak, full scale at 1.0.
        peak: f32,
    },
    /// A float file contains NaN or an infinity.
    #[error("the sample at {at} is NaN or infinite")]
    NonFinite {
        /// Position of the first one.
        at: Seconds,
    },
    /// The file triggers a bug in the decoder.
    #[error("the decoder panicked on this file: {message}")]
    Panicked { message: String },
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
            Self::TrimmedTooShort { .. } => {
                "remove the row, or trim less: a lower `--trim-silence` or a larger `--trim-margin`"
            }
            Self::TooShortForLoudness { .. } | Self::TooQuietForLoudness => {
                "remove the row, or leave out `--loudness`"
            }
            Self::Loudness { .. } => "leave out `--loudness`, or change `mel.rate`",
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
            Self::OutOfScale { .. } | Self::NonFinite { .. } => {
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
        assert!(error.hint().is_some(), "{error} has no hint");
    }

    #[test]
    fn every_refusal_states_the_found_and_the_expected_value() {
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
