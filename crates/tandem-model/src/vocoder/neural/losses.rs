//! The losses of the neural vocoder.
//!
//! In: [`DeviceSegments`] and a network. Out: [`VocoderLosses`]: spectral convergence and the difference of log-magnitudes
//! (Yamamoto, Song and Kim 2020, "Parallel WaveGAN") between the network's magnitudes and the recording's. Every segment
//! has the same weight, so gradients of several batches add up to those of one large batch. Next: [`crate::optimizer`].

use super::network::VocoderNetwork;
use super::segment::DeviceSegments;
use burn::tensor::Tensor;

/// The largest log-magnitude of a bin: full scale is about 6.
pub const LOUDEST: f32 = 8.0;
/// Fainter log-magnitudes are equal: they are below the rounding of 16-bit samples.
pub const QUIETEST: f32 = -8.06;
/// The norm of a segment's magnitudes is at least this, so that near silence does not count more than speech.
const LEAST_NORM: f32 = 1.0;
/// Keeps the slope of a square root finite.
const SMALL: f32 = 1e-9;

/// The losses of a batch, summed over its segments.
#[derive(Clone, Debug)]
pub struct VocoderLosses {
    /// Spectral convergence: error of magnitudes over their norm.
    pub convergence: Tensor<1>,
    /// Mean absolute difference of log-magnitudes.
    pub magnitude: Tensor<1>,
}

impl VocoderLosses {
    /// The training loss.
    pub fn total(&self) -> Tensor<1> {
        self.convergence.clone() + self.magnitude.clone()
    }

    /// The values without the autodiff graph.
    pub fn inner(self) -> VocoderLosses {
        VocoderLosses { convergence: self.convergence.inner(), magnitude: self.magnitude.inner() }
    }
}

impl std::ops::Add for VocoderLosses {
    type Output = VocoderLosses;

    fn add(self, other: VocoderLosses) -> VocoderLosses {
        VocoderLosses {
            convergence: self.convergence + other.convergence,
            magnitude: self.magnitude + other.magnitude,
        }
    }
}

impl std::ops::Mul<f32> for VocoderLosses {
    type Output = VocoderLosses;

    fn mul(self, factor: f32) -> VocoderLosses {
        VocoderLosses { convergence: self.convergence * factor, magnitude: self.magnitude * factor }
    }
}

/// The log-magnitudes that a network predicts: `[segments, frames, bins]`.
pub fn log_magnitudes(network: &VocoderNetwork, batch: &DeviceSegments) -> Tensor<3> {
    let relative = network.forward(batch.mel.clone());
    (relative + batch.envelope.clone()).clamp(QUIETEST, LOUDEST)
}

/// The losses of predicted log-magnitudes: `[segments, frames, bins]`.
pub fn losses(predicted: Tensor<3>, batch: &DeviceSegments) -> VocoderLosses {
    let truth = batch.truth.clone();
    let [_, frames, bins] = truth.dims();
    let magnitude = (predicted.clone() - truth.clone()).abs().sum() / (frames * bins) as f32;
    let (predicted, truth) = (predicted.exp(), truth.exp());
    // One value for each segment.
    let norm = |values: Tensor<3>| ((values.clone() * values).sum_dim(2).sum_dim(1) + SMALL).sqrt();
    let convergence = norm(predicted - truth.clone()) / norm(truth).clamp_min(LEAST_NORM);
    VocoderLosses { convergence: convergence.sum(), magnitude }
}
