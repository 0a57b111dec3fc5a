//! Settings of a recording: limits on length, file size and level; trimming and loudness.
//!
//! In: what a header or the samples say. Out: nothing, or an [`AudioError`].

use super::AudioError;
use super::trim::Trim;
use serde::{Deserialize, Serialize};
use tandem_settings::{Range, settings};
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

settings! {
    /// Limits on one recording, and how it is prepared for the features: trimmed, then brought to a
    /// loudness. Checked and applied while it is read and decoded.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct AudioConfig in "audio" {
        /// Longest recording, in seconds
        // Decoding stops at this limit.
        max_length: Seconds = Seconds(120.0), "" {}
        /// Shortest recording, in seconds
        min_length: Seconds = Seconds(0.1), "" { myxtts: &["d.min_audio_length"] }
        /// Largest recording file, in bytes
        max_file: Bytes = Bytes::mib(256), "" { range: Range::FromZero }
        /// Peak level, as a share of full scale, below which a recording counts as silent
        // -66 dB of full scale: a quiet voice is 20 dB above it, dither 20 dB below.
        min_peak: f32 = 5e-4, "" {}
        /// Cut silence at both ends of each recording: what is DB below its loudest 20 ms, from -100 to
        /// -1, such as -40
        // From below any noise to almost all speech.
        #[serde(skip_serializing_if = "Option::is_none")]
        trim_silence: Option<f32> = None, "--trim-silence DB" {
            range: Range::Between(-100.0, -1.0),
            default_in_words: "off",
            heading: CORPUS,
        }
        /// Silence that trimming leaves at each end, in milliseconds
        trim_margin: f32 = 50.0, "--trim-margin MS" {
            range: Range::Between(0.0, 10_000.0),
            heading: CORPUS,
        }
        /// Bring each recording to this loudness by EBU R128, from -70 to -5 LUFS, such as -23
        // R128 ignores everything below -70.
        #[serde(skip_serializing_if = "Option::is_none")]
        loudness: Option<f32> = None, "--loudness LUFS" {
            range: Range::Between(-70.0, -5.0),
            default_in_words: "off",
            heading: CORPUS,
            myxtts: &["d.target_loudness_lufs"],
        }
    }
}

/// The part of the help.
const CORPUS: &str = "Corpus";

impl AudioConfig {
    /// These limits, with the trimming and the loudness of `voice`: a recording for a trained voice
    /// must be prepared as its training data was.
    pub fn conditioned_like(self, voice: &AudioConfig) -> AudioConfig {
        let &AudioConfig { trim_silence, trim_margin, loudness, .. } = voice;
        AudioConfig { trim_silence, trim_margin, loudness, ..self }
    }

    pub fn is_default(&self) -> bool {
        *self == AudioConfig::default()
    }

    pub(super) fn trim(&self) -> Option<Trim> {
        let margin = Seconds(f64::from(self.trim_margin) / 1000.0);
        self.trim_silence.map(|level| Trim { level, margin })
    }

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
    use tandem_settings::check;

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
        let limits: AudioConfig = serde_json::from_str(r#"{"max_length": 30.0}"#).unwrap();
        assert_eq!(limits, AudioConfig { max_length: Seconds(30.0), ..AudioConfig::default() });
        assert!(serde_json::from_str::<AudioConfig>(r#"{"max_lenght": 30.0}"#).is_err());
    }

    #[test]
    fn values_out_of_range_are_named() {
        let base = AudioConfig::default();
        assert!(check(&base).is_ok());
        for (config, key) in [
            (AudioConfig { trim_silence: Some(40.0), ..base }, "audio.trim_silence"),
            (AudioConfig { trim_silence: Some(f32::NAN), ..base }, "audio.trim_silence"),
            (AudioConfig { trim_margin: -1.0, ..base }, "audio.trim_margin"),
            (AudioConfig { loudness: Some(0.0), ..base }, "audio.loudness"),
        ] {
            assert_eq!(check(&config).unwrap_err().setting.key, key);
        }
    }
}
