//! Short-time Fourier transform and its inverse, with the padding of mel frames.
//!
//! In: samples or spectra. Out: the other. The inverse is the least-squares solution: the signal whose
//! spectra differ least from the given ones. A sample that the padding repeats gets contributions from
//! all of its copies, so that the ends fit their frames as well as the middle does.

use crate::vocoder::samples_of;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use std::sync::Arc;
use tandem_data::audio::mel::{MelConfig, hann_window, reflected};

/// Samples whose window weight is below this fraction of the largest are set to zero.
const UNSEEN: f32 = 1e-6;

/// Tables, scratch memory and the current samples of one vocoder.
pub struct Transform {
    mel: MelConfig,
    forward: Arc<dyn RealToComplex<f32>>,
    backward: Arc<dyn ComplexToReal<f32>>,
    /// The window, and the window with the scale of the inverse transform.
    window: Vec<f32>,
    window_back: Vec<f32>,
    /// The sample index at each position of the padded signal.
    source: Vec<u32>,
    /// One over the sum of squared windows at a sample.
    share: Vec<f32>,
    samples: Vec<f32>,
    padded: Vec<f32>,
    sum: Vec<f32>,
    block: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

impl Transform {
    /// The settings must be valid.
    pub fn new(mel: &MelConfig) -> Transform {
        let mut planner = RealFftPlanner::new();
        let forward = planner.plan_fft_forward(mel.n_fft);
        let backward = planner.plan_fft_inverse(mel.n_fft);
        let scratch = forward.get_scratch_len().max(backward.get_scratch_len());
        let window: Vec<f32> = hann_window(mel).into_iter().map(|value| value as f32).collect();
        Transform {
            window_back: window.iter().map(|value| value / mel.n_fft as f32).collect(),
            window,
            source: Vec::new(),
            share: Vec::new(),
            samples: Vec::new(),
            padded: Vec::new(),
            sum: Vec::new(),
            block: forward.make_input_vec(),
            spectrum: forward.make_output_vec(),
            scratch: vec![Complex::default(); scratch],
            forward,
            backward,
            mel: mel.clone(),
        }
    }

    /// Sets the samples from `frames` spectra. `write` fills a spectrum, given its frame.
    pub fn start(&mut self, frames: usize, mut write: impl FnMut(usize, &mut [Complex<f32>])) {
        self.lay_out(frames);
        for frame in 0..frames {
            write(frame, &mut self.spectrum);
            self.add(frame);
        }
        self.settle();
    }

    /// Sets the samples from their own spectra. `change` modifies a spectrum, given its frame.
    pub fn round(&mut self, mut change: impl FnMut(usize, &mut [Complex<f32>])) {
        let frames = (self.padded.len() - self.window.len()) / self.mel.hop.0 + 1;
        for frame in 0..frames {
            self.analyse(frame);
            change(frame, &mut self.spectrum);
            self.add(frame);
        }
        self.settle();
    }

    /// The current samples.
    pub fn sound(&self) -> Vec<f32> {
        self.samples.clone()
    }

    /// Replaces the samples by others of the same length.
    #[cfg(test)]
    pub fn set(&mut self, samples: &[f32]) {
        self.samples.copy_from_slice(samples);
        for (place, source) in self.padded.iter_mut().zip(&self.source) {
            *place = samples[*source as usize];
        }
    }

    /// Computes the tables for this number of frames.
    fn lay_out(&mut self, frames: usize) {
        let (n_fft, hop) = (self.mel.n_fft, self.mel.hop.0);
        let length = samples_of(frames, &self.mel).0;
        let places = (frames - 1) * hop + n_fft;
        self.source.clear();
        self.source.extend((0..places).map(|place| reflected(place, n_fft / 2, length) as u32));
        let mut weight = vec![0.0f32; length];
        for frame in 0..frames {
            for (source, window) in self.source[frame * hop..].iter().zip(&self.window) {
                weight[*source as usize] += window * window;
            }
        }
        let least = UNSEEN * weight.iter().copied().fold(0.0, f32::max);
        let share = |weight: &f32| if *weight > least { 1.0 / weight } else { 0.0 };
        self.share = weight.iter().map(share).collect();
        self.samples = vec![0.0; length];
        self.padded = vec![0.0; places];
        self.sum = vec![0.0; places];
    }

    /// The spectrum of a frame.
    fn analyse(&mut self, frame: usize) {
        let sound = &self.padded[frame * self.mel.hop.0..];
        for ((value, sample), weight) in self.block.iter_mut().zip(sound).zip(&self.window) {
            *value = sample * weight;
        }
        self.forward
            .process_with_scratch(&mut self.block, &mut self.spectrum, &mut self.scratch)
            .expect("buffers come from the plan itself");
    }

    /// Adds the inverse transform of the spectrum at its frame.
    fn add(&mut self, frame: usize) {
        // The first and last bins of a real signal are real.
        let last = self.spectrum.len() - 1;
        self.spectrum[0].im = 0.0;
        self.spectrum[last].im = 0.0;
        self.backward
            .process_with_scratch(&mut self.spectrum, &mut self.block, &mut self.scratch)
            .expect("buffers come from the plan itself");
        let sum = &mut self.sum[frame * self.mel.hop.0..];
        for ((sum, value), weight) in sum.iter_mut().zip(&self.block).zip(&self.window_back) {
            *sum += value * weight;
        }
    }

    /// Normalises the sum to samples, and pads them for the next iteration.
    fn settle(&mut self) {
        self.samples.fill(0.0);
        for (sum, source) in self.sum.iter_mut().zip(&self.source) {
            self.samples[*source as usize] += std::mem::take(sum);
        }
        self.samples.iter_mut().zip(&self.share).for_each(|(sample, share)| *sample *= share);
        for (place, source) in self.padded.iter_mut().zip(&self.source) {
            *place = self.samples[*source as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_units::Hop;

    /// The inverse of the transform gives the same samples.
    #[track_caller]
    fn check(config: MelConfig, frames: usize) {
        let length = samples_of(frames, &config).0;
        let signal: Vec<f32> = (0..length).map(|i| ((i * i) as f32 * 0.01).sin()).collect();
        let mut transform = Transform::new(&config);
        transform.start(frames, |_, spectrum| spectrum.fill(Complex::default()));
        transform.set(&signal);
        transform.round(|_, _| ());
        for (index, (found, wanted)) in transform.sound().iter().zip(&signal).enumerate() {
            let seen = transform.share[index] > 0.0;
            let wanted = if seen { *wanted } else { 0.0 };
            assert!((found - wanted).abs() < 1e-4, "{frames}, {index}: {found} for {wanted}");
        }
        assert!(transform.share.iter().filter(|share| **share == 0.0).count() <= 1);
    }

    #[test]
    fn the_inverse_of_the_transform_is_the_signal() {
        for frames in [1, 2, 3, 20] {
            check(MelConfig::SPEECH_22K, frames);
            check(MelConfig { hop: Hop(300), window: 800, ..MelConfig::SPEECH_22K }, frames);
        }
    }
}
