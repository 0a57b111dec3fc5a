//! The block that encoder and decoder are built from: attention with rotary positions, then a
//! feed-forward part that sees three neighbouring positions, both steered by a condition vector.
//!
//! In: `[rows, positions, width]`, real lengths, a condition `[rows, condition]`. Out: the same
//! shape. What lies behind a row's end never reaches what lies before it. Next:
//! [`crate::network::text_encoder`] and [`crate::network::decoder`].

use crate::network::layers::{Init, Linear, neighbours};
use crate::network::ops::{self, Lengths};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

/// A transformer block.
#[derive(Module, Debug)]
pub struct Block {
    /// Condition to shift, scale and gate of both parts.
    steer: Linear,
    attend: Linear,
    join: Linear,
    widen: Linear,
    narrow: Linear,
    heads: usize,
}

impl Block {
    /// A block of this width, steered by a condition of that width.
    pub fn new(init: &mut Init, width: usize, head_width: usize, condition: usize) -> Block {
        let hidden = 2 * width;
        let mut steer = Linear::silent(init, condition, 6 * width);
        steer.bias = steer.bias.map(|bias| open_gates(bias, width));
        Block {
            steer,
            attend: Linear::new(init, width, 3 * width),
            join: Linear::new(init, width, width),
            widen: Linear::new(init, 3 * width, hidden),
            narrow: Linear::new(init, hidden, width),
            heads: width / head_width,
        }
    }

    /// Shapes: `[rows, positions, width]`, `[rows, condition]`.
    pub fn forward(&self, x: Tensor<3>, condition: Tensor<2>, lengths: &Lengths) -> Tensor<3> {
        let [rows, positions, width] = x.dims();
        let steer = self.steer.forward(condition);
        let part = |number: usize| steer.clone().narrow(1, number * width, width);
        let seen = ops::norm_film(x.clone(), part(0), part(1));
        let attended = ops::attention(self.attend.forward(seen), self.heads, lengths);
        let x = ops::gated_add(x, part(2), self.join.forward(attended));
        let real = lengths.mask().reshape([rows, positions, 1]);
        let seen = ops::norm_film(x.clone(), part(3), part(4)) * real;
        let hidden = self.widen.forward_silu(neighbours(seen));
        ops::gated_add(x, part(5), self.narrow.forward(hidden))
    }
}

/// Both gates start at one, so that the block works before its condition means anything.
fn open_gates(bias: Tensor<1>, width: usize) -> Tensor<1> {
    let values = (0..6 * width).map(|at| if matches!(at / width, 2 | 5) { 1.0f32 } else { 0.0 });
    let device = bias.device();
    let values = Tensor::from_data(TensorData::new(values.collect(), [6 * width]), &device);
    // A voice that only speaks is on a device without gradients.
    if bias.is_autodiff() { values.require_grad() } else { values }
}
