//! The transformer block of the text encoder and the decoder: attention with rotary position
//! embeddings, then a feed-forward network over three neighbouring positions. Both are modulated by
//! a condition vector (FiLM).
//!
//! In: `[rows, positions, width]`, real lengths, a condition `[rows, condition]`. Out: the same
//! shape. Padding of a row never influences its real positions. Next:
//! [`crate::network::text_encoder`] and [`crate::network::decoder`].

use crate::network::layers::{Init, Linear};
use crate::network::ops::{self, Film, Lengths};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

/// A transformer block.
#[derive(Module, Debug)]
pub struct Block {
    /// Condition to scale, shift and gate of both parts.
    film: Linear,
    qkv: Linear,
    attention_out: Linear,
    ffn_in: Linear,
    ffn_out: Linear,
    heads: usize,
}

impl Block {
    pub fn new(init: &mut Init, width: usize, head_width: usize, condition: usize) -> Block {
        let hidden = 2 * width;
        let mut film = Linear::zeros(init, condition, 6 * width);
        film.bias = film.bias.map(|bias| open_gates(bias, width));
        Block {
            film,
            qkv: Linear::new(init, width, 3 * width),
            attention_out: Linear::new(init, width, width),
            ffn_in: Linear::new(init, 3 * width, hidden),
            ffn_out: Linear::new(init, hidden, width),
            heads: width / head_width,
        }
    }

    /// Shapes: `[rows, positions, width]`, `[rows, condition]`.
    pub fn forward(&self, x: Tensor<3>, condition: Tensor<2>, lengths: &Lengths) -> Tensor<3> {
        // Scale, shift and gate of the attention, then of the feed-forward network.
        let film = Film::new(self.film.forward(condition), 6);
        let normed = film.norm(x.clone(), 0);
        let attended = ops::attention(self.qkv.forward(normed), self.heads, lengths);
        let x = film.gated_add(x, 2, self.attention_out.forward(attended));
        let normed = film.norm(x.clone(), 3);
        let hidden = self.ffn_in.conv_silu(normed, Some(lengths));
        film.gated_add(x, 5, self.ffn_out.forward(hidden))
    }
}

/// Both gates start at one, so that a new block already passes its values on.
fn open_gates(bias: Tensor<1>, width: usize) -> Tensor<1> {
    let values = (0..6 * width).map(|at| if matches!(at / width, 2 | 5) { 1.0f32 } else { 0.0 });
    let device = bias.device();
    let values = Tensor::from_data(TensorData::new(values.collect(), [6 * width]), &device);
    // A voice for inference is on a device without autodiff.
    if bias.is_autodiff() { values.require_grad() } else { values }
}
