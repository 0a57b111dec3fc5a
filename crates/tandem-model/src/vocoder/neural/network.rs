//! The network of the neural vocoder: ConvNeXt blocks over mel frames.
//!
//! In: normalised mel frames. Out: log-magnitudes of the frequency bins, relative to the envelope of the mel frame. The
//! layout follows Vocos (Siuzdak 2023): all layers run at the frame rate, an inverse Fourier transform makes the samples.
//! Next: [`super::losses`] for training, [`super::NeuralVocoder`] for synthesis.

use super::config::VocoderConfig;
use crate::network::layers::{Init, Linear};
use crate::network::ops;
use crate::network::ops::neighbours;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use tandem_units::Seed;

/// Frames of a depthwise convolution.
pub const KERNEL: usize = 7;
/// Width of the middle of a block, in widths of the block.
const EXPANSION: usize = 3;
/// Initial weight of a block's output.
const INITIAL_GAIN: f32 = 0.2;

/// Mel frames to log-magnitudes.
#[derive(Module, Debug)]
pub struct VocoderNetwork {
    input: Linear,
    first_norm: Norm,
    blocks: Vec<Block>,
    last_norm: Norm,
    head: Linear,
}

/// Depthwise convolution, norm, two linear layers, added to its input.
#[derive(Module, Debug)]
pub(super) struct Block {
    /// `[KERNEL, width]`.
    depthwise: Param<Tensor<2>>,
    norm: Norm,
    up: Linear,
    down: Linear,
    /// `[1, width]`.
    gain: Param<Tensor<2>>,
}

/// Layer norm; the scale is relative to one. Shapes: `[1, width]`.
#[derive(Module, Debug)]
pub(super) struct Norm {
    scale: Param<Tensor<2>>,
    shift: Param<Tensor<2>>,
}

impl VocoderNetwork {
    /// A new network. Trainable only on a device with autodiff.
    pub fn new(config: &VocoderConfig, seed: Seed, device: &Device) -> VocoderNetwork {
        let init = &mut Init::new(seed, device);
        let VocoderConfig { bands, width, blocks, .. } = *config;
        VocoderNetwork {
            input: Linear::new(init, 3 * bands, width),
            first_norm: Norm::new(init, width),
            blocks: (0..blocks).map(|_| Block::new(init, width)).collect(),
            last_norm: Norm::new(init, width),
            // At the start the magnitudes are the envelope of the mel frames.
            head: Linear::zeros(init, width, config.bins()),
        }
    }

    /// Log-magnitudes relative to the envelope. Shapes: `[batch, frames, bands]` to `[batch, frames, bins]`.
    pub fn forward(&self, mel: Tensor<3>) -> Tensor<3> {
        let x = self.first_norm.forward(self.input.forward(neighbours(mel, None)));
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x));
        self.head.forward(self.last_norm.forward(x))
    }
}

impl Block {
    pub(super) fn new(init: &mut Init, width: usize) -> Block {
        let bound = (3.0 / KERNEL as f32).sqrt();
        let gain = Param::from_tensor(Tensor::full([1, width], INITIAL_GAIN, init.device));
        Block {
            depthwise: init.uniform([KERNEL, width], bound),
            norm: Norm::new(init, width),
            up: Linear::new(init, width, EXPANSION * width),
            down: Linear::new(init, EXPANSION * width, width),
            gain,
        }
    }

    pub(super) fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let hidden = self.norm.forward(depthwise(x.clone(), self.depthwise.val()));
        let hidden = self.down.forward(self.up.forward_silu(hidden));
        ops::gated_add(x, self.gain.val(), hidden)
    }
}

impl Norm {
    pub(super) fn new(init: &mut Init, width: usize) -> Norm {
        Norm { scale: init.zeros([1, width]), shift: init.zeros([1, width]) }
    }

    pub(super) fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        ops::norm_film(x, self.scale.val(), self.shift.val())
    }
}

/// Each channel convolved with its own kernel. Shapes: `[batch, frames, width]`, `[KERNEL, width]`.
fn depthwise(x: Tensor<3>, kernel: Tensor<2>) -> Tensor<3> {
    let [batch, frames, width] = x.dims();
    let edge = Tensor::<3>::zeros([batch, KERNEL / 2, width], &x.device()).cast(x.dtype());
    let wide = Tensor::cat(vec![edge.clone(), x, edge], 1);
    let part = |tap: usize| {
        let weight = kernel.clone().narrow(0, tap, 1).unsqueeze_dim::<3>(0);
        wide.clone().narrow(1, tap, frames) * weight
    };
    (1..KERNEL).fold(part(0), |sum, tap| sum + part(tap))
}
