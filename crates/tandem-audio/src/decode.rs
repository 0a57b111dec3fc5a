//! Decodes the bytes of a recording to mono samples at the corpus rate.
//!
//! In: bytes, and the file extension as a hint. Out: [`Sound`] that is not silent, finite, and neither
//! too short nor too long. The order is fixed: decode, mix to mono, resample, trim silence, set the
//! loudness; the last two only if [`AudioConfig`] asks for them. Allocates nothing per clip once the buffers fit the longest clip. The common
//! case (16-bit mono WAV at the corpus rate) is not even copied. Opens no file.

use super::compressed::CompressedReader;
use super::config::peak;
use super::flac::FlacReader;
use super::loudness::Loudness;
use super::resample::Resampler;
use super::sniff::{AudioFormat, sniff};
use super::wav::{Encoding, WavFile};
use super::{AudioConfig, AudioError, Sound};
use tandem_units::SampleRate;
use tandem_units::panic_guard::catch_panic;

/// Owns all decoding buffers; one per worker.
#[derive(Debug)]
pub struct Decoder {
    rate: SampleRate,
    config: AudioConfig,
    flac: FlacReader,
    compressed: CompressedReader,
    resampler: Resampler,
    /// 16-bit samples that could not be borrowed from the bytes of the file.
    sixteen_bit: Vec<i16>,
    /// Mono at the file's rate.
    mono: Vec<f32>,
    /// Mono at the corpus rate, if that differs.
    resampled: Vec<f32>,
    /// Built for the first recording, if a loudness is set.
    meter: Option<Loudness>,
    /// The recording at the set loudness.
    levelled: Vec<f32>,
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
    pub fn new(rate: SampleRate, config: AudioConfig) -> Self {
        Self {
            rate,
            config,
            flac: FlacReader::default(),
            compressed: CompressedReader::default(),
            resampler: Resampler::new(rate),
            sixteen_bit: Vec::new(),
            mono: Vec::new(),
            resampled: Vec::new(),
            meter: None,
            levelled: Vec::new(),
        }
    }

    /// The rate of the output.
    pub fn rate(&self) -> SampleRate {
        self.rate
    }

    pub fn config(&self) -> &AudioConfig {
        &self.config
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
            *self = Self::new(self.rate, self.config);
        }
        let sound = match output? {
            Output::Bytes(samples) => Sound::I16(samples),
            Output::SixteenBit => Sound::I16(&self.sixteen_bit),
            Output::Mono => Sound::F32(&self.mono),
            Output::Resampled => Sound::F32(&self.resampled),
        };
        condition(sound, self.rate, &self.config, &mut self.meter, &mut self.levelled)
    }

    /// A part of a recording that is decoded already, as [`Decoder::decode`] gives a whole one: checked, trimmed and at
    /// the set loudness.
    pub fn decode_part<'a>(&'a mut self, samples: &'a [f32]) -> Result<Sound<'a>, AudioError> {
        self.config.check_length(samples.len() as u64, self.rate)?;
        self.config.check_peak(peak(samples, self.rate)?)?;
        let sound = Sound::F32(samples);
        condition(sound, self.rate, &self.config, &mut self.meter, &mut self.levelled)
    }

    fn decode_to_buffer<'a>(
        &mut self,
        bytes: &'a [u8],
        hint: Option<&str>,
    ) -> Result<Output<'a>, AudioError> {
        let (kind, body) = sniff(bytes, hint)?;
        let wav = if kind == AudioFormat::Wav { WavFile::parse(body)? } else { None };
        let rate = match wav {
            Some(file) => {
                self.config.check_length(file.frames() as u64, file.rate)?;
                let same = file.rate == self.rate && file.channels == 1;
                if same && file.encoding == Encoding::I16 {
                    return self.sixteen_bits(file.data);
                }
                file.mix_into(&mut self.mono);
                file.rate
            }
            None => {
                if kind == AudioFormat::Flac
                    && let Some(rate) =
                        self.flac.decode(body, &self.config, &mut self.sixteen_bit)?
                {
                    return self.finish_sixteen_bits(rate);
                }
                self.compressed.decode(kind, body, &self.config, &mut self.mono)?
            }
        };
        self.finish(rate)
    }

    /// As [`Self::finish`], for mono samples of 16 bits.
    fn finish_sixteen_bits(&mut self, rate: SampleRate) -> Result<Output<'static>, AudioError> {
        if rate != self.rate {
            self.mono.clear();
            self.mono.extend(self.sixteen_bit.iter().map(|&sample| f32::from(sample) / 32768.0));
            return self.finish(rate);
        }
        self.config.check_length(self.sixteen_bit.len() as u64, rate)?;
        self.config.check_peak(peak_of_i16(&self.sixteen_bit))?;
        Ok(Output::SixteenBit)
    }

    /// Borrows the bytes of the file if they are 16-bit mono samples already.
    fn sixteen_bits<'a>(&mut self, data: &'a [u8]) -> Result<Output<'a>, AudioError> {
        let cast = bytemuck::try_cast_slice::<u8, i16>(data).ok();
        if cfg!(target_endian = "little")
            && let Some(samples) = cast
        {
            self.config.check_peak(peak_of_i16(samples))?;
            return Ok(Output::Bytes(samples));
        }
        let (samples, _) = data.as_chunks::<2>();
        self.sixteen_bit.clear();
        self.sixteen_bit.extend(samples.iter().map(|&bytes| i16::from_le_bytes(bytes)));
        self.config.check_peak(peak_of_i16(&self.sixteen_bit))?;
        Ok(Output::SixteenBit)
    }

    /// Checks the mono samples and resamples them to the corpus rate.
    fn finish(&mut self, rate: SampleRate) -> Result<Output<'static>, AudioError> {
        self.config.check_length(self.mono.len() as u64, rate)?;
        self.config.check_peak(peak(&self.mono, rate)?)?;
        if rate == self.rate {
            return Ok(Output::Mono);
        }
        self.resampler.convert(&self.mono, rate, &mut self.resampled)?;
        self.config.check_length(self.resampled.len() as u64, self.rate)?;
        Ok(Output::Resampled)
    }
}

/// Trims the silence and sets the loudness, if that is to be done.
fn condition<'a>(
    sound: Sound<'a>,
    rate: SampleRate,
    config: &AudioConfig,
    meter: &mut Option<Loudness>,
    levelled: &'a mut Vec<f32>,
) -> Result<Sound<'a>, AudioError> {
    let sound = trimmed(sound, rate, config)?;
    let Some(target) = config.loudness else { return Ok(sound) };
    let meter = match meter {
        Some(meter) => meter,
        none => none.insert(Loudness::new(rate)?),
    };
    meter.level(sound, target, levelled)?;
    Ok(Sound::F32(levelled))
}

/// The recording without the silence at its ends, if that is to be cut.
fn trimmed<'a>(
    sound: Sound<'a>,
    rate: SampleRate,
    config: &AudioConfig,
) -> Result<Sound<'a>, AudioError> {
    let Some(trim) = config.trim() else { return Ok(sound) };
    let range = match sound {
        Sound::I16(samples) => trim.range(samples, rate),
        Sound::F32(samples) => trim.range(samples, rate),
    };
    let sound = sound.part(range);
    let (length, limit) = (rate.seconds(sound.len()), config.min_length);
    if length < limit {
        return Err(AudioError::TrimmedTooShort { length, limit });
    }
    Ok(sound)
}

fn peak_of_i16(samples: &[i16]) -> f32 {
    // Minimum and maximum separately: every vector unit has both for signed 16-bit values, while the
    // absolute value of -32768 does not fit an i16.
    let (low, high) =
        samples.iter().fold((0i16, 0i16), |(low, high), &s| (low.min(s), high.max(s)));
    f32::from(low.unsigned_abs().max(high.unsigned_abs())) / 32768.0
}
