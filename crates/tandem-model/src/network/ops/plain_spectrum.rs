//! Short-time Fourier transforms as matrix products.
//!
//! In and out: as [`super::inverse_spectra`] and [`super::spectral_distance`]. Runs on every device with automatic
//! differentiation. GPUs use it, and it is the reference for the tests of the fused kernels.

use burn::tensor::{Tensor, TensorData};
use std::f64::consts::TAU;

/// The smallest power of a bin under the logarithm.
pub const POWER_FLOOR: f32 = 1e-7;
/// The smallest norm that spectral convergence divides by: a segment of silence has hardly any.
pub const NORM_FLOOR: f32 = 1.0;
/// Added to the squared error before its root, whose slope at zero is infinite.
pub const ERROR_FLOOR: f32 = 1e-8;

/// See [`super::inverse_spectra`].
pub fn inverse_spectra(spectra: Tensor<3>, hop: usize) -> Tensor<2> {
    let [batch, frames, parts] = spectra.dims();
    let n_fft = parts - 2;
    let overlap = n_fft / hop;
    let basis = inverse_basis(n_fft, hop);
    let basis: Tensor<2> =
        Tensor::from_data(TensorData::new(basis, [parts, n_fft]), &spectra.device());
    let basis = basis.cast(spectra.dtype());
    let pieces = spectra.reshape([batch * frames, parts]).matmul(basis);
    let pieces = pieces.reshape([batch, frames, n_fft]);
    // Piece `j` of frame `t` is heard in hop `t + j`. Only hops with all pieces are kept.
    let hops = frames + 1 - overlap;
    let piece = |j: usize| pieces.clone().narrow(2, j * hop, hop).narrow(1, overlap - 1 - j, hops);
    let sum = (1..overlap).fold(piece(0), |sum, j| sum + piece(j));
    sum.reshape([batch, hops * hop])
}

/// See [`super::spectral_distance`].
pub fn spectral_distance(guess: Tensor<2>, truth: Tensor<2>, n_fft: usize) -> Tensor<1> {
    let (guess, truth) = (magnitudes(guess, n_fft), magnitudes(truth.detach(), n_fft));
    let [_, frames, bins] = truth.dims();
    let squared = (guess.clone() - truth.clone()).square().sum_dim(2).sum_dim(1);
    let norm = truth.clone().square().sum_dim(2).sum_dim(1).sqrt().clamp_min(NORM_FLOOR);
    let convergence = ((squared + ERROR_FLOOR).sqrt() / norm).sum();
    let logarithmic = (guess.log() - truth.log()).abs().sum() / (frames * bins) as f32;
    Tensor::cat(vec![convergence, logarithmic], 0)
}

/// Magnitudes under a Hann window, hop a quarter of it. Shapes: `[batch, samples]` to `[batch, frames, bins]`.
pub fn magnitudes(signal: Tensor<2>, n_fft: usize) -> Tensor<3> {
    let [batch, samples] = signal.dims();
    let (hop, bins) = (n_fft / 4, n_fft / 2 + 1);
    let hops = samples / hop;
    let frames = hops - 3;
    let signal = signal.narrow(1, 0, hops * hop).reshape([batch, hops, hop]);
    let quarter = |j: usize| signal.clone().narrow(1, j, frames);
    let framed = Tensor::cat((0..4).map(quarter).collect(), 2).reshape([batch * frames, n_fft]);
    let basis = forward_basis(n_fft);
    let basis: Tensor<2> =
        Tensor::from_data(TensorData::new(basis, [n_fft, 2 * bins]), &signal.device());
    let spectra = framed.matmul(basis.cast(signal.dtype())).reshape([batch, frames, 2 * bins]);
    let (re, im) = (spectra.clone().narrow(2, 0, bins), spectra.narrow(2, bins, bins));
    (re.square() + im.square()).clamp_min(POWER_FLOOR).sqrt()
}

/// A periodic Hann window.
pub fn hann(length: usize) -> Vec<f64> {
    (0..length).map(|i| 0.5 - 0.5 * (TAU * i as f64 / length as f64).cos()).collect()
}

/// One over the sum of squared windows at a sample that all of its frames cover.
pub fn overlap_share(n_fft: usize, hop: usize) -> f64 {
    let squares: f64 = hann(n_fft).iter().step_by(hop).map(|value| value * value).sum();
    squares.recip()
}

/// Window and Fourier transform: `[n_fft, 2 * bins]`, real parts first.
fn forward_basis(n_fft: usize) -> Vec<f64> {
    let (window, bins) = (hann(n_fft), n_fft / 2 + 1);
    let cell = |index: usize| {
        let (sample, column) = (index / (2 * bins), index % (2 * bins));
        let angle = TAU * (sample * (column % bins) % n_fft) as f64 / n_fft as f64;
        window[sample] * if column < bins { angle.cos() } else { -angle.sin() }
    };
    (0..n_fft * 2 * bins).map(cell).collect()
}

/// Inverse Fourier transform, window and share of the overlap: `[2 * bins, n_fft]`.
fn inverse_basis(n_fft: usize, hop: usize) -> Vec<f64> {
    let (window, bins) = (hann(n_fft), n_fft / 2 + 1);
    let share = overlap_share(n_fft, hop) / n_fft as f64;
    let cell = |index: usize| {
        let (row, sample) = (index / n_fft, index % n_fft);
        let bin = row % bins;
        let angle = TAU * (sample * bin % n_fft) as f64 / n_fft as f64;
        // Bins between the first and the last stand for two: themselves and their mirror image.
        let twice = if bin == 0 || bin == bins - 1 { 1.0 } else { 2.0 };
        twice * share * window[sample] * if row < bins { angle.cos() } else { -angle.sin() }
    };
    (0..2 * bins * n_fft).map(cell).collect()
}
