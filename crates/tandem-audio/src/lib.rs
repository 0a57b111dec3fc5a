//! From a recording to mel frames.
//!
//! In: the bytes of a WAV, FLAC, MP3 or OGG file, at any rate, with any number of channels.
//! Out: [`Sound`], mono at the corpus rate; then [`mel`] frames. A broken file never ends the process:
//! it is one [`AudioError`]. Starts no thread. Next on the path: `tandem_data::cache`.

pub mod config; // limits on a recording, trimming and loudness
pub mod error; // why a recording is refused, with a hint
pub mod file; // path to bytes
pub mod sniff; // bytes to format, by content
pub mod wav; // PCM WAV, without a copy if possible
mod vorbis_setup; // memory limit for Vorbis codebooks
mod flac; // mono FLAC, sixteen frames at a time
pub mod compressed; // MP3, OGG, the rest of FLAC and WAV
pub mod resample; // any rate to the corpus rate
pub mod trim; // silence at both ends
pub mod loudness; // EBU R128, one gain per recording
pub mod decode; // all of the above, in order
pub mod flac_stream; // samples to FLAC, part by part
pub mod mel; // samples to mel frames

pub use config::AudioConfig;
pub use decode::Decoder;
pub use error::AudioError;
pub use file::FileReader;

use tandem_units::Samples;

/// Incremented when a recording is decoded to other samples than before: old caches are then rebuilt.
pub const AUDIO_VERSION: u32 = 1;

/// Mono samples at the corpus rate, borrowed from the [`Decoder`] until its next recording.
///
/// 16-bit if the file is, so that nothing is converted twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sound<'a> {
    /// Full scale is 32768.
    I16(&'a [i16]),
    /// Full scale is 1.0.
    F32(&'a [f32]),
}

impl Sound<'_> {
    /// Number of samples; never zero from the [`Decoder`].
    pub fn len(&self) -> Samples {
        Samples(match self {
            Self::I16(samples) => samples.len(),
            Self::F32(samples) => samples.len(),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.len() == Samples(0)
    }

    /// The samples from `range.start` to `range.end`.
    fn part(self, range: std::ops::Range<usize>) -> Self {
        match self {
            Self::I16(samples) => Self::I16(&samples[range]),
            Self::F32(samples) => Self::F32(&samples[range]),
        }
    }

    /// The samples as floats, full scale at 1.0.
    pub fn to_f32(&self) -> Vec<f32> {
        match self {
            Self::I16(samples) => samples.iter().map(|&s| f32::from(s) / 32768.0).collect(),
            Self::F32(samples) => samples.to_vec(),
        }
    }
}
