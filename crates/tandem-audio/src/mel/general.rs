//! The general kernel: any valid setting, one frame after the other with `realfft`.
//!
//! In: samples. Out: log-mel values. For settings that [`super::fast`] does not support, and as the
//! baseline of its speed-up. Plans once, reuses scratch memory, stores filters as runs of weights.

use super::config::{MelConfig, MelError};
use super::filterbank::{filterbank, hann_window};
use super::padding::reflected;
use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use std::sync::Arc;

/// Tables and scratch of one extractor.
pub(super) struct General {
    transform: Arc<dyn RealToComplex<f32>>,
    window: Vec<f32>,
    bands: Vec<Run>,
    hop: usize,
    floor: f32,
    padded: Vec<f32>,
    frame: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    magnitudes: Vec<f32>,
}

/// A filter: its weights from bin `first` on.
struct Run {
    first: usize,
    weights: Vec<f32>,
}

impl General {
    /// Plans the transform and the filters.
    pub(super) fn new(config: &MelConfig) -> Result<Box<Self>, MelError> {
        let bank = filterbank(config)?;
        let transform = RealFftPlanner::new().plan_fft_forward(config.n_fft);
        let run = |band: &super::filterbank::Band| Run {
            first: band.range().start,
            weights: band.weights().iter().map(|&weight| weight as f32).collect(),
        };
        Ok(Box::new(Self {
            window: hann_window(config).into_iter().map(|value| value as f32).collect(),
            bands: bank.bands().iter().map(run).collect(),
            hop: config.hop.0,
            floor: config.floor,
            padded: Vec::new(),
            frame: transform.make_input_vec(),
            spectrum: transform.make_output_vec(),
            scratch: transform.make_scratch_vec(),
            magnitudes: vec![0.0; bank.bins()],
            transform,
        }))
    }

    /// Features of samples that `full_scale` scales to a full scale of one.
    /// Shape of `out`: `[frames, bands]`.
    pub(super) fn run<T: Copy>(
        &mut self,
        samples: &[T],
        full_scale: impl Fn(T) -> f32,
        out: &mut [f32],
    ) {
        let (length, before) = (samples.len(), self.frame.len() / 2);
        let padding = |place: usize| full_scale(samples[reflected(place, before, length)]);
        self.padded.clear();
        self.padded.extend((0..before).map(padding));
        self.padded.extend(samples.iter().map(|&sample| full_scale(sample)));
        self.padded.extend((before + length..2 * before + length).map(padding));
        let bands = self.bands.len();
        for (frame, out) in out.chunks_exact_mut(bands).enumerate() {
            self.one_frame(frame * self.hop, out);
        }
    }

    fn one_frame(&mut self, start: usize, out: &mut [f32]) {
        let signal = &self.padded[start..start + self.window.len()];
        for ((value, sample), weight) in self.frame.iter_mut().zip(signal).zip(&self.window) {
            *value = sample * weight;
        }
        self.transform
            .process_with_scratch(&mut self.frame, &mut self.spectrum, &mut self.scratch)
            .expect("buffers come from the plan itself");
        for (magnitude, value) in self.magnitudes.iter_mut().zip(&self.spectrum) {
            *magnitude = value.norm_sqr().sqrt();
        }
        for (value, band) in out.iter_mut().zip(&self.bands) {
            let run = &self.magnitudes[band.first..band.first + band.weights.len()];
            let sum: f32 = run.iter().zip(&band.weights).map(|(m, weight)| m * weight).sum();
            *value = sum.max(self.floor).ln();
        }
    }
}
