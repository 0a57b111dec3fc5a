//! The duration predictor.
//!
//! In: the text encoder's vectors, detached: the duration loss does not train the text encoder.
//! Out: the natural logarithm of frames per symbol, `[rows, symbols]`. Next: [`crate::synthesis::mel`].

use crate::network::layers::{Init, Linear};
use crate::network::ops::Lengths;
use crate::network::size::VoiceConfig;
use burn::module::Module;
use burn::tensor::{FloatDType, Tensor};

/// Two convolutions over three symbols, and a projection.
#[derive(Module, Debug)]
pub struct DurationPredictor {
    conv1: Linear,
    conv2: Linear,
    output: Linear,
}

impl DurationPredictor {
    pub fn new(init: &mut Init, config: &VoiceConfig) -> DurationPredictor {
        let width = config.text_width;
        DurationPredictor {
            conv1: Linear::new(init, 3 * width, width),
            conv2: Linear::new(init, 3 * width, width),
            output: Linear::zeros(init, width, 1),
        }
    }

    /// Shapes: `[rows, symbols, text_width]` to `[rows, symbols]`.
    pub fn forward(&self, hidden: Tensor<3>, lengths: &Lengths) -> Tensor<2> {
        let [rows, symbols, _] = hidden.dims();
        // The text encoder's vectors are zero at padded symbols.
        let x = self.conv1.conv_silu(hidden.detach(), None);
        let x = self.conv2.conv_silu(x, Some(lengths));
        self.output.forward(x).cast(FloatDType::F32).reshape([rows, symbols])
    }
}
