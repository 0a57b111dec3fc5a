//! The definition of [`MelConfig`] in double precision: slow and simple.
//!
//! Tests compare every kernel with it. Never used for real features.

use super::config::{MelConfig, MelError};
use super::filterbank::{filterbank, hann_window};
use super::padding::reflected;
use std::f64::consts::PI;
use tandem_units::Samples;

/// Log-mel values by the definition, with a discrete Fourier transform term by term.
/// Shape: `[frames, bands]`.
pub fn log_mel(config: &MelConfig, signal: &[f64]) -> Result<Vec<f64>, MelError> {
    if signal.is_empty() {
        return Err(MelError::Empty);
    }
    let bank = filterbank(config)?;
    let window = hann_window(config);
    let circle: Vec<[f64; 2]> = (0..config.n_fft)
        .map(|i| 2.0 * PI * i as f64 / config.n_fft as f64)
        .map(|angle| [angle.cos(), -angle.sin()])
        .collect();
    let mut out = Vec::new();
    for frame in 0..config.frames(Samples(signal.len())).0 {
        let windowed: Vec<f64> = (0..config.n_fft)
            .map(|i| reflected(frame * config.hop.0 + i, config.n_fft / 2, signal.len()))
            .zip(&window)
            .map(|(index, weight)| signal[index] * weight)
            .collect();
        let magnitudes: Vec<f64> =
            (0..bank.bins()).map(|bin| magnitude(&windowed, &circle, bin)).collect();
        for band in bank.bands() {
            let run = &magnitudes[band.range()];
            let sum: f64 = run.iter().zip(band.weights()).map(|(m, weight)| m * weight).sum();
            out.push(sum.max(f64::from(config.floor)).ln());
        }
    }
    Ok(out)
}

/// Magnitude of one bin.
fn magnitude(windowed: &[f64], circle: &[[f64; 2]], bin: usize) -> f64 {
    let (mut re, mut im, mut turn) = (0.0, 0.0, 0);
    for value in windowed {
        re += value * circle[turn][0];
        im += value * circle[turn][1];
        turn += bin;
        if turn >= circle.len() {
            turn -= circle.len();
        }
    }
    re.hypot(im)
}
