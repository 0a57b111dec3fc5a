//! Samples to WAV: 16 bit, mono. The only writer of the format.
//!
//! In: samples with full scale at 1.0. Out: a complete file, or the old one unchanged; bytes; or a header for samples that
//! follow one part after the other. Samples that are too loud are scaled down as a whole, never clipped.

use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use tandem_disk::replace_file::replace_file;
use tandem_units::{Hint, SampleRate};

/// The loudest sample that is written unscaled. The headroom is for players that resample.
pub const LOUDEST: f32 = 0.98;

/// How the samples were scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written {
    /// The absolute value of the loudest sample.
    pub peak: f32,
    /// The factor of all samples: below 1 if they were too loud.
    pub gain: f32,
}

/// Why samples could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WavError {
    #[error("sample {index} is not finite: {value}")]
    Sample { index: usize, value: f32 },
    #[error("{samples} samples do not fit a WAV file")]
    TooLong { samples: usize },
    #[error("cannot write `{}`", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl Hint for WavError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Sample { .. } => {
                "use an earlier checkpoint: training has diverged in this one".into()
            }
            Self::TooLong { .. } => "synthesize the text in several parts".into(),
            Self::Write { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "create the directory first, or use another path".into()
            }
            Self::Write { .. } => "check free space and permissions, or use another path".into(),
        })
    }
}

/// Writes a file, and replaces an existing one atomically.
pub fn write_wav(path: &Path, samples: &[f32], rate: SampleRate) -> Result<Written, WavError> {
    let (bytes, written) = wav_bytes(samples, rate)?;
    replace_file(path, &bytes)
        .map_err(|source| WavError::Write { path: path.to_path_buf(), source })?;
    Ok(written)
}

/// The bytes of a WAV file, for logs that contain audio.
pub fn wav_bytes(samples: &[f32], rate: SampleRate) -> Result<(Vec<u8>, Written), WavError> {
    if let Some(index) = samples.iter().position(|sample| !sample.is_finite()) {
        return Err(WavError::Sample { index, value: samples[index] });
    }
    let peak = samples.iter().fold(0.0f32, |peak, sample| peak.max(sample.abs()));
    let gain = if peak > LOUDEST { LOUDEST / peak } else { 1.0 };
    let levels: Vec<i16> = samples.iter().map(|sample| level(sample * gain)).collect();
    Ok((wav_of_levels(&levels, rate)?, Written { peak, gain }))
}

/// A sample as 16 bits. One above full scale is clipped, NaN is silence.
pub fn level(sample: f32) -> i16 {
    (sample * 32768.0).round() as i16
}

/// The bytes of a WAV file of 16-bit samples.
pub fn wav_of_levels(levels: &[i16], rate: SampleRate) -> Result<Vec<u8>, WavError> {
    let too_long = || WavError::TooLong { samples: levels.len() };
    // The format counts bytes in 32 bits, including the header.
    if levels.len() > (u32::MAX as usize - 1024) / 2 {
        return Err(too_long());
    }
    let mut bytes = Cursor::new(Vec::with_capacity(2 * levels.len() + 64));
    let mut writer = hound::WavWriter::new(&mut bytes, spec(rate)).map_err(|_| too_long())?;
    for level in levels {
        writer.write_sample(*level).map_err(|_| too_long())?;
    }
    writer.finalize().map_err(|_| too_long())?;
    Ok(bytes.into_inner())
}

/// The header of a WAV file whose length is not known yet.
pub fn endless_header(rate: SampleRate) -> Vec<u8> {
    spec(rate).into_header_for_infinite_file()
}

fn spec(rate: SampleRate) -> hound::WavSpec {
    hound::WavSpec {
        channels: 1,
        sample_rate: rate.0,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: SampleRate = SampleRate(22050);

    fn read(bytes: &[u8]) -> (hound::WavSpec, Vec<i16>) {
        let mut reader = hound::WavReader::new(bytes).unwrap();
        (reader.spec(), reader.samples::<i16>().map(Result::unwrap).collect())
    }

    #[test]
    fn samples_are_rounded_to_the_nearest_step() {
        let (bytes, written) = wav_bytes(&[0.0, 0.5, -0.5, 0.97, 1.0 / 32768.0], RATE).unwrap();
        let (spec, samples) = read(&bytes);
        assert_eq!((spec.channels, spec.sample_rate, spec.bits_per_sample), (1, 22050, 16));
        assert_eq!(samples, [0, 16384, -16384, 31785, 1]);
        assert_eq!(written, Written { peak: 0.97, gain: 1.0 });
    }

    #[test]
    fn samples_that_are_too_loud_are_scaled_and_not_clipped() {
        let (bytes, written) = wav_bytes(&[2.0, -1.0, 0.5], RATE).unwrap();
        assert_eq!(read(&bytes).1, [32113, -16056, 8028]);
        assert_eq!(written, Written { peak: 2.0, gain: 0.49 });
    }

    #[test]
    fn a_level_is_clipped_and_nan_is_silence() {
        let levels = [2.0, -2.0, f32::NAN, 1.0, -1.0, 0.0].map(level);
        assert_eq!(levels, [i16::MAX, i16::MIN, 0, i16::MAX, i16::MIN, 0]);
    }

    #[test]
    fn no_samples_are_a_valid_file_and_nan_is_an_error() {
        assert_eq!(read(&wav_bytes(&[], RATE).unwrap().0).1, [0i16; 0]);
        let error = wav_bytes(&[0.0, f32::NAN], RATE).unwrap_err();
        assert!(matches!(error, WavError::Sample { index: 1, .. }), "{error}");
    }

    #[test]
    fn a_file_is_replaced_completely_or_not_at_all() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("a.wav");
        write_wav(&path, &[0.5; 10], RATE).unwrap();
        assert!(write_wav(&path, &[f32::INFINITY], RATE).is_err());
        assert_eq!(read(&std::fs::read(&path).unwrap()).1, [16384; 10]);
        let error = write_wav(&room.path().join("none/a.wav"), &[0.5], RATE).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains("directory")), "{error}");
    }
}
