//! A stretch of somebody's speech to a vector that stands for the voice.
//!
//! In: normalised mel frames of another utterance `[rows, frames, bands]` and which are real.
//! Out: `[rows, voice_width]`. Knows nothing of what is said: it only has means and deviations
//! over time. Next: [`crate::network::voice`].

use crate::network::layers::{Init, Linear, neighbours};
use crate::network::size::VoiceConfig;
use burn::module::Module;
use burn::tensor::Tensor;

/// Frames of a reference that are looked at as one.
const PATCH: usize = 4;

/// Frames of a reference to a voice vector.
#[derive(Module, Debug)]
pub struct ReferenceEncoder {
    enter: Linear,
    mix: Linear,
    leave: Linear,
}

impl ReferenceEncoder {
    /// With the widths of this configuration.
    pub fn new(init: &mut Init, config: &VoiceConfig) -> ReferenceEncoder {
        let width = config.text_width;
        ReferenceEncoder {
            enter: Linear::new(init, PATCH * config.bands, width),
            mix: Linear::new(init, 3 * width, width),
            leave: Linear::new(init, 2 * width, config.voice_width),
        }
    }

    /// Shapes: `[rows, frames, bands]`, `[rows, frames]` of ones and zeros; frames a multiple of
    /// four. A row without a reference gives the same vector whatever its frames are.
    pub fn forward(&self, frames: Tensor<3>, mask: Tensor<2>) -> Tensor<2> {
        let [rows, count, bands] = frames.dims();
        let (patches, width) = (count / PATCH, PATCH * bands);
        let frames = frames * mask.clone().reshape([rows, count, 1]);
        // A patch is real when all of it is.
        let real = mask.reshape([rows, patches, PATCH]).min_dim(2);
        let x = self.enter.forward_silu(frames.reshape([rows, patches, width]));
        let x = x * real.clone();
        let x = x.clone() + self.mix.forward_silu(neighbours(x));
        let (mean, deviation) = over_time(x, real);
        self.leave.forward(Tensor::cat(vec![mean, deviation], 1))
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
