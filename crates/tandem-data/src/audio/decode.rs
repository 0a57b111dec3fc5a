//! Decodes the bytes of a recording to mono samples at the corpus rate.
//!
//! In: bytes, and the file extension as a hint. Out: [`Sound`] that is not silent, finite, and neither
//! too short nor too long. Allocates nothing per clip once the buffers fit the longest clip. The common
//! case (16-bit mono WAV at the corpus rate) is not even copied. Opens no file.

use super::compressed::CompressedReader;
use super::limits::peak;
use super::resample::Resampler;
use super::sniff::{Kind, sniff};
use super::wav::{Encoding, WavFile};
use super::{AudioError, AudioLimits, Sound};
use crate::panic_guard::catch_panic;
use tandem_units::SampleRate;

/// Owns all decoding buffers; one per worker.
#[derive(Debug)]
pub struct Decoder {
    rate: SampleRate,
    limits: AudioLimits,
    compressed: CompressedReader,
    resampler: Resampler,
    /// 16-bit samples that could not be borrowed from the bytes of the file.
    sixteen_bit: Vec<i16>,
    /// Mono at the file's rate.
    mono: Vec<f32>,
    /// Mono at the corpus rate, if that differs.
    resampled: Vec<f32>,
}

/// The buffer with the result. It borrows nothing from the decoder, so that the buffers can be cleared after a panic.
enum Output<'a> {
    /// The bytes of the file itself.
    Bytes(&'a [i16]),
    SixteenBit,
    Mono,
    Resampled,
}

impl Decoder {
    /// A decoder to `rate` that refuses recordings outside the limits.
    pub fn new(rate: SampleRate, limits: AudioLimits) -> Self {
        Self {
            rate,
            limits,
            compressed: CompressedReader::default(),
            resampler: Resampler::new(rate),
            sixteen_bit: Vec::new(),
            mono: Vec::new(),
            resampled: Vec::new(),
        }
    }

    /// The rate of the output.
    pub fn rate(&self) -> SampleRate {
        self.rate
    }

    pub fn limits(&self) -> &AudioLimits {
        &self.limits
    }

    /// Decodes one recording; the result is borrowed until the next call.
    ///
    /// The content decides the format; `hint`, a file extension, is used only if the content is
    /// ambiguous. After an error the decoder can be used for the next recording.
    pub fn decode<'a>(
        &'a mut self,
        bytes: &'a [u8],
        hint: Option<&str>,
    ) -> Result<Sound<'a>, AudioError> {
        let output = catch_panic(|| self.decode_to_buffer(bytes, hint))
            .unwrap_or_else(|message| Err(AudioError::Panicked { message }));
        if matches!(output, Err(AudioError::Panicked { .. })) {
            *self = Self::new(self.rate, self.limits);
        }
        Ok(match output? {
            Output::Bytes(samples) => Sound::I16(samples),
            Output::SixteenBit => Sound::I16(&self.sixteen_bit),
            Output::Mono => Sound::F32(&self.mono),
            Output::Resampled => Sound::F32(&self.resampled),
        })
    }

    fn decode_to_buffer<'a>(
        &mut self,
        bytes: &'a [u8],
        hint: Option<&str>,
    ) -> Result<Output<'a>, AudioError> {
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

    /// Borrows the bytes of the file if they are 16-bit mono samples already.
    fn sixteen_bits<'a>(&mut self, data: &'a [u8]) -> Result<Output<'a>, AudioError> {
        let cast = bytemuck::try_cast_slice::<u8, i16>(data).ok();
        if cfg!(target_endian = "little")
            && let Some(samples) = cast
        {
            self.limits.check_peak(peak_of_i16(samples))?;
            return Ok(Output::Bytes(samples));
        }
        let (samples, _) = data.as_chunks::<2>();
        self.sixteen_bit.clear();
        self.sixteen_bit.extend(samples.iter().map(|&bytes| i16::from_le_bytes(bytes)));
        self.limits.check_peak(peak_of_i16(&self.sixteen_bit))?;
        Ok(Output::SixteenBit)
    }

    /// Checks the mono samples and resamples them to the corpus rate.
    fn finish(&mut self, rate: SampleRate) -> Result<Output<'static>, AudioError> {
        self.limits.check_length(self.mono.len() as u64, rate)?;
        self.limits.check_peak(peak(&self.mono, rate)?)?;
        if rate == self.rate {
            return Ok(Output::Mono);
        }
        self.resampler.convert(&self.mono, rate, &mut self.resampled)?;
        self.limits.check_length(self.resampled.len() as u64, self.rate)?;
        Ok(Output::Resampled)
    }
}

fn peak_of_i16(samples: &[i16]) -> f32 {
    // Minimum and maximum separately: every vector unit has both for signed 16-bit values, while the
    // absolute value of -32768 does not fit an i16.
    let (low, high) =
        samples.iter().fold((0i16, 0i16), |(low, high), &s| (low.min(s), high.max(s)));
    f32::from(low.unsigned_abs().max(high.unsigned_abs())) / 32768.0
}
