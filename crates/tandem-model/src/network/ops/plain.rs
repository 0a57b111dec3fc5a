//! The operations of [`super`] from ordinary tensor operations.
//!
//! In and out: as there. Runs on every device and in every precision, with automatic differentiation. It is the reference
//! for the tests of the fused kernels, and GPUs use it where they have no kernel.

use burn::tensor::{Tensor, TensorData, activation, module};

use super::Lengths;

/// Added to the variance in [`norm_film`].
pub const NORM_EPSILON: f32 = 1e-5;

/// Longest wavelength of the rotary positions, in positions over two pi.
pub const ROTARY_BASE: f32 = 10_000.0;

/// See [`super::attention()`].
pub fn attention(qkv: Tensor<3>, heads: usize, lengths: &Lengths) -> Tensor<3> {
    let [batch, positions, packed] = qkv.dims();
    let width = packed / 3;
    let head = width / heads;
    let (cos, sin) = rotary_tables(positions, head, &qkv);
    let real = lengths.mask().cast(qkv.dtype());
    let by_head = |part: Tensor<3>| -> Tensor<4> {
        part.reshape([batch, positions, heads, head]).swap_dims(1, 2)
    };
    let [q, k, v] = [0, 1, 2].map(|part| by_head(qkv.clone().narrow(2, part * width, width)));
    let (q, k) = (rotate(q, &cos, &sin), rotate(k, &cos, &sin));
    let padded_key = real.clone().equal_elem(0.0).reshape([batch, 1, 1, positions]);
    // Finite, so that a row without a real key does not give NaN; the mask below clears it.
    let scores = (q.matmul(k.transpose()) * (head as f32).powf(-0.5)).mask_fill(padded_key, -1e30);
    let mixed = activation::softmax(scores, 3).matmul(v);
    let mixed = mixed.swap_dims(1, 2).reshape([batch, positions, width]);
    mixed * real.reshape([batch, positions, 1])
}

/// See [`super::norm_film`].
pub fn norm_film(x: Tensor<3>, scale: Tensor<2>, shift: Tensor<2>) -> Tensor<3> {
    let centred = x.clone() - x.mean_dim(2);
    let variance = centred.clone().powi_scalar(2).mean_dim(2);
    let normal = centred / (variance + NORM_EPSILON).sqrt();
    normal * (scale.unsqueeze_dim::<3>(1) + 1.0) + shift.unsqueeze_dim::<3>(1)
}

/// See [`super::linear()`]. With 16 bits the bias is added in 32, in the same pass as both roundings.
pub fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    let dtype = x.dtype();
    if dtype == bias.dtype() {
        return module::linear(x, weight, Some(bias));
    }
    (module::linear(x, weight, None).cast(bias.dtype()) + bias.unsqueeze()).cast(dtype)
}

/// See [`super::linear_silu`].
pub fn linear_silu(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    let dtype = x.dtype();
    if dtype == bias.dtype() {
        return activation::silu(linear(x, weight, bias));
    }
    let product = module::linear(x, weight, None).cast(bias.dtype());
    activation::silu(product + bias.unsqueeze()).cast(dtype)
}

/// See [`super::conv_silu`].
pub fn conv_silu(
    x: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    lengths: Option<&Lengths>,
) -> Tensor<3> {
    linear_silu(with_neighbours(x, lengths), weight, bias)
}

/// Each position joined with its two neighbours: `[rows, positions, width]` to `[rows, positions, 3 * width]`. Padded
/// positions of `lengths` count as zero.
pub fn with_neighbours(x: Tensor<3>, lengths: Option<&Lengths>) -> Tensor<3> {
    let [rows, positions, width] = x.dims();
    let x = match lengths {
        Some(lengths) => x.clone() * lengths.mask().cast(x.dtype()).reshape([rows, positions, 1]),
        None => x,
    };
    let edge = Tensor::<3>::zeros([rows, 1, width], &x.device()).cast(x.dtype());
    let wide = Tensor::cat(vec![edge.clone(), x.clone(), edge], 1);
    let (before, after) = (wide.clone().narrow(1, 0, positions), wide.narrow(1, 2, positions));
    Tensor::cat(vec![before, x, after], 2)
}

/// See [`super::gated_add`].
pub fn gated_add(x: Tensor<3>, gate: Tensor<2>, y: Tensor<3>) -> Tensor<3> {
    x + y * gate.unsqueeze_dim::<3>(1)
}

/// See [`super::squared_error`].
pub fn squared_error(guess: Tensor<3>, truth: Tensor<3>, lengths: &Lengths) -> Tensor<1> {
    let [batch, positions, bands] = truth.dims();
    let real = lengths.mask().cast(truth.dtype()).reshape([batch, positions, 1]);
    let elements = (lengths.total() * bands).max(1);
    ((guess - truth) * real).powi_scalar(2).sum() / elements as f32
}

/// Cosine and sine of each position's angles, `[1, 1, positions, head / 2]`, of the type and device of `like`.
fn rotary_tables(positions: usize, head: usize, like: &Tensor<3>) -> (Tensor<4>, Tensor<4>) {
    let (cos, sin) = rotary_values(positions, head);
    let table = |values: Vec<f32>| -> Tensor<4> {
        let values = TensorData::new(values, [1, 1, positions, head / 2]);
        Tensor::<4>::from_data(values, &like.device()).cast(like.dtype())
    };
    (table(cos), table(sin))
}

/// Cosine and sine of each position's angles, position by position.
pub(super) fn rotary_values(positions: usize, head: usize) -> (Vec<f32>, Vec<f32>) {
    let half = head / 2;
    let speed = |pair: usize| f64::from(ROTARY_BASE).powf(-(pair as f64) / half as f64);
    let angles = (0..positions * half).map(|index| (index / half) as f64 * speed(index % half));
    angles.map(|angle| (angle.cos() as f32, angle.sin() as f32)).unzip()
}

/// Rotates each pair `(i, i + head / 2)` by the angle of its position.
fn rotate(x: Tensor<4>, cos: &Tensor<4>, sin: &Tensor<4>) -> Tensor<4> {
    let half = x.dims()[3] / 2;
    let [low, high] = [0, half].map(|from| x.clone().narrow(3, from, half));
    let turned_low = low.clone() * cos.clone() - high.clone() * sin.clone();
    let turned_high = low * sin.clone() + high * cos.clone();
    Tensor::cat(vec![turned_low, turned_high], 3)
}
