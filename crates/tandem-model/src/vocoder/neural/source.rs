//! The excitation that the network filters: pulses at the pitch, and noise.
//!
//! In: the pitch of each frame. Out: a pulse train and white noise, and their spectra with a mean power of one. A network
//! over mel frames cannot count periods: it sees neither time nor phase. The pulses carry both, so that the network only
//! predicts magnitudes and phases relative to them. The same pitch and seed give the same excitation.

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use std::f64::consts::PI;
use std::ops::Range;
use std::sync::Arc;
use tandem_data::audio::mel::{MelConfig, hann_window};
use tandem_units::Seed;

/// Samples of a band-limited pulse.
pub const TAPS: usize = 32;
/// Positions between two samples for which a pulse is tabulated.
pub const FRACTIONS: usize = 128;

/// Computes excitations. Owns its tables and scratch memory: one per thread.
pub struct Source {
    rate: f32,
    hop: usize,
    n_fft: usize,
    window: Vec<f32>,
    /// `[FRACTIONS + 1, TAPS]`.
    pulses: Vec<f32>,
    forward: Arc<dyn RealToComplex<f32>>,
    block: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

/// An excitation as samples. Sample `n_fft / 2` is the centre of the first frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Excitation {
    pub pulses: Vec<f32>,
    pub noise: Vec<f32>,
}

/// Real and imaginary parts of frames: `[frames, bins]` each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spectra {
    pub re: Vec<f32>,
    pub im: Vec<f32>,
}

impl Source {
    pub fn new(mel: &MelConfig) -> Source {
        let forward = RealFftPlanner::new().plan_fft_forward(mel.n_fft);
        let window = hann_window(mel);
        // Noise with a power of one per sample gets a power of one per bin.
        let share = window.iter().map(|value| value * value).sum::<f64>().sqrt().recip();
        Source {
            rate: mel.rate.0 as f32,
            hop: mel.hop.0,
            n_fft: mel.n_fft,
            window: window.into_iter().map(|value| (value * share) as f32).collect(),
            pulses: pulse_table(),
            block: forward.make_input_vec(),
            spectrum: forward.make_output_vec(),
            scratch: forward.make_scratch_vec(),
            forward,
        }
    }

    /// The excitation of frames with this pitch in Hz; none: unvoiced. `phase` is the share of a period at the first sample.
    pub fn excitation(&self, pitch: &[Option<f32>], phase: f32, seed: Seed) -> Excitation {
        let noise = white_noise(pitch.len() * self.hop + self.n_fft, seed);
        Excitation { pulses: self.pulse_train(pitch, phase), noise }
    }

    /// Pulses whose power is one. Sample `n_fft / 2` is the centre of the first frame.
    fn pulse_train(&self, pitch: &[Option<f32>], phase: f32) -> Vec<f32> {
        // In double precision: in single, rounding adds up to a fraction of a sample within a few seconds.
        let mut phase = f64::from(phase);
        let margin = self.n_fft / 2;
        let mut train = vec![0.0; pitch.len() * self.hop + self.n_fft + TAPS];
        for index in 0..pitch.len() * self.hop + self.n_fft {
            // Before the first and after the last frame the pitch is theirs.
            let at = (index as f32 - margin as f32) / self.hop as f32;
            let Some(hertz) = pitch_at(pitch, at) else { continue };
            let step = hertz / self.rate;
            phase += f64::from(step);
            if phase >= 1.0 {
                phase -= 1.0;
                // The pulse lies this share of a sample before this one.
                let before = (phase as f32 / step).clamp(0.0, 1.0);
                let place = (1.0 - before) * FRACTIONS as f32;
                let row = (place as usize).min(FRACTIONS - 1);
                let share = place - row as f32;
                let height = step.recip().sqrt();
                // Between two rows: a pulse that moves a little changes a little.
                let (low, high) = self.pulses[row * TAPS..][..2 * TAPS].split_at(TAPS);
                let taps = low.iter().zip(high).map(|(low, high)| low + (high - low) * share);
                let target = &mut train[index..][..TAPS];
                target.iter_mut().zip(taps).for_each(|(out, tap)| *out += tap * height);
            }
        }
        // The middle of a pulse is half a table after its place.
        train.drain(..TAPS / 2);
        train
    }

    /// The spectra of some frames of an excitation.
    pub fn transform(&mut self, signal: &[f32], frames: Range<usize>) -> Spectra {
        let values = frames.len() * (self.n_fft / 2 + 1);
        let (re, im) = (Vec::with_capacity(values), Vec::with_capacity(values));
        let mut spectra = Spectra { re, im };
        for frame in frames {
            let samples = &signal[frame * self.hop..][..self.n_fft];
            let inputs = samples.iter().zip(&self.window);
            self.block.iter_mut().zip(inputs).for_each(|(out, (x, w))| *out = x * w);
            let Source { forward, block, spectrum, scratch, .. } = self;
            // The lengths are those of the plan, which is all that can be wrong.
            let _ = forward.process_with_scratch(block, spectrum, scratch);
            spectra.re.extend(spectrum.iter().map(|value| value.re));
            spectra.im.extend(spectrum.iter().map(|value| value.im));
        }
        spectra
    }
}

/// The pitch between two frames, on a logarithmic scale; that of the nearer one if the other is unvoiced.
fn pitch_at(pitch: &[Option<f32>], at: f32) -> Option<f32> {
    let last = pitch.len().checked_sub(1)?;
    let at = at.clamp(0.0, last as f32);
    let (before, share) = (at.floor() as usize, at.fract());
    let after = (before + 1).min(last);
    match (pitch[before], pitch[after]) {
        (Some(a), Some(b)) => Some(a * (b / a).powf(share)),
        (a, b) => {
            if share < 0.5 {
                a
            } else {
                b
            }
        }
    }
}

/// A sinc under a Hann window, for every fraction of a sample. Row 0 has its middle at `TAPS / 2 - 1`, the last row one
/// sample later.
pub fn pulse_table() -> Vec<f32> {
    let tap = |index: usize| {
        let (row, tap) = (index / TAPS, index % TAPS);
        let middle = (TAPS / 2 - 1) as f64 + row as f64 / FRACTIONS as f64;
        let x = tap as f64 - middle;
        let sinc = if x.abs() < 1e-9 { 1.0 } else { (PI * x).sin() / (PI * x) };
        let width = TAPS as f64 / 2.0;
        let window = if x.abs() < width { 0.5 + 0.5 * (PI * x / width).cos() } else { 0.0 };
        (sinc * window) as f32
    };
    (0..(FRACTIONS + 1) * TAPS).map(tap).collect()
}

/// Uniform noise with a power of one.
pub fn white_noise(length: usize, seed: Seed) -> Vec<f32> {
    let mut state = seed.derive(0x0153).0 | 1;
    let mut next = || {
        // xorshift64*: fast, and the same everywhere.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let high = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f32;
        (high / (1u64 << 23) as f32 - 1.0) * 3f32.sqrt()
    };
    (0..length).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEL: MelConfig = MelConfig::SPEECH_22K;

    fn power(spectra: &Spectra, frames: std::ops::Range<usize>) -> f32 {
        let bins = MEL.n_fft / 2 + 1;
        let range = frames.start * bins..frames.end * bins;
        let parts = spectra.re[range.clone()].iter().zip(&spectra.im[range.clone()]);
        parts.map(|(re, im)| re * re + im * im).sum::<f32>() / range.len() as f32
    }

    /// Spectra of pulses and noise.
    fn spectra(pitch: &[Option<f32>], phase: f32, seed: Seed) -> [Spectra; 2] {
        let mut source = Source::new(&MEL);
        let Excitation { pulses, noise } = source.excitation(pitch, phase, seed);
        [pulses, noise].map(|signal| source.transform(&signal, 0..pitch.len()))
    }

    #[test]
    fn pulses_and_noise_have_a_power_of_one() {
        for hertz in [80.0, 133.3, 301.0] {
            let [pulses, noise] =
                spectra(&[Some(hertz); 40], 0.3, Seed(1)).map(|s| power(&s, 5..35));
            assert!((pulses - 1.0).abs() < 0.1, "{hertz}: {pulses}");
            assert!((noise - 1.0).abs() < 0.1, "{noise}");
        }
    }

    #[test]
    fn harmonics_are_at_multiples_of_the_pitch() {
        // A pitch of ten bins.
        let hertz = 10.0 * 22050.0 / 1024.0;
        let [pulses, _] = spectra(&[Some(hertz); 20], 0.0, Seed(1));
        let size = |bin: usize| {
            let at = 10 * 513 + bin;
            (pulses.re[at].powi(2) + pulses.im[at].powi(2)).sqrt()
        };
        for harmonic in 1..40 {
            let (on, between) = (size(10 * harmonic), size(10 * harmonic + 5));
            assert!(on > 10.0 * between, "{harmonic}: {on} {between}");
        }
    }

    #[test]
    fn unvoiced_frames_have_no_pulse_and_the_same_seed_gives_the_same() {
        let [pulses, noise] = spectra(&[None; 12], 0.0, Seed(1));
        assert_eq!(power(&pulses, 0..12), 0.0);
        assert_eq!(noise, spectra(&[None; 12], 0.0, Seed(1))[1]);
        assert_ne!(noise, spectra(&[None; 12], 0.0, Seed(2))[1]);
    }

    #[test]
    fn a_pulse_that_moves_a_little_changes_a_little() {
        let source = Source::new(&MEL);
        let train = |phase: f32| source.excitation(&[Some(150.0); 200], phase, Seed(1)).pulses;
        // A millionth of a period: less than a thousandth of a sample.
        let (one, other) = (train(0.3), train(0.300001));
        let peak = one.iter().fold(0.0f32, |peak, x| peak.max(x.abs()));
        let most = one.iter().zip(&other).fold(0.0f32, |most, (a, b)| most.max((a - b).abs()));
        // Rounded to a row of the table, a pulse would jump by half a percent of its height.
        assert!(most < 1e-3 * peak, "{most} of {peak}");
    }

    #[test]
    fn the_pitch_between_frames_is_interpolated() {
        let pitch = [Some(100.0), Some(200.0), None];
        assert_eq!(pitch_at(&pitch, -3.0), Some(100.0));
        assert!((pitch_at(&pitch, 0.5).unwrap() - 141.42).abs() < 0.01);
        assert_eq!(pitch_at(&pitch, 1.4), Some(200.0));
        assert_eq!(pitch_at(&pitch, 1.6), None);
        assert_eq!(pitch_at(&[], 0.0), None);
    }
}
