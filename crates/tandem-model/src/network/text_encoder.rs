//! Text to what it should sound like: per symbol, a mean mel frame and a vector that the decoder
//! reads.
//!
//! In: symbols `[rows, symbols]`, their lengths, a condition. Out: [`Encoded`]. Sees no sound but
//! through the condition. Next: [`crate::alignment`].

use crate::network::block::Block;
use crate::network::layers::{Embedding, Init, Linear, neighbours};
use crate::network::ops::{self, Lengths};
use crate::network::size::VoiceConfig;
use burn::module::Module;
use burn::tensor::{Int, Tensor};

/// What a text says about sound.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// One vector per symbol: `[rows, symbols, text_width]`.
    pub hidden: Tensor<3>,
    /// The mean mel frame of each symbol, in normalised units: `[rows, symbols, bands]`.
    pub prior: Tensor<3>,
}

/// Symbols to [`Encoded`].
#[derive(Module, Debug)]
pub struct TextEncoder {
    symbols: Embedding,
    spread: Linear,
    blocks: Vec<Block>,
    steer: Linear,
    prior: Linear,
}

impl TextEncoder {
    /// With the widths of this configuration, steered by a condition of that width.
    pub fn new(init: &mut Init, config: &VoiceConfig, condition: usize) -> TextEncoder {
        let width = config.text_width;
        let block = |init: &mut Init| Block::new(init, width, config.head_width, condition);
        TextEncoder {
            symbols: Embedding::new(init, config.symbols, width),
            spread: Linear::new(init, 3 * width, width),
            blocks: (0..config.text_blocks).map(|_| block(init)).collect(),
            steer: Linear::silent(init, condition, 2 * width),
            prior: Linear::new(init, width, config.bands),
        }
    }

    /// Shapes: `[rows, symbols]`, `[rows, condition]`.
    pub fn forward(
        &self,
        symbols: Tensor<2, Int>,
        condition: Tensor<2>,
        lengths: &Lengths,
    ) -> Encoded {
        let [rows, count] = symbols.dims();
        let real = lengths.mask().reshape([rows, count, 1]);
        let x = self.symbols.forward(symbols) * real.clone();
        let mut x = x.clone() + self.spread.forward_silu(neighbours(x));
        for block in &self.blocks {
            x = block.forward(x, condition.clone(), lengths);
        }
        let width = x.dims()[2];
        let steer = self.steer.forward(condition);
        let (scale, shift) = (steer.clone().narrow(1, 0, width), steer.narrow(1, width, width));
        let hidden = ops::norm_film(x, scale, shift) * real;
        let prior = self.prior.forward(hidden.clone());
        Encoded { hidden, prior }
    }
}
