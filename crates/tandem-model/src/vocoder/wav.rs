//! Sound to a WAV file that every program reads: 16 bit, mono.
//!
//! In: samples with full scale at 1.0. Out: a whole file, or the old one still there. Too loud a
//! sound is turned down as a whole, never cut off.

use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use tandem_disk::replace_file::replace_file;
use tandem_units::{Hint, SampleRate};

/// The loudest sample that is written as it is. A little room stays for players that resample.
const LOUDEST: f32 = 0.98;

/// What became of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written {
    /// The loudest sample that was given, from 0 up.
    pub peak: f32,
    /// What all samples were multiplied by: below 1 where they were too loud.
    pub gain: f32,
}

/// Why a sound could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WavError {
    /// A sample is NaN or infinite.
    #[error("sample {index} is not a number that can be played ({value})")]
    Sample {
        /// Place in the sound.
        index: usize,
        /// What stands there.
        value: f32,
    },
    /// More than such a file can hold.
    #[error("{samples} samples do not fit a WAV file")]
    TooLong {
        /// How many.
        samples: usize,
    },
    /// The file could not be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Hint for WavError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Sample { .. } => "use an earlier checkpoint: this one gives no sound".into(),
            Self::TooLong { .. } => "speak the text in parts".into(),
            Self::Write { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "create the directory first, or name another place".into()
            }
            Self::Write { .. } => "check free space and permissions, or name another place".into(),
        })
    }
}

/// Writes a sound, replacing the file at once.
pub fn write_wav(path: &Path, samples: &[f32], rate: SampleRate) -> Result<Written, WavError> {
    let (bytes, written) = wav_bytes(samples, rate)?;
    replace_file(path, &bytes)
        .map_err(|source| WavError::Write { path: path.to_path_buf(), source })?;
    Ok(written)
}

/// The same as the bytes of a file, for logs that hold sound.
pub fn wav_bytes(samples: &[f32], rate: SampleRate) -> Result<(Vec<u8>, Written), WavError> {
    if let Some(index) = samples.iter().position(|sample| !sample.is_finite()) {
        return Err(WavError::Sample { index, value: samples[index] });
    }
    let too_long = || WavError::TooLong { samples: samples.len() };
    // The format counts bytes in 32 bits, header included.
    if samples.len() > (u32::MAX as usize - 1024) / 2 {
        return Err(too_long());
    }
    let peak = samples.iter().fold(0.0f32, |peak, sample| peak.max(sample.abs()));
    let gain = if peak > LOUDEST { LOUDEST / peak } else { 1.0 };
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: rate.0,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = Cursor::new(Vec::with_capacity(2 * samples.len() + 64));
    let mut writer = hound::WavWriter::new(&mut bytes, spec).map_err(|_| too_long())?;
    for sample in samples {
        let level = (sample * gain * 32768.0).round() as i16;
        writer.write_sample(level).map_err(|_| too_long())?;
    }
    writer.finalize().map_err(|_| too_long())?;
    Ok((bytes.into_inner(), Written { peak, gain }))
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
    fn samples_come_back_to_the_nearest_step() {
        let (bytes, written) = wav_bytes(&[0.0, 0.5, -0.5, 0.97, 1.0 / 32768.0], RATE).unwrap();
        let (spec, samples) = read(&bytes);
        assert_eq!((spec.channels, spec.sample_rate, spec.bits_per_sample), (1, 22050, 16));
        assert_eq!(samples, [0, 16384, -16384, 31785, 1]);
        assert_eq!(written, Written { peak: 0.97, gain: 1.0 });
    }

    #[test]
    fn too_loud_a_sound_is_turned_down_and_not_cut_off() {
        let (bytes, written) = wav_bytes(&[2.0, -1.0, 0.5], RATE).unwrap();
        assert_eq!(read(&bytes).1, [32113, -16056, 8028]);
        assert_eq!(written, Written { peak: 2.0, gain: 0.49 });
    }

    #[test]
    fn no_samples_are_a_valid_file_and_no_number_is_an_error() {
        assert_eq!(read(&wav_bytes(&[], RATE).unwrap().0).1, [0i16; 0]);
        let error = wav_bytes(&[0.0, f32::NAN], RATE).unwrap_err();
        assert!(matches!(error, WavError::Sample { index: 1, .. }), "{error}");
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("a.wav");
        write_wav(&path, &[0.5; 10], RATE).unwrap();
        assert!(write_wav(&path, &[f32::INFINITY], RATE).is_err());
        assert_eq!(read(&std::fs::read(&path).unwrap()).1, [16384; 10]);
        let error = write_wav(&room.path().join("none/a.wav"), &[0.5], RATE).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains("directory")), "{error}");
    }
}
