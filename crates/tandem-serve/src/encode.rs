//! Samples to bytes that a player understands, part by part.
//!
//! In: the samples of each sentence. Out: the bytes that follow those already sent. A file of one part
//! is exact; a header that is sent before the end says that the length is unknown. Samples that are too
//! loud are scaled down, never clipped; quiet sentences after them are scaled in the same way.

use crate::api_error::ApiError;
use std::str::FromStr;
pub use tandem_audio::flac_stream::BlockPosition;
use tandem_audio::flac_stream::FlacStream;
use tandem_audio::resample::Resampler;
use tandem_model::vocoder::wav::{LOUDEST, WavError, endless_header, level, wav_bytes};
use tandem_units::SampleRate;

/// PCM has no header that could name a rate; clients of OpenAI expect this one.
const PCM_RATE: SampleRate = SampleRate(24_000);

/// A format of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Wav,
    /// 16 bit, little endian, mono, 24 kHz, no header.
    Pcm,
    Flac,
}

impl FromStr for Format {
    type Err = ();

    fn from_str(name: &str) -> Result<Format, ()> {
        match name {
            "wav" => Ok(Format::Wav),
            "pcm" => Ok(Format::Pcm),
            "flac" => Ok(Format::Flac),
            _ => Err(()),
        }
    }
}

impl Format {
    /// The `Content-Type` header.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Wav => "audio/wav",
            Format::Pcm => "audio/pcm; rate=24000; channels=1",
            Format::Flac => "audio/flac",
        }
    }
}

/// Encodes the parts of one answer.
pub struct Encoder {
    format: Format,
    rate: SampleRate,
    gain: f32,
    began: bool,
    resampler: Resampler,
    flac: FlacStream,
}

impl Encoder {
    /// For samples at this rate.
    pub fn new(format: Format, rate: SampleRate) -> Encoder {
        let resampler = Resampler::new(PCM_RATE);
        Encoder { format, rate, gain: 1.0, began: false, resampler, flac: FlacStream::new(rate) }
    }

    /// The bytes of the next part.
    pub fn encode(&mut self, samples: &[f32], place: BlockPosition) -> Result<Vec<u8>, ApiError> {
        if samples.iter().any(|sample| !sample.is_finite()) {
            let hint = "use an earlier checkpoint: training has diverged in this one";
            return Err(ApiError::server("the voice gives NaN or infinite samples").with_hint(hint));
        }
        let first = !std::mem::replace(&mut self.began, true);
        match self.format {
            Format::Wav if first && place == BlockPosition::Last => {
                let failed = |error: WavError| ApiError::server(error.to_string());
                Ok(wav_bytes(samples, self.rate).map_err(failed)?.0)
            }
            Format::Wav => {
                let mut bytes = if first { endless_header(self.rate) } else { Vec::new() };
                bytes.extend(self.levels(samples).flat_map(i16::to_le_bytes));
                Ok(bytes)
            }
            Format::Pcm => {
                // Sentences begin and end with silence, so each may be resampled alone.
                let mut resampled = Vec::new();
                let converted = self.resampler.convert(samples, self.rate, &mut resampled);
                converted.map_err(|error| ApiError::server(error.to_string()))?;
                Ok(self.levels(&resampled).flat_map(i16::to_le_bytes).collect())
            }
            Format::Flac => {
                let levels: Vec<i32> = self.levels(samples).map(i32::from).collect();
                self.flac.encode(&levels, place).map_err(ApiError::server)
            }
        }
    }

    /// Samples as 16 bit.
    fn levels(&mut self, samples: &[f32]) -> impl Iterator<Item = i16> {
        let peak = samples.iter().fold(0.0f32, |peak, sample| peak.max(sample.abs()));
        self.gain = self.gain.min(LOUDEST / peak.max(LOUDEST));
        let gain = self.gain;
        samples.iter().map(move |sample| level(sample * gain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_audio::{AudioConfig, Decoder};
    use tandem_units::Seconds;

    const RATE: SampleRate = SampleRate(22_050);

    fn tone(samples: usize, level: f32) -> Vec<f32> {
        (0..samples).map(|i| (i as f32 * 0.05).sin() * level).collect()
    }

    fn encode(format: Format, parts: &[Vec<f32>]) -> Vec<u8> {
        let mut encoder = Encoder::new(format, RATE);
        let last = parts.len() - 1;
        let place = |number| if number == last { BlockPosition::Last } else { BlockPosition::More };
        let parts = parts.iter().enumerate();
        parts.flat_map(|(number, part)| encoder.encode(part, place(number)).unwrap()).collect()
    }

    fn pcm(bytes: &[u8]) -> Vec<i16> {
        bytes.chunks(2).map(|two| i16::from_le_bytes([two[0], two[1]])).collect()
    }

    #[test]
    fn wav_of_one_part_is_exact_and_of_several_is_endless() {
        let whole = encode(Format::Wav, &[tone(5000, 0.5)]);
        assert_eq!(hound::WavReader::new(&whole[..]).unwrap().duration(), 5000);
        let parts = encode(Format::Wav, &[tone(5000, 0.5), tone(100, 0.5)]);
        assert_eq!(&parts[..4], b"RIFF");
        assert_eq!(&parts[40..44], &[0xff; 4]);
        assert_eq!(parts[44..10_044], whole[44..]);
        assert_eq!(parts.len(), 44 + 2 * 5100);
    }

    #[test]
    fn pcm_has_the_rate_that_clients_expect() {
        let bytes = encode(Format::Pcm, &[tone(22_050, 0.5), tone(11_025, 0.5)]);
        assert_eq!(bytes.len(), 2 * (24_000 + 12_000));
    }

    #[test]
    fn flac_in_parts_decodes_to_the_same_samples() {
        for parts in [
            vec![tone(5000, 0.5)],
            vec![tone(5000, 0.5), tone(10, 0.2), tone(9000, 0.4)],
            // The last frame has three samples.
            vec![tone(4096, 0.5), tone(3, 0.2)],
        ] {
            let bytes = encode(Format::Flac, &parts);
            let config = AudioConfig { min_length: Seconds(0.0), ..AudioConfig::default() };
            let mut decoder = Decoder::new(RATE, config);
            let sound = decoder.decode(&bytes, Some("flac")).unwrap();
            let plain = pcm(&encode(Format::Wav, &[parts.concat()])[44..]);
            let found: Vec<i16> =
                sound.to_f32().iter().map(|s| (s * 32768.0).round() as i16).collect();
            assert_eq!(found.len(), plain.len());
            assert!(found == plain);
        }
    }

    #[test]
    fn loud_samples_are_scaled_and_never_clipped() {
        let bytes = encode(Format::Wav, &[tone(5000, 2.0), tone(5000, 0.5)]);
        let levels = pcm(&bytes[44..]);
        let peak = |levels: &[i16]| levels.iter().map(|level| level.unsigned_abs()).max().unwrap();
        assert!((32_000..=32_200).contains(&peak(&levels[..5000])));
        assert!((8_000..=8_100).contains(&peak(&levels[5000..])));
    }

    #[test]
    fn nan_samples_are_an_error() {
        let error =
            Encoder::new(Format::Wav, RATE).encode(&[f32::NAN], BlockPosition::Last).unwrap_err();
        assert_eq!(error.status.as_u16(), 500);
        assert!(error.hint.unwrap().contains("earlier checkpoint"));
    }
}
