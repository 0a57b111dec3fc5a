//! The reference encoder: a segment of a speaker's speech to a speaker embedding.
//!
//! In: normalised mel frames of another utterance `[rows, frames, bands]` and their mask. Out:
//! `[rows, voice_width]`. It pools means and standard deviations over time, so it cannot pass on
//! what is said. Next: [`crate::network::voice`].

use crate::network::layers::{Init, Linear};
use crate::network::size::VoiceConfig;
use burn::module::Module;
use burn::tensor::{FloatDType, Tensor};

/// Reference frames per position.
const PATCH: usize = 4;

#[derive(Module, Debug)]
pub struct ReferenceEncoder {
    input: Linear,
    conv: Linear,
    output: Linear,
}

impl ReferenceEncoder {
    pub fn new(init: &mut Init, config: &VoiceConfig) -> ReferenceEncoder {
        let width = config.text_width;
        ReferenceEncoder {
            input: Linear::new(init, PATCH * config.bands, width),
            conv: Linear::new(init, 3 * width, width),
            output: Linear::new(init, 2 * width, config.voice_width),
        }
    }

    /// Shapes: `[rows, frames, bands]`, `[rows, frames]` of ones and zeros; `frames` is a
    /// multiple of four. A row without a reference always gives the same vector.
    pub fn forward(&self, frames: Tensor<3>, mask: Tensor<2>) -> Tensor<2> {
        let [rows, count, bands] = frames.dims();
        let (patches, width) = (count / PATCH, PATCH * bands);
        let frames = frames * mask.clone().reshape([rows, count, 1]);
        // A patch is real if all of its frames are.
        let real = mask.reshape([rows, patches, PATCH]).min_dim(2);
        let x = self.input.forward_silu(frames.reshape([rows, patches, width]));
        let x = x * self.conv.rounded(real.clone());
        let x = x.clone() + self.conv.conv_silu(x, None);
        let x = x.cast(FloatDType::F32);
        let (mean, deviation) = over_time(x, real);
        self.output.forward(Tensor::cat(vec![mean, deviation], 1))
    }
}

/// Mean and standard deviation over the real positions.
fn over_time(x: Tensor<3>, real: Tensor<3>) -> (Tensor<2>, Tensor<2>) {
    let [rows, _, width] = x.dims();
    let count = real.clone().sum_dim(1).clamp_min(1.0);
    let mean = (x.clone() * real.clone()).sum_dim(1) / count.clone();
    let off = (x - mean.clone()) * real;
    let variance = off.square().sum_dim(1) / count;
    let deviation = (variance + 1e-5).sqrt();
    (mean.reshape([rows, width]), deviation.reshape([rows, width]))
}
