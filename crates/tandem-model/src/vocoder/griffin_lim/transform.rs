//! Short-time Fourier transform and its inverse, with the padding of mel frames.
//!
//! In: samples or spectra. Out: the other. The inverse is the least-squares solution: the signal whose
//! spectra differ least from the given ones. A sample that the padding repeats gets contributions from
//! all of its copies, so that the ends fit their frames as well as the middle does. Iterations run on
//! rayon's threads, in chunks of frames whose sums are added in order: the result does not depend on
//! the number of threads.

use crate::vocoder::samples_of;
use rayon::prelude::*;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use std::sync::Arc;
use tandem_audio::mel::{MelConfig, hann_window, reflected};

/// Samples whose window weight is below this fraction of the largest are set to zero.
const UNSEEN: f32 = 1e-6;
/// Frames that a thread transforms at a time.
const CHUNK: usize = 32;

/// Tables and the current samples of one vocoder.
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
}

/// Memory of a thread for one frame.
struct Scratch {
    block: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

impl Transform {
    /// The settings must be valid.
    pub fn new(mel: &MelConfig) -> Transform {
        let mut planner = RealFftPlanner::new();
        let window: Vec<f32> = hann_window(mel).into_iter().map(|value| value as f32).collect();
        Transform {
            window_back: window.iter().map(|value| value / mel.n_fft as f32).collect(),
            window,
            source: Vec::new(),
            share: Vec::new(),
            samples: Vec::new(),
            padded: Vec::new(),
            forward: planner.plan_fft_forward(mel.n_fft),
            backward: planner.plan_fft_inverse(mel.n_fft),
            mel: mel.clone(),
        }
    }

    /// Sets the samples from `frames` spectra. `write` fills a spectrum, given its frame.
    pub fn start(&mut self, frames: usize, mut write: impl FnMut(usize, &mut [Complex<f32>])) {
        self.lay_out(frames);
        let mut scratch = self.scratch();
        let mut sum = vec![0.0; self.padded.len()];
        for frame in 0..frames {
            write(frame, &mut scratch.spectrum);
            self.add(&mut scratch, &mut sum[frame * self.mel.hop.0..]);
        }
        self.settle(&[sum]);
    }

    /// Sets the samples of `frames` frames.
    #[cfg(test)]
    pub fn start_from(&mut self, frames: usize, samples: &[f32]) {
        self.lay_out(frames);
        self.samples.copy_from_slice(samples);
        self.pad();
    }

    /// Sets the samples from their own spectra. `change` modifies the spectrum of a frame, given what it kept of this
    /// frame in the previous round. `kept` has a row for each frame, `memory` is what a thread needs.
    pub fn round<M>(
        &mut self,
        kept: &mut [Complex<f32>],
        memory: impl Fn() -> M + Sync + Send,
        change: impl Fn(&mut M, usize, &mut [Complex<f32>], &mut [Complex<f32>]) + Sync + Send,
    ) {
        let (bins, hop) = (self.mel.n_fft / 2 + 1, self.mel.hop.0);
        let sum_of =
            |(scratch, memory): &mut (Scratch, M), first: usize, kept: &mut [Complex<f32>]| {
                let mut sum = vec![0.0; (kept.len() / bins - 1) * hop + self.mel.n_fft];
                for (number, kept) in kept.chunks_exact_mut(bins).enumerate() {
                    self.analyse(first + number, scratch);
                    change(memory, first + number, &mut scratch.spectrum, kept);
                    self.add(scratch, &mut sum[number * hop..]);
                }
                sum
            };
        let chunks = kept.par_chunks_mut(CHUNK * bins).enumerate();
        let sums: Vec<Vec<f32>> = chunks
            .map_init(
                || (self.scratch(), memory()),
                |own, (chunk, kept)| sum_of(own, chunk * CHUNK, kept),
            )
            .collect();
        self.settle(&sums);
    }

    /// The current samples.
    pub fn sound(&self) -> Vec<f32> {
        self.samples.clone()
    }

    fn scratch(&self) -> Scratch {
        let scratch = self.forward.get_scratch_len().max(self.backward.get_scratch_len());
        Scratch {
            block: self.forward.make_input_vec(),
            spectrum: self.forward.make_output_vec(),
            scratch: vec![Complex::default(); scratch],
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
    }

    /// The spectrum of a frame.
    fn analyse(&self, frame: usize, own: &mut Scratch) {
        let sound = &self.padded[frame * self.mel.hop.0..];
        for ((value, sample), weight) in own.block.iter_mut().zip(sound).zip(&self.window) {
            *value = sample * weight;
        }
        self.forward
            .process_with_scratch(&mut own.block, &mut own.spectrum, &mut own.scratch)
            .expect("buffers come from the plan itself");
    }

    /// Adds the inverse transform of the spectrum to the places of its frame.
    fn add(&self, own: &mut Scratch, sum: &mut [f32]) {
        // The first and last bins of a real signal are real.
        let last = own.spectrum.len() - 1;
        own.spectrum[0].im = 0.0;
        own.spectrum[last].im = 0.0;
        self.backward
            .process_with_scratch(&mut own.spectrum, &mut own.block, &mut own.scratch)
            .expect("buffers come from the plan itself");
        for ((sum, value), weight) in sum.iter_mut().zip(&own.block).zip(&self.window_back) {
            *sum += value * weight;
        }
    }

    /// Normalises the sums of consecutive chunks to samples, and pads them for the next iteration.
    fn settle(&mut self, sums: &[Vec<f32>]) {
        self.samples.fill(0.0);
        for (chunk, sum) in sums.iter().enumerate() {
            for (value, source) in sum.iter().zip(&self.source[chunk * CHUNK * self.mel.hop.0..]) {
                self.samples[*source as usize] += value;
            }
        }
        self.samples.iter_mut().zip(&self.share).for_each(|(sample, share)| *sample *= share);
        self.pad();
    }

    fn pad(&mut self) {
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
        transform.start_from(frames, &signal);
        let mut kept = vec![Complex::default(); frames * (config.n_fft / 2 + 1)];
        transform.round(&mut kept, || (), |_, _, _, _| ());
        for (index, (found, wanted)) in transform.sound().iter().zip(&signal).enumerate() {
            let seen = transform.share[index] > 0.0;
            let wanted = if seen { *wanted } else { 0.0 };
            assert!((found - wanted).abs() < 1e-4, "{frames}, {index}: {found} for {wanted}");
        }
        assert!(transform.share.iter().filter(|share| **share == 0.0).count() <= 1);
    }

    #[test]
    fn the_inverse_of_the_transform_is_the_signal() {
        // 80 frames are three chunks.
        for frames in [1, 2, 3, 20, 80] {
            check(MelConfig::SPEECH_22K, frames);
            check(MelConfig { hop: Hop(300), window: 800, ..MelConfig::SPEECH_22K }, frames);
        }
    }
}
