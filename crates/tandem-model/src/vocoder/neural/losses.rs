//! The losses of the neural vocoder. None of them is adversarial, so training is stable.
//!
//! In: [`DeviceSegments`] and a network. Out: [`VocoderLosses`]: the distance of magnitudes at three resolutions
//! (Yamamoto, Song and Kim 2020, "Parallel WaveGAN"), and the cross-entropy of the pitch. Every segment has the same
//! weight, so gradients of several batches add up to those of one large batch. Next: [`crate::optimizer`].

use super::network::VocoderNetwork;
use super::segment::DeviceSegments;
use crate::network::ops;
use burn::tensor::{Tensor, activation};

/// Points of the Fourier transforms that compare two signals.
pub const RESOLUTIONS: [usize; 3] = [512, 1024, 2048];
/// The largest log-magnitude of a bin: full scale is about 6.
const LOUDEST: f32 = 8.0;

/// The losses of a batch, summed over its segments.
#[derive(Clone, Debug)]
pub struct VocoderLosses {
    /// Spectral convergence: error of magnitudes over their norm, mean of all resolutions.
    pub convergence: Tensor<1>,
    /// Mean absolute difference of log-magnitudes, mean of all resolutions.
    pub magnitude: Tensor<1>,
    /// Cross-entropy of voicing and pitch classes.
    pub pitch: Tensor<1>,
}

impl VocoderLosses {
    /// The training loss.
    pub fn total(&self) -> Tensor<1> {
        self.convergence.clone() + self.magnitude.clone() + self.pitch.clone()
    }

    /// The values without the autodiff graph.
    pub fn inner(self) -> VocoderLosses {
        VocoderLosses {
            convergence: self.convergence.inner(),
            magnitude: self.magnitude.inner(),
            pitch: self.pitch.inner(),
        }
    }
}

impl std::ops::Add for VocoderLosses {
    type Output = VocoderLosses;

    fn add(self, other: VocoderLosses) -> VocoderLosses {
        VocoderLosses {
            convergence: self.convergence + other.convergence,
            magnitude: self.magnitude + other.magnitude,
            pitch: self.pitch + other.pitch,
        }
    }
}

/// The losses of a network on segments of recordings.
pub fn losses(network: &VocoderNetwork, batch: &DeviceSegments, hop: usize) -> VocoderLosses {
    let filters = network.filters(batch.mel.clone(), batch.pitch.clone());
    let samples = samples(filters, batch, hop);
    let distances = RESOLUTIONS
        .map(|n_fft| ops::spectral_distance(samples.clone(), batch.truth.clone(), n_fft));
    let [a, b, c] = distances;
    let mean = (a + b + c) / RESOLUTIONS.len() as f32;
    VocoderLosses {
        convergence: mean.clone().narrow(0, 0, 1),
        magnitude: mean.narrow(0, 1, 1),
        pitch: pitch_loss(network.pitch(batch.mel.clone()), batch),
    }
}

/// The samples that all of their frames cover. Shapes: `[segments, frames, 3 * bins]` to `[segments, samples]`.
pub fn samples(filters: Tensor<3>, batch: &DeviceSegments, hop: usize) -> Tensor<2> {
    let bins = batch.envelope.dims()[2];
    let part = |index: usize| filters.clone().narrow(2, index * bins, bins);
    let size = |index: usize| (part(index) + batch.envelope.clone()).clamp_max(LOUDEST).exp();
    let [pulse_re, pulse_im, noise_re, noise_im] = batch.source.clone();
    let (pulse, noise, phase) = (size(0), size(2), part(1));
    let (along, across) = (pulse.clone() * phase.clone().cos(), pulse * phase.sin());
    let re = along.clone() * pulse_re.clone() - across.clone() * pulse_im.clone()
        + noise.clone() * noise_re;
    let im = along * pulse_im + across * pulse_re + noise * noise_im;
    ops::inverse_spectra(Tensor::cat(vec![re, im], 2), hop)
}

/// Voicing of all frames, classes of the voiced ones. Shape: `[segments, frames, PITCH_OUTPUTS]`.
fn pitch_loss(outputs: Tensor<3>, batch: &DeviceSegments) -> Tensor<1> {
    let [segments, frames, count] = outputs.dims();
    let voiced = batch.voiced.clone();
    let decided = outputs.clone().narrow(2, 0, 1).reshape([segments, frames]);
    let classes = activation::log_softmax(outputs.narrow(2, 1, count - 1), 2);
    let of_classes = (classes * batch.pitch_target.clone()).sum();
    let yes = activation::log_sigmoid(decided.clone()) * voiced.clone();
    let no = activation::log_sigmoid(-decided) * (-voiced + 1.0);
    -(of_classes + (yes + no).sum()) / frames as f32
}

/// The largest log-magnitude that synthesis allows; the same as in training.
pub const fn loudest() -> f32 {
    LOUDEST
}
