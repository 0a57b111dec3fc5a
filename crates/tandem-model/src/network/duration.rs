//! How long each symbol is spoken.
//!
//! In: the encoder's vectors, cut off from its gradient: durations are learned from what the
//! encoder knows and do not bend it. Out: the natural logarithm of frames per symbol,
//! `[rows, symbols]`. Next: [`crate::synthesis::mel`].

use crate::network::layers::{Init, Linear, neighbours};
use crate::network::ops::Lengths;
use crate::network::size::VoiceConfig;
use burn::module::Module;
use burn::tensor::Tensor;

/// Vectors of symbols to logarithms of frames.
#[derive(Module, Debug)]
pub struct DurationPredictor {
    enter: Linear,
    mix: Linear,
    leave: Linear,
}

impl DurationPredictor {
    /// With the widths of this configuration.
    pub fn new(init: &mut Init, config: &VoiceConfig) -> DurationPredictor {
        let width = config.text_width;
        DurationPredictor {
            enter: Linear::new(init, 3 * width, width),
            mix: Linear::new(init, 3 * width, width),
            leave: Linear::silent(init, width, 1),
        }
    }

    /// Shapes: `[rows, symbols, text_width]` to `[rows, symbols]`.
    pub fn forward(&self, hidden: Tensor<3>, lengths: &Lengths) -> Tensor<2> {
        let [rows, symbols, _] = hidden.dims();
        let real = lengths.mask().reshape([rows, symbols, 1]);
        let x = self.enter.forward_silu(neighbours(hidden.detach())) * real;
        let x = self.mix.forward_silu(neighbours(x));
        self.leave.forward(x).reshape([rows, symbols])
    }
}
