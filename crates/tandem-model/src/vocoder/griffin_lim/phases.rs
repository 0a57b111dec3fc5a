//! Initial phases from the magnitudes alone.
//!
//! In: magnitudes, frame after frame. Out: spectra. Each peak of a frame is treated as a sinusoid: its
//! position between two bins gives the phase advance until the next frame. The bins around a peak get
//! its phase, alternating by pi, as for any window centred in its block. Deterministic.

use realfft::num_complex::Complex;
use std::f32::consts::{PI, TAU};
use tandem_data::audio::mel::MelConfig;

/// The phases of the previous frame.
pub struct Phases {
    /// Phase advance between two frames, per bin of frequency.
    turn: f32,
    /// Phase of each bin in the previous frame, from 0 to 2 pi.
    angle: Vec<f32>,
    next: Vec<f32>,
}

impl Phases {
    /// All phases are zero before the first frame.
    pub fn new(mel: &MelConfig) -> Phases {
        let bins = mel.n_fft / 2 + 1;
        let turn = TAU * mel.hop.0 as f32 / mel.n_fft as f32;
        Phases { turn, angle: vec![0.0; bins], next: vec![0.0; bins] }
    }

    /// Writes the spectrum of the next frame.
    pub fn write(&mut self, magnitudes: &[f32], spectrum: &mut [Complex<f32>]) {
        self.advance(magnitudes);
        for ((value, angle), size) in spectrum.iter_mut().zip(&self.angle).zip(magnitudes) {
            let (sin, cos) = angle.sin_cos();
            *value = Complex::new(cos * size, sin * size);
        }
    }

    /// Updates the phases; they do not change without a peak.
    fn advance(&mut self, magnitudes: &[f32]) {
        self.next.copy_from_slice(&self.angle);
        let mut from = 0;
        let mut peak = next_peak(magnitudes, 1);
        while let Some(place) = peak {
            peak = next_peak(magnitudes, place + 1);
            let until = peak.map_or(magnitudes.len(), |next| valley(magnitudes, place, next));
            let tone = place as f32 + offset(&magnitudes[place - 1..=place + 1]);
            let angle = self.angle[place] + self.turn * tone;
            for (bin, value) in self.next[from..until].iter_mut().enumerate() {
                let away = (from + bin).abs_diff(place) as f32;
                *value = (angle + PI * away).rem_euclid(TAU);
            }
            from = until;
        }
        std::mem::swap(&mut self.angle, &mut self.next);
    }
}

/// The first bin from `from` that is higher than the previous one and not lower than the next.
fn next_peak(magnitudes: &[f32], from: usize) -> Option<usize> {
    (from..magnitudes.len() - 1).find(|&bin| {
        magnitudes[bin] > magnitudes[bin - 1] && magnitudes[bin] >= magnitudes[bin + 1]
    })
}

/// The lowest bin between two peaks; the first of equals.
fn valley(magnitudes: &[f32], left: usize, right: usize) -> usize {
    (left..=right).fold(left, |low, bin| if magnitudes[bin] < magnitudes[low] { bin } else { low })
}

/// The offset of the maximum of a parabola through three bins from the middle one.
fn offset(around: &[f32]) -> f32 {
    let &[left, middle, right] = around else { return 0.0 };
    // The left side of a peak is strictly lower, so the curvature is negative.
    0.5 * (left - right) / (left - 2.0 * middle + right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sinusoid_between_two_bins_advances_by_its_frequency() {
        // A parabola with its top at bin 10.25.
        let mut magnitudes = vec![0.0; 513];
        for (bin, value) in magnitudes[8..13].iter_mut().enumerate() {
            *value = 10.0 - (bin as f32 + 8.0 - 10.25).powi(2);
        }
        let mut phases = Phases::new(&MelConfig::SPEECH_22K);
        let mut spectrum = vec![Complex::default(); 513];
        phases.write(&magnitudes, &mut spectrum);
        let first = spectrum[10].arg();
        phases.write(&magnitudes, &mut spectrum);
        let turned = (spectrum[10].arg() - first).rem_euclid(TAU);
        let expected = (TAU * 256.0 * 10.25 / 1024.0).rem_euclid(TAU);
        assert!((turned - expected).abs() < 1e-3, "{turned} for {expected}");
        let neighbour = (spectrum[11].arg() - spectrum[10].arg()).rem_euclid(TAU);
        assert!((neighbour - PI).abs() < 1e-3, "{neighbour}");
        assert!((spectrum[10].norm() - magnitudes[10]).abs() < 1e-4);
    }

    #[test]
    fn silence_and_a_flat_frame_have_no_peak() {
        let mut phases = Phases::new(&MelConfig::SPEECH_22K);
        let mut spectrum = vec![Complex::default(); 513];
        for level in [0.0, 1.0] {
            phases.write(&[level; 513], &mut spectrum);
            assert!(spectrum.iter().all(|value| *value == Complex::new(level, 0.0)));
        }
    }
}
