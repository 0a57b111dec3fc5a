//! Fundamental frequency with YIN (de Cheveigne and Kawahara 2002).
//!
//! In: samples. Out: the pitch of every voiced frame. For each lag, YIN computes the difference of the
//! signal and its shifted copy. The first lag with a small difference is the period; without one, the
//! frame is unvoiced. The default limits cover speakers of all ages.

use super::MetricError;
use tandem_units::{Hop, SampleRate};

/// Settings of the pitch detection.
#[derive(Clone, Debug, PartialEq)]
pub struct PitchConfig {
    pub rate: SampleRate,
    pub hop: Hop,
    /// In Hz.
    pub lowest: f32,
    /// In Hz.
    pub highest: f32,
    /// The largest normalised difference of a voiced frame.
    pub threshold: f32,
    /// Frames this many dB below the loudest are silence.
    pub quiet: f32,
}

impl PitchConfig {
    /// For speech at the default sample rate.
    pub const SPEECH_22K: PitchConfig = PitchConfig {
        rate: SampleRate(22050),
        hop: Hop(256),
        lowest: 60.0,
        highest: 450.0,
        threshold: 0.15,
        quiet: 35.0,
    };

    /// The shortest and longest period in samples.
    fn periods(&self) -> Result<(usize, usize), MetricError> {
        let rate = self.rate.0 as f32;
        let longest = (rate / self.lowest).ceil();
        let shortest = (rate / self.highest).floor();
        if !(shortest >= 2.0 && longest > shortest && longest <= rate && self.hop.0 > 0) {
            let (what, value) = ("pitch limits", f64::from(self.lowest));
            let expected = "a low and a high pitch that the rate can tell apart";
            return Err(MetricError::Value { what, index: 0, value, expected });
        }
        Ok((shortest as usize, longest as usize))
    }
}

/// The pitch of each frame in Hz; `None` if it is unvoiced.
#[derive(Clone, Debug, PartialEq)]
pub struct PitchTrack {
    pub hertz: Vec<Option<f32>>,
}

impl PitchTrack {
    /// A signal shorter than two of the longest periods has no frame.
    pub fn of(samples: &[f32], config: &PitchConfig) -> Result<PitchTrack, MetricError> {
        let (shortest, longest) = config.periods()?;
        if let Some(index) = samples.iter().position(|sample| !sample.is_finite()) {
            let (what, value) = ("sound", f64::from(samples[index]));
            return Err(MetricError::Value { what, index, value, expected: "a finite number" });
        }
        let frames: Vec<&[f32]> = samples.windows(2 * longest).step_by(config.hop.0).collect();
        let loudness = |frame: &&[f32]| frame.iter().map(|s| s * s).sum::<f32>();
        let loudest = frames.iter().map(loudness).fold(0.0, f32::max);
        let gate = loudest * 10f32.powf(-config.quiet / 10.0);
        let mut differences = vec![0.0; longest + 1];
        let mut pitch = |frame: &&[f32]| {
            if loudness(frame) <= gate {
                return None;
            }
            normalised_differences(frame, &mut differences);
            let period = first_dip(&differences, shortest, config.threshold)?;
            Some(config.rate.0 as f32 / period)
        };
        Ok(PitchTrack { hertz: frames.iter().map(&mut pitch).collect() })
    }

    fn voiced(&self) -> impl Iterator<Item = f32> {
        self.hertz.iter().copied().flatten()
    }

    /// Fraction of voiced frames.
    pub fn voiced_share(&self) -> f64 {
        self.voiced().count() as f64 / self.hertz.len().max(1) as f64
    }

    /// Mean over voiced frames, in Hz.
    pub fn mean(&self) -> Option<f64> {
        let count = self.voiced().count();
        (count > 0).then(|| self.voiced().map(f64::from).sum::<f64>() / count as f64)
    }

    /// Median over voiced frames, in Hz: a few octave errors do not move it.
    pub fn median(&self) -> Option<f64> {
        tandem_units::median(&mut self.voiced().map(f64::from).collect::<Vec<_>>())
    }
}

/// The interval of two pitches in semitones; negative if the first is lower.
pub fn semitones(pitch: f64, above: f64) -> f64 {
    12.0 * (pitch / above).log2()
}

/// The cumulative mean normalised difference of each lag.
fn normalised_differences(frame: &[f32], out: &mut [f32]) {
    let length = frame.len() - (out.len() - 1);
    let fixed = &frame[..length];
    let mut sum = 0.0f32;
    out[0] = 1.0;
    for (shift, out) in out.iter_mut().enumerate().skip(1) {
        let shifted = &frame[shift..shift + length];
        let difference: f32 = fixed.iter().zip(shifted).map(|(a, b)| (a - b) * (a - b)).sum();
        sum += difference;
        *out = if sum > 0.0 { difference * shift as f32 / sum } else { 1.0 };
    }
}

/// The minimum of the first dip below the threshold, interpolated between samples.
fn first_dip(differences: &[f32], shortest: usize, threshold: f32) -> Option<f32> {
    let last = differences.len() - 1;
    let mut shift = (shortest..last).find(|&shift| differences[shift] < threshold)?;
    while shift + 1 < last && differences[shift + 1] < differences[shift] {
        shift += 1;
    }
    let [left, middle, right] = [shift - 1, shift, shift + 1].map(|place| differences[place]);
    let curve = left - 2.0 * middle + right;
    let offset = if curve > 0.0 { 0.5 * (left - right) / curve } else { 0.0 };
    Some(shift as f32 + offset.clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f32::consts::TAU;

    const SPEECH: PitchConfig = PitchConfig::SPEECH_22K;

    /// A harmonic tone.
    fn voice(hertz: f32, seconds: f32) -> Vec<f32> {
        let sample = |i: usize| {
            let turn = TAU * hertz * i as f32 / 22050.0;
            (1..12).map(|h| (turn * h as f32).sin() / h as f32).sum::<f32>() * 0.2
        };
        (0..(22050.0 * seconds) as usize).map(sample).collect()
    }

    #[test]
    fn the_pitch_of_a_harmonic_tone_is_found() {
        for hertz in [65.0, 88.0, 131.5, 197.0, 261.6, 400.0] {
            let track = PitchTrack::of(&voice(hertz, 0.3), &SPEECH).unwrap();
            assert_eq!(track.voiced_share(), 1.0, "{hertz}");
            for found in [track.median().unwrap(), track.mean().unwrap()] {
                assert!((found / f64::from(hertz) - 1.0).abs() < 0.003, "{hertz}: {found}");
            }
        }
    }

    #[test]
    fn silence_and_noise_have_no_pitch() {
        let silence = PitchTrack::of(&[0.0; 8000], &SPEECH).unwrap();
        assert_eq!((silence.voiced_share(), silence.median(), silence.mean()), (0.0, None, None));
        let mut state = 1u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        let noise: Vec<f32> = (0..22050).map(|_| noise()).collect();
        let track = PitchTrack::of(&noise, &SPEECH).unwrap();
        assert!(track.voiced_share() < 0.02, "{}", track.voiced_share());
        assert!(PitchTrack::of(&[0.1; 10], &SPEECH).unwrap().hertz.is_empty());
    }

    #[test]
    fn a_quiet_hum_next_to_a_voice_is_silence() {
        let mut sound = voice(150.0, 0.5);
        sound.extend(voice(100.0, 0.5).iter().map(|sample| sample * 0.003));
        let track = PitchTrack::of(&sound, &SPEECH).unwrap();
        assert!((0.4..0.6).contains(&track.voiced_share()), "{}", track.voiced_share());
        assert!((track.median().unwrap() - 150.0).abs() < 1.0);
    }

    #[test]
    fn the_median_of_an_even_count_is_the_mean_of_the_middle() {
        let track = PitchTrack { hertz: vec![Some(100.0), None, Some(200.0)] };
        assert_eq!((track.median(), track.mean()), (Some(150.0), Some(150.0)));
        assert_eq!(semitones(200.0, 100.0), 12.0);
    }

    #[test]
    fn invalid_limits_and_nan_samples_are_errors() {
        let upside_down = PitchConfig { lowest: 500.0, ..SPEECH };
        assert!(PitchTrack::of(&[0.0; 100], &upside_down).is_err());
        let zero = PitchConfig { lowest: 0.0, ..SPEECH };
        assert!(PitchTrack::of(&[0.0; 100], &zero).is_err());
        assert!(PitchTrack::of(&[f32::NAN; 2000], &SPEECH).is_err());
    }
}
