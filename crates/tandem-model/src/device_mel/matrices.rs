//! The two matrices that turn windows of samples into mel bands, computed in double precision.
//!
//! In: mel settings. Out: [`Matrices`], row-major.

use std::f64::consts::TAU;
use tandem_audio::mel::{MelConfig, MelError, filterbank, hann_window};

pub(super) struct Matrices {
    /// Window and Fourier matrix, cosines before sines: `[n_fft, 2 * bins]`.
    pub(super) transform: Vec<f32>,
    /// `[bins, bands]`.
    pub(super) bands: Vec<f32>,
    /// Bins that some band uses.
    pub(super) bins: usize,
}

impl Matrices {
    pub(super) fn of(config: &MelConfig) -> Result<Matrices, MelError> {
        let bank = filterbank(config)?;
        let ranges = bank.bands().iter().map(|band| band.range()).filter(|range| !range.is_empty());
        let first = ranges.clone().map(|range| range.start).min().unwrap_or(0);
        let end = ranges.map(|range| range.end).max().unwrap_or(first + 1);
        let bins = end - first;
        let mut bands = vec![0.0; bins * config.bands];
        for (at, band) in bank.bands().iter().enumerate() {
            for (bin, weight) in band.range().zip(band.weights()) {
                bands[(bin - first) * config.bands + at] = *weight as f32;
            }
        }
        Ok(Matrices { transform: transform(config, first, bins), bands, bins })
    }
}

/// Cosines and sines of the bins `first..first + bins`, each row multiplied by the window.
fn transform(config: &MelConfig, first: usize, bins: usize) -> Vec<f32> {
    let n_fft = config.n_fft;
    // One period in `n_fft` steps, so that the angle of sample times bin wraps around exactly.
    let turn: Vec<(f64, f64)> =
        (0..n_fft).map(|step| (TAU * step as f64 / n_fft as f64).sin_cos()).collect();
    let mut matrix = Vec::with_capacity(n_fft * 2 * bins);
    for (place, weight) in hann_window(config).into_iter().enumerate() {
        let angles = || (first..first + bins).map(|bin| turn[place * bin % n_fft]);
        matrix.extend(angles().map(|(_, cosine)| (weight * cosine) as f32));
        matrix.extend(angles().map(|(sine, _)| (weight * sine) as f32));
    }
    matrix
}
