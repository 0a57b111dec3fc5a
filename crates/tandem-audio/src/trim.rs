//! Finds the silence at both ends of a recording.
//!
//! In: mono samples. Out: the range to keep. It always contains the loudest part, so it is never
//! empty. Changes no sample. Next on the path: [`super::loudness`].

use std::ops::Range;
use tandem_units::{SampleRate, Seconds};

/// Levels are measured over this length: long enough that a click is not speech, short enough for a
/// plosive.
const WINDOW: Seconds = Seconds(0.02);
/// Windows overlap by half.
const STEPS_PER_WINDOW: usize = 2;

/// What counts as silence, and how much of it stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trim {
    /// In dB relative to the loudest 20 ms of the recording; negative.
    pub level: f32,
    /// Stays at each end.
    pub margin: Seconds,
}

impl Trim {
    /// The samples from the first to the last window above the level, and the margin on both sides.
    pub fn range<T: Copy + Into<f64>>(&self, samples: &[T], rate: SampleRate) -> Range<usize> {
        let step = (rate.samples(WINDOW).0 / STEPS_PER_WINDOW).max(1);
        let window = step * STEPS_PER_WINDOW;
        let steps: Vec<f64> = samples.chunks(step).map(energy).collect();
        let levels: Vec<f64> =
            steps.windows(STEPS_PER_WINDOW).map(|parts| parts.iter().sum()).collect();
        let loudest = levels.iter().copied().fold(0.0, f64::max);
        let threshold = loudest * 10f64.powf(f64::from(self.level) / 10.0);
        let is_loud = |level: &f64| *level >= threshold;
        let (Some(first), Some(last)) =
            (levels.iter().position(is_loud), levels.iter().rposition(is_loud))
        else {
            return 0..samples.len();
        };
        let margin = rate.samples(self.margin).0;
        let start = (first * step).saturating_sub(margin);
        start..(last * step + window + margin).min(samples.len())
    }
}

fn energy<T: Copy + Into<f64>>(samples: &[T]) -> f64 {
    samples.iter().map(|&sample| sample.into().powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RATE: SampleRate = SampleRate(1000);
    const STEP: usize = 10;

    fn trim(level: f32, margin: f64) -> Trim {
        Trim { level, margin: Seconds(margin) }
    }

    /// Noise of a small level, with `loud` at full level.
    fn clip(length: usize, loud: Range<usize>, quiet: f32) -> Vec<f32> {
        let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        (0..length).map(|i| sign(i) * if loud.contains(&i) { 1.0 } else { quiet }).collect()
    }

    #[test]
    fn silence_goes_and_the_margin_stays() {
        let samples = clip(1000, 300..600, 0.001);
        assert_eq!(trim(-40.0, 0.0).range(&samples, RATE), 290..610);
        assert_eq!(trim(-40.0, 0.05).range(&samples, RATE), 240..660);
        assert_eq!(trim(-40.0, 2.0).range(&samples, RATE), 0..1000);
    }

    #[test]
    fn a_level_below_the_noise_keeps_everything() {
        let samples = clip(1000, 300..600, 0.001);
        assert_eq!(trim(-70.0, 0.0).range(&samples, RATE), 0..1000);
    }

    #[test]
    fn a_pause_inside_stays() {
        let mut samples = clip(1000, 200..800, 0.0);
        samples[400..600].fill(0.0);
        assert_eq!(trim(-40.0, 0.0).range(&samples, RATE), 190..810);
    }

    #[test]
    fn integers_and_floats_give_the_same_range() {
        let floats = clip(1000, 300..600, 0.01);
        let shorts: Vec<i16> = floats.iter().map(|s| (s * 30_000.0) as i16).collect();
        let trim = trim(-30.0, 0.03);
        assert_eq!(trim.range(&floats, RATE), trim.range(&shorts, RATE));
    }

    #[test]
    fn a_recording_shorter_than_a_window_is_kept() {
        for length in 0..2 * STEP {
            assert_eq!(trim(-40.0, 0.0).range(&clip(length, 0..1, 0.0), RATE), 0..length);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn the_loudest_sample_stays_and_a_wider_setting_keeps_more(
            samples in proptest::collection::vec(-1.0f32..1.0, 1..400),
            peak in any::<proptest::sample::Index>(),
            level in -60.0f32..-6.0,
            margin in 0.0f64..0.2,
        ) {
            let mut samples = samples;
            let peak = peak.index(samples.len());
            samples.iter_mut().for_each(|sample| *sample *= 0.1);
            samples[peak] = 1.0;
            let range = trim(level, margin).range(&samples, RATE);
            prop_assert!(range.contains(&peak) && range.end <= samples.len());
            for wider in [trim(level - 6.0, margin), trim(level, margin + 0.05)] {
                let more = wider.range(&samples, RATE);
                prop_assert!(more.start <= range.start && more.end >= range.end);
            }
        }
    }
}
