//! Initial phases from the magnitudes alone.
//!
//! In: magnitudes, frame after frame. Out: spectra. The slope of the log magnitudes over the bins tells how far the
//! frequency of a sinusoid lies from a bin, and so the phase advance until the next frame (Prusa, Balazs and
//! Soendergaard 2017, "A noniterative method for reconstruction of phase from STFT magnitude"). Each bin then takes the
//! weighted mean of itself and its neighbours, whose phases alternate by pi, as for any window centred in its block.
//!
//! Every step is continuous, and each frame forgets a part of the previous one for fixed pseudo-random phases. So an
//! exported voice, which rounds differently, has the same phases: noise of 1e-5 on mel frames changes the samples of six
//! clips of the demo corpus by at most 7e-4. Phases that follow the peaks of a frame (Beauregard, Harish and Wyse 2015)
//! change by up to 0.04, at the same quality.

use super::size;
use realfft::num_complex::Complex;
use std::f64::consts::TAU;
use tandem_audio::mel::MelConfig;

/// Added to magnitudes: fainter bins have neither a slope nor a weight of their own.
pub const FAINT_MAGNITUDE: f32 = 1e-2;
/// Weights of the neighbours of a bin, in the order of their distance: a Gaussian with a deviation of 2.5 bins. The
/// neighbours at odd distances have the opposite phase.
pub const NEIGHBOURS: [f32; 5] = [1.0, -0.923_116_3, 0.726_149, -0.486_752_26, 0.278_037_3];
/// How much the pseudo-random phases weigh beside those of the neighbours.
pub const FORGOTTEN: f32 = 0.4;
/// Number of pseudo-random phases, and how many of them a frame is apart from the next.
pub const RANDOM_PHASES: usize = 8191;
pub const RANDOM_STEP: usize = 521;
/// A Hann window is close to a Gaussian of this width, as a part of its squared length (Prusa et al., table I).
const HANN_WIDTH: f64 = 0.25645;

/// Phase advance per frame: `(for each bin of frequency, for each unit of the slope)`.
pub fn advance(mel: &MelConfig) -> (f32, f32) {
    let (hop, n_fft, window) = (mel.hop.0 as f64, mel.n_fft as f64, mel.window as f64);
    ((TAU * hop / n_fft) as f32, (hop * n_fft / (HANN_WIDTH * window * window)) as f32)
}

/// The pseudo-random phases, from 0 to 2 pi: the top bits of SplitMix64 (Steele, Lea and Flood 2014).
pub fn random_phases() -> Vec<f32> {
    let phase = |number: u64| {
        let mut bits = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((bits ^ (bits >> 31)) >> 40) as f64 / (1u64 << 24) as f64 * TAU) as f32
    };
    (0..RANDOM_PHASES as u64).map(phase).collect()
}

/// The phases of the previous frame.
pub struct Phases {
    advance: (f32, f32),
    random: Vec<Complex<f32>>,
    frame: usize,
    /// Phase of each bin in the previous frame, as a number of size one.
    phase: Vec<Complex<f32>>,
    weight: Vec<f32>,
    log: Vec<f32>,
    weighted: Vec<Complex<f32>>,
}

impl Phases {
    /// The phases before the first frame are those of an impulse in its middle.
    pub fn new(mel: &MelConfig) -> Phases {
        let bins = mel.n_fft / 2 + 1;
        let impulse = |bin: usize| Complex::from(if bin.is_multiple_of(2) { 1.0 } else { -1.0 });
        Phases {
            advance: advance(mel),
            random: random_phases().into_iter().map(Complex::cis).collect(),
            frame: 0,
            phase: (0..bins).map(impulse).collect(),
            weight: vec![0.0; bins],
            log: vec![0.0; bins],
            weighted: vec![Complex::default(); bins],
        }
    }

    /// Writes the spectrum of the next frame.
    pub fn write(&mut self, magnitudes: &[f32], spectrum: &mut [Complex<f32>]) {
        self.advance(magnitudes);
        for ((value, phase), size) in spectrum.iter_mut().zip(&self.phase).zip(magnitudes) {
            *value = phase * size;
        }
    }

    fn advance(&mut self, magnitudes: &[f32]) {
        let bins = magnitudes.len();
        for ((weight, log), magnitude) in self.weight.iter_mut().zip(&mut self.log).zip(magnitudes)
        {
            *weight = magnitude + FAINT_MAGNITUDE;
            *log = weight.ln();
        }
        for bin in 0..bins {
            let inside = bin > 0 && bin + 1 < bins;
            let slope = if inside { 0.5 * (self.log[bin + 1] - self.log[bin - 1]) } else { 0.0 };
            let angle = self.advance.0 * bin as f32 + self.advance.1 * slope;
            self.weighted[bin] = self.phase[bin] * Complex::cis(angle) * self.weight[bin];
        }
        for bin in 0..bins {
            let (mut mean, mut total) = (Complex::<f32>::default(), 0.0);
            for (distance, share) in NEIGHBOURS.iter().enumerate() {
                let below = bin.checked_sub(distance).filter(|_| distance > 0);
                let above = Some(bin + distance).filter(|place| *place < bins);
                for place in below.into_iter().chain(above) {
                    mean += self.weighted[place] * share;
                    total += self.weight[place] * share.abs();
                }
            }
            let random = self.random[(bin + RANDOM_STEP * self.frame) % RANDOM_PHASES];
            let next = mean + random * (FORGOTTEN * total);
            self.phase[bin] = next / size(next).max(f32::MIN_POSITIVE);
        }
        self.frame += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEECH: MelConfig = MelConfig::SPEECH_22K;

    #[test]
    fn a_sinusoid_between_two_bins_advances_by_its_frequency() {
        // The main lobe of a Hann window around bin 10.25.
        let lobe = |bin: usize| {
            let away = bin as f32 - 10.25;
            let sinc = |x: f32| {
                let x = std::f32::consts::PI * x;
                if x == 0.0 { 1.0 } else { x.sin() / x }
            };
            256.0 * (sinc(away) + 0.5 * (sinc(away - 1.0) + sinc(away + 1.0))).abs()
        };
        let magnitudes: Vec<f32> = (0..513).map(lobe).collect();
        let mut phases = Phases::new(&SPEECH);
        let mut spectrum = vec![Complex::default(); 513];
        phases.write(&magnitudes, &mut spectrum);
        let turn = Complex::cis((TAU * 256.0 * 10.25 / 1024.0) as f32);
        let (mut advance, mut neighbour) = (Complex::<f32>::default(), Complex::<f32>::default());
        for _ in 0..100 {
            let before = spectrum[10];
            phases.write(&magnitudes, &mut spectrum);
            advance += spectrum[10] * before.conj() / (size(before) * size(spectrum[10]));
            neighbour +=
                spectrum[11] * spectrum[10].conj() / (size(spectrum[10]) * size(spectrum[11]));
        }
        // The pseudo-random phases turn single frames by up to 0.4.
        let off = (advance * turn.conj()).arg();
        assert!(off.abs() < 0.1 && size(advance) > 85.0, "{off} {}", size(advance));
        let off = (-neighbour).arg();
        assert!(off.abs() < 0.1 && size(neighbour) > 85.0, "{off} {}", size(neighbour));
    }

    #[test]
    fn silence_stays_silent_and_a_flat_frame_keeps_its_magnitudes() {
        let mut phases = Phases::new(&SPEECH);
        let mut spectrum = vec![Complex::default(); 513];
        for level in [0.0f32, 1.0, 1e9] {
            phases.write(&[level; 513], &mut spectrum);
            let off = |value: &Complex<f32>| (value.norm() - level).abs() > 1e-5 * level;
            assert!(!spectrum.iter().any(off), "{level}");
        }
    }
}
