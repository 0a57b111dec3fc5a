//! The whole way from a recording's bytes to mono sound at the corpus rate.
//!
//! In: bytes, and the file name's extension as a hint. Out: [`Sound`], checked: not silent,
//! every sample a number, neither too short nor too long.
//! Allocates nothing per clip once its buffers have grown to the longest, and in the usual case
//! (16-bit mono WAV at the corpus rate) does not even copy. Opens no file.

use super::compressed::CompressedReader;
use super::limits::peak;
use super::resample::Resampler;
use super::sniff::{Kind, sniff};
use super::wav::{Encoding, WavFile};
use super::{AudioError, AudioLimits, Sound};
use crate::panic_guard::catch_panic;
use tandem_units::SampleRate;

/// Owns every buffer decoding needs; one per worker.
#[derive(Debug)]
pub struct Decoder {
    rate: SampleRate,
    limits: AudioLimits,
    compressed: CompressedReader,
    resampler: Resampler,
    /// 16-bit samples, where they could not be lent from the file's own bytes.
    whole: Vec<i16>,
    /// Mono at the file's rate.
    mono: Vec<f32>,
    /// Mono at the corpus rate, where that is another.
    resampled: Vec<f32>,
}

/// Where the finished sound lies: said without borrowing, so that a panic's wreck can be
/// cleared before anything is lent.
enum Place<'a> {
    Bytes(&'a [i16]),
    Whole,
    Mono,
    Resampled,
}

impl Decoder {
    /// A decoder towards one rate, refusing what is outside the limits.
    pub fn new(rate: SampleRate, limits: AudioLimits) -> Self {
        Self {
            rate,
            limits,
            compressed: CompressedReader::default(),
            resampler: Resampler::new(rate),
            whole: Vec::new(),
            mono: Vec::new(),
            resampled: Vec::new(),
        }
    }

    /// The rate every sound comes out at.
    pub fn rate(&self) -> SampleRate {
        self.rate
    }

    /// The limits recordings are held to.
    pub fn limits(&self) -> &AudioLimits {
        &self.limits
    }

    /// The recording's sound, lent until the next call.
    ///
    /// The content decides the format; `hint`, a file extension, is asked only where it says
    /// nothing. Any fault costs this recording alone: the decoder goes on with the next one.
    pub fn decode<'a>(
        &'a mut self,
        bytes: &'a [u8],
        hint: Option<&str>,
    ) -> Result<Sound<'a>, AudioError> {
        let placed = catch_panic(|| self.place(bytes, hint))
            .unwrap_or_else(|message| Err(AudioError::Panicked { message }));
        if matches!(placed, Err(AudioError::Panicked { .. })) {
            *self = Self::new(self.rate, self.limits);
        }
        Ok(match placed? {
            Place::Bytes(samples) => Sound::I16(samples),
            Place::Whole => Sound::I16(&self.whole),
            Place::Mono => Sound::F32(&self.mono),
            Place::Resampled => Sound::F32(&self.resampled),
        })
    }

    fn place<'a>(&mut self, bytes: &'a [u8], hint: Option<&str>) -> Result<Place<'a>, AudioError> {
        let (kind, body) = sniff(bytes, hint)?;
        let wav = if kind == Kind::Wav { WavFile::parse(body)? } else { None };
        let rate = match wav {
            Some(file) => {
                self.limits.check_length(file.frames() as u64, file.rate)?;
                let same = file.rate == self.rate && file.channels == 1;
                if same && file.encoding == Encoding::I16 {
                    return self.sixteen_bits(file.data);
                }
                file.mix_into(&mut self.mono);
                file.rate
            }
            None => self.compressed.decode(kind, body, &self.limits, &mut self.mono)?,
        };
        self.finish(rate)
    }

    /// Lends the file's own bytes where they are 16-bit samples in memory already.
    fn sixteen_bits<'a>(&mut self, data: &'a [u8]) -> Result<Place<'a>, AudioError> {
        let lent = bytemuck::try_cast_slice::<u8, i16>(data).ok();
        if cfg!(target_endian = "little")
            && let Some(samples) = lent
        {
            self.limits.check_peak(peak_of_i16(samples))?;
            return Ok(Place::Bytes(samples));
        }
        let (samples, _) = data.as_chunks::<2>();
        self.whole.clear();
        self.whole.extend(samples.iter().map(|&bytes| i16::from_le_bytes(bytes)));
        self.limits.check_peak(peak_of_i16(&self.whole))?;
        Ok(Place::Whole)
    }

    /// Checks the mono sound and brings it to the corpus rate.
    fn finish(&mut self, rate: SampleRate) -> Result<Place<'static>, AudioError> {
        self.limits.check_length(self.mono.len() as u64, rate)?;
        self.limits.check_peak(peak(&self.mono, rate)?)?;
        if rate == self.rate {
            return Ok(Place::Mono);
        }
        self.resampler.convert(&self.mono, rate, &mut self.resampled)?;
        self.limits.check_length(self.resampled.len() as u64, self.rate)?;
        Ok(Place::Resampled)
    }
}

fn peak_of_i16(samples: &[i16]) -> f32 {
    // Both ends apart, since every vector unit has a signed 16-bit minimum and maximum, while
    // the absolute value of -32768 is no i16.
    let (low, high) =
        samples.iter().fold((0i16, 0i16), |(low, high), &s| (low.min(s), high.max(s)));
    f32::from(low.unsigned_abs().max(high.unsigned_abs())) / 32768.0
}
