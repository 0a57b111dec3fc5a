//! Resamples to the corpus rate without a shift in time and with an exact length.
//!
//! In: mono samples at one rate. Out: `round(n * to / from)` samples at the other; sample `i`
//! of the output is the sound at time `i / to`, to a fraction of a sample.
//!
//! By FFT (rubato): flat up to 95 % of the lower of the two bandwidths, aliasing below -80 dB. One plan
//! per rate is cached, because a corpus has few rates.

use super::AudioError;
use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Fft, FixedSync, Resampler as _, WindowFunction};
use tandem_units::SampleRate;

/// The minimum length of the shorter side of a block; it determines the steepness of the filter.
const BLOCK: usize = 1024;
/// The most cached plans. A corpus with more rates works, but slower.
const PLANS: usize = 4;

/// Owns one plan per source rate; one resampler per worker.
pub struct Resampler {
    to: SampleRate,
    /// The most recently used plan is first.
    plans: Vec<(SampleRate, Fft<f32>)>,
}

impl std::fmt::Debug for Resampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rates: Vec<_> = self.plans.iter().map(|(rate, _)| rate).collect();
        f.debug_struct("Resampler").field("to", &self.to).field("from", &rates).finish()
    }
}

impl Resampler {
    /// A resampler to this rate. A plan is created when a source rate first occurs.
    pub fn new(to: SampleRate) -> Self {
        Self { to, plans: Vec::new() }
    }

    /// Resamples `input` from the rate `from` and replaces the contents of `output`.
    pub fn convert(
        &mut self,
        input: &[f32],
        from: SampleRate,
        output: &mut Vec<f32>,
    ) -> Result<(), AudioError> {
        let length = resampled_length(input.len(), from, self.to);
        let plan = self.plan(from)?;
        plan.reset();
        let space = plan.process_all_needed_output_len(input.len());
        output.resize(space, 0.0);
        let source = SequentialSlice::new(input, 1, input.len()).map_err(broken)?;
        let mut target = SequentialSlice::new_mut(output, 1, space).map_err(broken)?;
        plan.process_all_into_buffer(&source, &mut target, input.len(), None).map_err(broken)?;
        output.truncate(length);
        Ok(())
    }

    fn plan(&mut self, from: SampleRate) -> Result<&mut Fft<f32>, AudioError> {
        match self.plans.iter().position(|(rate, _)| *rate == from) {
            Some(at) => self.plans[..=at].rotate_right(1),
            None => {
                self.plans.truncate(PLANS - 1);
                self.plans.insert(0, (from, make_plan(from, self.to)?));
            }
        }
        Ok(&mut self.plans[0].1)
    }
}

/// The nearest whole number of samples.
pub fn resampled_length(frames: usize, from: SampleRate, to: SampleRate) -> usize {
    let (frames, from, to) = (frames as u128, u128::from(from.0), u128::from(to.0));
    ((frames * to * 2 + from) / (from * 2)) as usize
}

fn make_plan(from: SampleRate, to: SampleRate) -> Result<Fft<f32>, AudioError> {
    let (from, to) = (from.0 as usize, to.0 as usize);
    let shared = greatest_common_divisor(from, to);
    let shorter = from.min(to) / shared;
    // An even number of units: the delay of the filter is half a block and must be a whole number of
    // samples at both rates. Otherwise the output would be half a sample late.
    let units = BLOCK.div_ceil(shorter).next_multiple_of(2);
    let chunk = units * from / shared;
    Fft::new_custom(from, to, chunk, 1, 1, WindowFunction::BlackmanHarris2, FixedSync::Both)
        .map_err(broken)
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn broken(error: impl std::error::Error) -> AudioError {
    AudioError::Panicked { message: format!("resampler: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    const RATES: [u32; 9] = [8_000, 11_025, 16_000, 24_000, 32_000, 44_100, 48_000, 96_000, 44_099];

    fn convert(input: &[f32], from: u32, to: u32) -> Vec<f32> {
        let mut output = vec![9.0; 3];
        Resampler::new(SampleRate(to)).convert(input, SampleRate(from), &mut output).unwrap();
        output
    }

    fn tone(hertz: f64, rate: u32, length: usize) -> Vec<f32> {
        let step = TAU * hertz / f64::from(rate);
        (0..length).map(|i| (0.5 * (step * i as f64 + 0.3).sin()) as f32).collect()
    }

    /// Signal-to-error ratio in dB of the middle parts: the filter rings at both ends.
    fn agreement(found: &[f32], expected: &[f32]) -> f64 {
        let middle = found.len() / 4..found.len() * 3 / 4;
        let (mut signal, mut error) = (0.0, 0.0);
        for (&f, &e) in found[middle.clone()].iter().zip(&expected[middle]) {
            signal += f64::from(e).powi(2);
            error += f64::from(f - e).powi(2);
        }
        10.0 * (signal / error.max(1e-30)).log10()
    }

    #[test]
    fn a_tone_keeps_its_phase_from_every_rate_up_to_95_percent_of_the_band() {
        for from in RATES {
            let band = f64::from(from.min(22_050)) / 2.0;
            for share in [0.05, 0.3, 0.6, 0.9, 0.95] {
                let seconds = 1;
                let input = tone(share * band, from, from as usize * seconds);
                let output = convert(&input, from, 22_050);
                let reference = tone(share * band, 22_050, 22_050 * seconds);
                let decibels = agreement(&output, &reference);
                assert!(decibels > 80.0, "{from} Hz, {share} of the band: {decibels:.1} dB");
            }
        }
    }

    #[test]
    fn aliasing_is_removed() {
        for from in [44_100, 48_000, 96_000] {
            for hertz in [11_700.0, 14_000.0, 21_000.0] {
                let output = convert(&tone(hertz, from, from as usize), from, 22_050);
                let left = output[4_000..18_000].iter().fold(0f32, |top, s| top.max(s.abs()));
                let decibels = 20.0 * (left / 0.5).log10();
                assert!(decibels < -80.0, "{hertz} Hz at {from} Hz: {decibels:.1} dB left");
            }
        }
    }

    #[test]
    fn a_click_keeps_its_position() {
        for from in RATES {
            for second in [0.1, 0.5, 0.9] {
                let mut input = vec![0.0; from as usize];
                let at = (second * f64::from(from)).round() as usize;
                input[at] = 1.0;
                let output = convert(&input, from, 22_050);
                let peak = (0..output.len()).max_by(|&a, &b| output[a].total_cmp(&output[b]));
                let expected = at as f64 * 22_050.0 / f64::from(from);
                let off = peak.unwrap() as f64 - expected;
                assert!(off.abs() <= 0.5 + 1e-9, "{from} Hz: {off} samples off");
            }
        }
    }

    #[test]
    fn lengths_are_exact_even_for_a_handful_of_samples() {
        for from in RATES {
            for frames in [1, 2, 3, 100, 1023, 4_097] {
                let exact = frames as f64 * 22_050.0 / f64::from(from);
                let output = convert(&vec![0.1; frames], from, 22_050);
                assert!((output.len() as f64 - exact).abs() <= 0.5, "{frames} at {from} Hz");
            }
        }
        assert_eq!(resampled_length(441, SampleRate(44_100), SampleRate(22_050)), 221);
    }

    #[test]
    fn a_recording_does_not_affect_the_next() {
        let mut resampler = Resampler::new(SampleRate(22_050));
        let mut output = Vec::new();
        let clip = tone(440.0, 48_000, 30_000);
        resampler.convert(&clip, SampleRate(48_000), &mut output).unwrap();
        let first = output.clone();
        for rate in RATES {
            resampler.convert(&[1.0; 5_000], SampleRate(rate), &mut output).unwrap();
        }
        resampler.convert(&clip, SampleRate(48_000), &mut output).unwrap();
        assert_eq!(output, first);
    }
}
