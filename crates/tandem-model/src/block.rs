//! The block that encoder and decoder are built from: attention with rotary positions, then a
//! feed-forward part that sees three neighbouring positions, both steered by a condition vector.
//!
//! In: `[rows, positions, width]`, real lengths, a condition `[rows, condition]`. Out: the same
//! shape. What lies behind a row's end never reaches what lies before it. Next:
//! [`crate::text_encoder`] and [`crate::decoder`].

use crate::layers::{Init, Linear, neighbours};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData, activation};

/// Which positions are real, in the forms that blocks need.
#[derive(Clone, Debug)]
pub struct Extent {
    /// 1 for real positions, 0 behind the end: `[rows, positions, 1]`.
    pub real: Tensor<3>,
    /// 0 for real positions, very negative behind the end: `[rows, 1, 1, positions]`.
    bias: Tensor<4>,
    /// Cosines and sines of the rotary positions: `[1, 1, positions, head / 2]`.
    rotary: [Tensor<4>; 2],
}

impl Extent {
    /// From a mask of ones and zeros: `[rows, positions]`.
    pub fn new(mask: Tensor<2>, head_width: usize) -> Extent {
        let [rows, positions] = mask.dims();
        let bias = (mask.clone() - 1.0) * 1e9;
        let device = mask.device();
        let half = head_width / 2;
        let angles = (0..positions).flat_map(|at| {
            (0..half).map(move |pair| at as f32 / 10_000f32.powf(pair as f32 / half as f32))
        });
        let angles = TensorData::new(angles.collect::<Vec<f32>>(), [1, 1, positions, half]);
        let angles = Tensor::<4>::from_data(angles, &device);
        Extent {
            real: mask.reshape([rows, positions, 1]),
            bias: bias.reshape([rows, 1, 1, positions]),
            rotary: [angles.clone().cos(), angles.sin()],
        }
    }
}

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
    pub fn forward(&self, x: Tensor<3>, condition: Tensor<2>, extent: &Extent) -> Tensor<3> {
        let [rows, _, width] = x.dims();
        let steer = self.steer.forward(condition).reshape([rows, 1, 6 * width]);
        let part = |number: usize| steer.clone().narrow(2, number * width, width);
        let attended = self.attention(norm_film(x.clone(), part(0), part(1)), extent);
        let x = x + attended * part(2);
        let seen = norm_film(x.clone(), part(3), part(4)) * extent.real.clone();
        let hidden = activation::silu(self.widen.forward(neighbours(seen)));
        x + self.narrow.forward(hidden) * part(5)
    }

    fn attention(&self, x: Tensor<3>, extent: &Extent) -> Tensor<3> {
        let [rows, positions, width] = x.dims();
        let head = width / self.heads;
        let packed = self.attend.forward(x).reshape([rows, positions, 3 * self.heads, head]);
        let packed = packed.swap_dims(1, 2);
        let part = |number: usize| packed.clone().narrow(1, number * self.heads, self.heads);
        let query = rotate(part(0), extent) * (head as f32).powf(-0.5);
        let key = rotate(part(1), extent);
        let scores = query.matmul(key.swap_dims(2, 3)) + extent.bias.clone();
        let seen = activation::softmax(scores, 3).matmul(part(2));
        self.join.forward(seen.swap_dims(1, 2).reshape([rows, positions, width]))
    }
}

/// Layer norm, scaled and shifted by the condition.
pub fn norm_film(x: Tensor<3>, scale: Tensor<3>, shift: Tensor<3>) -> Tensor<3> {
    let (variance, mean) = x.clone().var_mean_bias(2);
    let normal = (x - mean) / (variance + 1e-5).sqrt();
    normal * (scale + 1.0) + shift
}

/// Turns each pair of numbers by an angle that grows with the position.
fn rotate(x: Tensor<4>, extent: &Extent) -> Tensor<4> {
    let half = x.dims()[3] / 2;
    let [cos, sin] = extent.rotary.clone();
    let (low, high) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
    let turned_low = low.clone() * cos.clone() - high.clone() * sin.clone();
    let turned_high = low * sin + high * cos;
    Tensor::cat(vec![turned_low, turned_high], 3)
}

/// Both gates start at one, so that the block works before its condition means anything.
fn open_gates(bias: Tensor<1>, width: usize) -> Tensor<1> {
    let values = (0..6 * width).map(|at| if matches!(at / width, 2 | 5) { 1.0f32 } else { 0.0 });
    let device = bias.device();
    Tensor::from_data(TensorData::new(values.collect(), [6 * width]), &device).require_grad()
}
