//! The text encoder: per symbol, a mean mel frame (the prior) and a hidden vector for the decoder.
//!
//! In: symbols `[rows, symbols]`, their lengths, a condition. Out: [`Encoded`]. Speech reaches it
//! only through the condition. Next: [`crate::alignment`].

use crate::network::block::Block;
use crate::network::layers::{Embedding, Init, Linear};
use crate::network::ops::{Film, Lengths};
use crate::network::size::VoiceConfig;
use burn::module::Module;
use burn::tensor::{FloatDType, Int, Tensor};

/// The output of the text encoder.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// One vector per symbol, in the precision of the layers: `[rows, symbols, text_width]`.
    pub hidden: Tensor<3>,
    /// The mean mel frame of each symbol, in normalised units: `[rows, symbols, bands]`.
    pub prior: Tensor<3>,
}

#[derive(Module, Debug)]
pub struct TextEncoder {
    embedding: Embedding,
    conv: Linear,
    blocks: Vec<Block>,
    film: Linear,
    prior: Linear,
}

impl TextEncoder {
    pub fn new(init: &mut Init, config: &VoiceConfig, condition: usize) -> TextEncoder {
        let width = config.text_width;
        let block = |init: &mut Init| Block::new(init, width, config.head_width, condition);
        TextEncoder {
            embedding: Embedding::new(init, config.symbols, width),
            conv: Linear::new(init, 3 * width, width),
            blocks: (0..config.text_blocks).map(|_| block(init)).collect(),
            film: Linear::zeros(init, condition, 2 * width),
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
        let x = self.conv.rounded(self.embedding.forward(symbols) * real.clone());
        let mut x = x.clone() + self.conv.conv_silu(x, None);
        for block in &self.blocks {
            x = block.forward(x, condition.clone(), lengths);
        }
        let film = Film::new(self.film.forward(condition), 2);
        let hidden = film.norm(x, 0) * self.conv.rounded(real);
        let prior = self.prior.forward(hidden.clone()).cast(FloatDType::F32);
        Encoded { hidden, prior }
    }
}
