//! Brings a recording to a loudness: EBU R128, one gain for the whole recording.
//!
//! In: mono samples. Out: the samples times a gain. Peaks stay below full scale: a recording that
//! would exceed it gets a smaller gain and stays quieter than asked. Compresses nothing. Next on the
//! path: [`super::mel`].

use super::{AudioError, Sound};
use ebur128::{EbuR128, Mode};
use std::fmt;
use tandem_units::{SampleRate, Seconds};

/// R128 measures in blocks of this length; a shorter recording has no loudness.
pub const SHORTEST: Seconds = Seconds(0.4);
/// The highest peak after the gain: -1 dB of full scale, as R128 recommends.
const CEILING: f32 = 0.891_250_9;

/// Measures recordings at one rate; one per worker.
#[derive(Debug)]
pub struct Loudness {
    meter: EbuR128,
    rate: SampleRate,
}

impl Loudness {
    /// A meter for recordings at `rate`, which [`super::config::check_layout`] accepts.
    pub fn new(rate: SampleRate) -> Result<Self, AudioError> {
        let meter = EbuR128::new(1, rate.0, Mode::I).map_err(unmeasurable)?;
        Ok(Self { meter, rate })
    }

    /// Integrated loudness in LUFS.
    pub fn measure(&mut self, sound: Sound<'_>) -> Result<f64, AudioError> {
        let length = self.rate.seconds(sound.len());
        if length < SHORTEST {
            return Err(AudioError::TooShortForLoudness { length, limit: SHORTEST });
        }
        self.meter.reset();
        match sound {
            Sound::I16(samples) => self.meter.add_frames_i16(samples),
            Sound::F32(samples) => self.meter.add_frames_f32(samples),
        }
        .map_err(unmeasurable)?;
        let loudness = self.meter.loudness_global().map_err(unmeasurable)?;
        // Every block is below the absolute gate of -70 LUFS.
        loudness.is_finite().then_some(loudness).ok_or(AudioError::TooQuietForLoudness)
    }

    /// Writes `sound` at `target` LUFS into `out`.
    pub fn level(
        &mut self,
        sound: Sound<'_>,
        target: f32,
        out: &mut Vec<f32>,
    ) -> Result<(), AudioError> {
        let gain = 10f64.powf((f64::from(target) - self.measure(sound)?) / 20.0) as f32;
        out.clear();
        match sound {
            Sound::I16(samples) => out.extend(samples.iter().map(|&s| f32::from(s) / 32768.0)),
            Sound::F32(samples) => out.extend_from_slice(samples),
        }
        let peak = out.iter().fold(0.0f32, |peak, sample| peak.max(sample.abs()));
        let gain = gain.min(CEILING / peak);
        out.iter_mut().for_each(|sample| *sample *= gain);
        Ok(())
    }
}

fn unmeasurable(source: impl fmt::Display) -> AudioError {
    AudioError::Loudness { message: source.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;
    use tandem_units::Samples;

    fn tone(rate: SampleRate, hertz: f64, peak: f64, seconds: f64) -> Vec<f32> {
        let Samples(length) = rate.samples(Seconds(seconds));
        let turn = TAU * hertz / f64::from(rate.0);
        (0..length).map(|i| (peak * (turn * i as f64).sin()) as f32).collect()
    }

    /// R128 by definition: a mono tone of 997 Hz at full scale has -3.01 LUFS.
    #[test]
    fn tones_have_the_loudness_of_the_standard() {
        for rate in [16_000, 22_050, 24_000, 44_100, 48_000] {
            let rate = SampleRate(rate);
            let mut meter = Loudness::new(rate).unwrap();
            for (decibels, lufs) in [(0.0, -3.01), (-20.0, -23.01), (-37.0, -40.01)] {
                let samples = tone(rate, 997.0, 10f64.powf(decibels / 20.0), 3.0);
                let found = meter.measure(Sound::F32(&samples)).unwrap();
                assert!((found - lufs).abs() < 0.1, "{rate:?} {decibels} dB: {found} LUFS");
            }
        }
    }

    #[test]
    fn silence_between_words_does_not_count() {
        let rate = SampleRate(22_050);
        let mut samples = tone(rate, 997.0, 0.1, 2.0);
        samples.extend(vec![0.0; 22_050 * 4]);
        let found = Loudness::new(rate).unwrap().measure(Sound::F32(&samples)).unwrap();
        assert!((found + 23.01).abs() < 0.6, "{found}");
    }

    #[test]
    fn a_recording_gets_the_asked_loudness() {
        let rate = SampleRate(22_050);
        let mut meter = Loudness::new(rate).unwrap();
        let mut out = Vec::new();
        for peak in [0.01, 0.1, 0.9] {
            for target in [-30.0, -23.0, -16.0] {
                let samples = tone(rate, 440.0, peak, 1.5);
                meter.level(Sound::F32(&samples), target, &mut out).unwrap();
                let found = meter.measure(Sound::F32(&out)).unwrap();
                assert!((found - f64::from(target)).abs() < 0.1, "{peak} to {target}: {found}");
                let shorts: Vec<i16> = samples.iter().map(|s| (s * 32767.0) as i16).collect();
                meter.level(Sound::I16(&shorts), target, &mut out).unwrap();
                let found = meter.measure(Sound::F32(&out)).unwrap();
                assert!((found - f64::from(target)).abs() < 0.1, "{peak} to {target}: {found}");
            }
        }
    }

    #[test]
    fn peaks_never_exceed_the_ceiling() {
        let rate = SampleRate(22_050);
        let mut samples = tone(rate, 440.0, 0.001, 1.0);
        samples[500] = 0.9;
        let mut out = Vec::new();
        Loudness::new(rate).unwrap().level(Sound::F32(&samples), -16.0, &mut out).unwrap();
        let peak = out.iter().fold(0.0f32, |peak, sample| peak.max(sample.abs()));
        assert!((peak - CEILING).abs() < 1e-4, "{peak}");
    }

    #[test]
    fn a_recording_without_a_loudness_is_refused() {
        let rate = SampleRate(22_050);
        let mut meter = Loudness::new(rate).unwrap();
        let short = tone(rate, 440.0, 0.5, 0.3);
        let error = meter.measure(Sound::F32(&short)).unwrap_err();
        assert!(matches!(error, AudioError::TooShortForLoudness { .. }), "{error}");
        let quiet = tone(rate, 440.0, 1e-5, 1.0);
        let error = meter.measure(Sound::F32(&quiet)).unwrap_err();
        assert!(matches!(error, AudioError::TooQuietForLoudness), "{error}");
    }
}
