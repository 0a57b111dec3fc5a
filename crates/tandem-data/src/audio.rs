//! From a recording to what the model learns from.
//!
//! In: the bytes of a WAV, FLAC, MP3 or OGG file, at any rate, with any number of channels.
//! Out: [`Sound`], mono at the corpus rate. Nothing is ever played at the wrong speed, and no
//! file, however broken, takes the process down: it costs one [`AudioError`].
//! Then [`mel`], what the model learns from. Starts no thread. Next on the path: [`crate::cache`].

pub mod limits; // what a recording may be
pub mod error; // why one is refused, and the way out
pub mod file; // path to bytes
pub mod sniff; // bytes to format, by content
pub mod wav; // PCM WAV, without a copy where possible
mod vorbis_setup; // how much memory a Vorbis header asks for
pub mod compressed; // FLAC, MP3, OGG and the rest of WAV
pub mod resample; // any rate to the corpus rate
pub mod decode; // all of the above, in order
pub mod mel; // samples to mel frames

pub use decode::Decoder;
pub use error::AudioError;
pub use file::FileReader;
pub use limits::AudioLimits;

use tandem_units::Samples;

/// Raised whenever some recording is decoded to other samples than before: old caches are then
/// rebuilt.
pub const AUDIO_VERSION: u32 = 1;

/// Mono sound at the corpus rate, lent by the [`Decoder`] until its next recording.
///
/// 16-bit where the file is, so that nothing is converted twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sound<'a> {
    /// Full scale is 32768.
    I16(&'a [i16]),
    /// Full scale is 1.0.
    F32(&'a [f32]),
}

impl Sound<'_> {
    /// How many samples there are; the [`Decoder`] never gives none.
    pub fn len(&self) -> Samples {
        Samples(match self {
            Self::I16(samples) => samples.len(),
            Self::F32(samples) => samples.len(),
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == Samples(0)
    }

    /// The same sound with full scale at 1.0, for callers that want one type.
    pub fn to_f32(&self) -> Vec<f32> {
        match self {
            Self::I16(samples) => samples.iter().map(|&s| f32::from(s) / 32768.0).collect(),
            Self::F32(samples) => samples.to_vec(),
        }
    }
}
