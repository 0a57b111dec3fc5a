//! Limits on a recording: length, file size, rate, channels, level.
//!
//! In: what a header or the samples say. Out: nothing, or an [`AudioError`].

use super::AudioError;
use serde::{Deserialize, Serialize};
use tandem_units::{Bytes, SampleRate, Seconds};

/// The lowest plausible sample rate in Hz.
const SLOWEST: u32 = 4_000;
/// The highest plausible sample rate in Hz.
const FASTEST: u32 = 768_000;
/// The most channels: more than any microphone array in a corpus.
const MOST_CHANNELS: usize = 64;
/// The highest peak of a float recording. Peaks slightly above full scale are normal in float files;
/// far above it, the file contains integers written as floats.
const LOUDEST: f32 = 16.0;

/// Limits on one recording, checked while it is read and decoded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AudioLimits {
    /// The longest accepted recording. Decoding stops at this limit.
    pub max_length: Seconds,
    /// The shortest accepted recording.
    pub min_length: Seconds,
    /// The largest accepted file.
    pub max_file: Bytes,
    /// A recording whose peak is below this share of full scale counts as silent.
    pub min_peak: f32,
}

impl Default for AudioLimits {
    fn default() -> Self {
        Self {
            max_length: Seconds(120.0),
            min_length: Seconds(0.1),
            max_file: Bytes::mib(256),
            // -66 dB of full scale: a quiet voice is 20 dB above it, dither 20 dB below.
            min_peak: 5e-4,
        }
    }
}

impl AudioLimits {
    /// Decoding stops after this many frames.
    pub(super) fn max_frames(&self, rate: SampleRate) -> usize {
        rate.samples(self.max_length).0
    }

    /// Checks a length that is known before decoding.
    pub(super) fn check_length(&self, frames: u64, rate: SampleRate) -> Result<(), AudioError> {
        let length = Seconds(frames as f64 / f64::from(rate.0));
        if frames == 0 {
            return Err(AudioError::NoSamples);
        }
        if length > self.max_length {
            return Err(AudioError::TooLong { length, limit: self.max_length });
        }
        if length < self.min_length {
            return Err(AudioError::TooShort { length, limit: self.min_length });
        }
        Ok(())
    }

    /// Refuses silence, and floats with an implausible scale.
    pub(super) fn check_peak(&self, peak: f32) -> Result<(), AudioError> {
        if peak < self.min_peak {
            return Err(AudioError::Silent { peak, limit: self.min_peak });
        }
        if peak > LOUDEST {
            return Err(AudioError::OutOfScale { peak });
        }
        Ok(())
    }
}

/// Checks that rate and channel count are plausible.
pub(super) fn check_layout(rate: u32, channels: usize) -> Result<SampleRate, AudioError> {
    if !(SLOWEST..=FASTEST).contains(&rate) {
        return Err(AudioError::Rate { rate });
    }
    if channels == 0 || channels > MOST_CHANNELS {
        return Err(AudioError::Channels { channels });
    }
    Ok(SampleRate(rate))
}

/// The largest absolute sample; the error is the position of the first NaN or infinity.
pub(super) fn peak(samples: &[f32], rate: SampleRate) -> Result<f32, AudioError> {
    // One pass without branches, which vectorises; the position is searched only if needed.
    let top = samples.iter().fold(0u32, |top, s| top.max(s.to_bits() & 0x7FFF_FFFF));
    let peak = f32::from_bits(top);
    if peak.is_finite() {
        return Ok(peak);
    }
    let at = samples.iter().position(|s| !s.is_finite()).unwrap_or(0);
    Err(AudioError::NonFinite { at: rate.seconds(tandem_units::Samples(at)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_with_an_implausible_rate_is_refused() {
        for rate in [0, 1, 3_999, 768_001, u32::MAX] {
            assert!(matches!(check_layout(rate, 1), Err(AudioError::Rate { .. })), "{rate}");
        }
        assert!(check_layout(8_000, 0).is_err() && check_layout(8_000, 65).is_err());
        assert_eq!(check_layout(96_000, 8).unwrap(), SampleRate(96_000));
    }

    #[test]
    fn the_error_names_the_time_of_the_first_non_finite_sample() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN] {
            let mut samples = vec![0.5f32; 100];
            samples[50] = bad;
            let error = peak(&samples, SampleRate(100)).unwrap_err();
            assert!(matches!(error, AudioError::NonFinite { at } if at == Seconds(0.5)));
        }
        assert_eq!(peak(&[0.25, -0.75, 0.5], SampleRate(100)).unwrap(), 0.75);
    }

    #[test]
    fn limits_are_read_with_their_names_checked() {
        let limits: AudioLimits = serde_json::from_str(r#"{"max_length": 30.0}"#).unwrap();
        assert_eq!(limits, AudioLimits { max_length: Seconds(30.0), ..AudioLimits::default() });
        assert!(serde_json::from_str::<AudioLimits>(r#"{"max_lenght": 30.0}"#).is_err());
    }
}
