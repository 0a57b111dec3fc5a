//! The operations of [`super`] from ordinary tensor operations.
//!
//! In and out: as there. Runs on every device with automatic differentiation. GPUs use it, and it is the reference for
//! the tests of the fused kernels.

use burn::tensor::{DType, Device, Tensor, TensorData, activation, module};
use std::cell::RefCell;

use super::{Lengths, parts};

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
    let [q, k, v] = parts::<3, 3>(qkv, 2).map(by_head);
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
    norm_film_forward(x, scale, shift).0
}

/// What [`norm_film_backward`] needs of [`norm_film_forward`].
#[derive(Clone, Debug)]
pub struct NormState {
    /// The normalised input.
    normal: Tensor<3>,
    /// Its standard deviation before.
    deviation: Tensor<3>,
    scale: Tensor<2>,
}

/// [`norm_film`], and the state for its backward pass.
pub fn norm_film_forward(
    x: Tensor<3>,
    scale: Tensor<2>,
    shift: Tensor<2>,
) -> (Tensor<3>, NormState) {
    let centred = x.clone() - x.mean_dim(2);
    let variance = centred.clone().powi_scalar(2).mean_dim(2);
    let deviation = (variance + NORM_EPSILON).sqrt();
    let normal = centred / deviation.clone();
    let state = NormState { normal: normal.clone(), deviation, scale: scale.clone() };
    (normal * (scale.unsqueeze_dim::<3>(1) + 1.0) + shift.unsqueeze_dim::<3>(1), state)
}

/// The gradients of the input, the scale and the shift.
pub fn norm_film_backward(
    state: NormState,
    gradient: Tensor<3>,
) -> (Tensor<3>, Tensor<2>, Tensor<2>) {
    let NormState { normal, deviation, scale } = state;
    let [films, width] = scale.dims();
    let by_film = |sums: Tensor<3>| -> Tensor<2> {
        let [rows, _, _] = sums.dims();
        // One film for all rows.
        if films < rows { sums.sum_dim(0).reshape([1, width]) } else { sums.reshape([rows, width]) }
    };
    let to_scale = by_film((gradient.clone() * normal.clone()).sum_dim(1));
    let to_shift = by_film(gradient.clone().sum_dim(1));
    let inner = gradient * (scale.unsqueeze_dim::<3>(1) + 1.0);
    let along = (inner.clone() * normal.clone()).mean_dim(2);
    let to_x = (inner.clone() - inner.mean_dim(2) - normal * along) / deviation;
    (to_x, to_scale, to_shift)
}

/// See [`super::linear()`].
pub fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    module::linear(x, weight, Some(bias))
}

/// See [`super::linear_silu`].
pub fn linear_silu(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    activation::silu(linear(x, weight, bias))
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

/// Tables that a thread keeps: one for each shape of its batches.
const KEPT_TABLES: usize = 64;

/// What a rotary table depends on.
#[derive(Clone, PartialEq)]
struct TableKey {
    positions: usize,
    head: usize,
    device: Device,
    dtype: DType,
}

type Tables = (Tensor<4>, Tensor<4>);

thread_local! {
    /// By thread: the library would wait for the thread that made a tensor before another one uses it.
    static TABLES: RefCell<Vec<(TableKey, Tables)>> = const { RefCell::new(Vec::new()) };
}

/// Cosine and sine of each position's angles, `[1, 1, positions, head / 2]`, of the type and device of `like`. Kept, so
/// that a step copies nothing to the device.
fn rotary_tables(positions: usize, head: usize, like: &Tensor<3>) -> Tables {
    let key = TableKey { positions, head, device: like.device(), dtype: like.dtype() };
    TABLES.with_borrow_mut(|kept| {
        if let Some((_, tables)) = kept.iter().find(|(known, _)| *known == key) {
            return tables.clone();
        }
        let (cos, sin) = rotary_values(positions, head);
        let table = |values: Vec<f32>| -> Tensor<4> {
            let values = TensorData::new(values, [1, 1, positions, head / 2]);
            Tensor::<4>::from_data(values, &key.device).cast(key.dtype)
        };
        let tables = (table(cos), table(sin));
        if kept.len() == KEPT_TABLES {
            kept.remove(0);
        }
        kept.push((key, tables.clone()));
        tables
    })
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
    let [low, high] = parts(x, 3);
    let turned_low = low.clone() * cos.clone() - high.clone() * sin.clone();
    let turned_high = low * sin.clone() + high * cos.clone();
    Tensor::cat(vec![turned_low, turned_high], 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::ops::check::noise;
    use burn::tensor::Device;

    #[test]
    fn the_backward_pass_by_hand_is_that_of_automatic_differentiation() {
        for films in [1, 3] {
            let device = Device::flex().autodiff();
            let made = |count: usize, seed| TensorData::new(noise(count, seed), [count]);
            let leaf =
                |count, seed| Tensor::<1>::from_data(made(count, seed), &device).require_grad();
            let (x, weight) = (leaf(3 * 5 * 8, 1), leaf(3 * 5 * 8, 2));
            let (scale, shift) = (leaf(films * 8, 3), leaf(films * 8, 4));
            let shaped = |film: &Tensor<1>| film.clone().reshape([films, 8]);
            let y = norm_film(x.clone().reshape([3, 5, 8]), shaped(&scale), shaped(&shift));
            let mut gradients = (y * weight.clone().reshape([3, 5, 8])).sum().backward();
            let inner = |tensor: &Tensor<1>| tensor.clone().inner();
            let film = |tensor: &Tensor<1>| inner(tensor).reshape([films, 8]);
            let (_, state) =
                norm_film_forward(inner(&x).reshape([3, 5, 8]), film(&scale), film(&shift));
            let (to_x, to_scale, to_shift) =
                norm_film_backward(state, inner(&weight).reshape([3, 5, 8]));
            let found =
                [to_x.reshape([120]), to_scale.reshape([films * 8]), to_shift.reshape([films * 8])];
            for (leaf, found) in [&x, &scale, &shift].into_iter().zip(found) {
                let truth = leaf.grad_remove(&mut gradients).expect("a gradient");
                let off = (truth - found).abs().max().into_scalar::<f32>();
                assert!(off < 1e-5, "{films} films: {off}");
            }
        }
    }
}
