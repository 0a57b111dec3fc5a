//! Text to what it should sound like: per symbol, a mean mel frame and a vector that the decoder
//! reads.
//!
//! In: symbols `[rows, symbols]`, their extent, a condition. Out: [`Encoded`]. Sees no sound but
//! through the condition. Next: [`crate::alignment`].

use crate::block::{Block, Extent, norm_film};
use crate::layers::{Embedding, Init, Linear, neighbours};
use crate::size::VoiceConfig;
use burn::module::Module;
use burn::tensor::{Int, Tensor, activation};

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
        extent: &Extent,
    ) -> Encoded {
        let x = self.symbols.forward(symbols) * extent.real.clone();
        let mut x = x.clone() + activation::silu(self.spread.forward(neighbours(x)));
        for block in &self.blocks {
            x = block.forward(x, condition.clone(), extent);
        }
        let [rows, _, width] = x.dims();
        let steer = self.steer.forward(condition).reshape([rows, 1, 2 * width]);
        let (scale, shift) = (steer.clone().narrow(2, 0, width), steer.narrow(2, width, width));
        let hidden = norm_film(x, scale, shift) * extent.real.clone();
        let prior = self.prior.forward(hidden.clone());
        Encoded { hidden, prior }
    }
}
