//! The fused kernel behind [`super::conv_silu`]: a convolution over three positions as one matrix product, without a
//! copy of the neighbours.
//!
//! In and out: tensors of the backend `flex`. The input is copied once, with a zero position around each row of the
//! batch. In that buffer, three neighbours are consecutive values, so they are a row of a matrix whose rows overlap. The
//! product also gives a value for each zero position between two rows, which is never read. The backward has the same
//! form: the gradient in a buffer of that kind, times the weight with its three parts in reverse.

use std::sync::Arc;

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::ops::FloatTensorOps;
use burn::tensor::Shape;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::fused::{Recorded, rows, shape, tensor, values};
use super::lanes::{run, sigmoid};
use super::matmul::matmul;
use super::rows::Rows;

/// The real length of each row; without it, padding is zero already.
pub(super) type Real = Option<Arc<[usize]>>;

/// The operation without autodiff.
pub(super) fn forward(
    x: &FlexTensor,
    weight: &FlexTensor,
    bias: &FlexTensor,
    real: &Real,
) -> FlexTensor {
    let (rows, padded) = (rows(x), Padded::of(x, real));
    silu(rows, &padded.product(weight), bias)
}

/// The operation, with its backward registered.
pub(super) fn recorded<C: CheckpointStrategy>(
    x: Recorded,
    weight: Recorded,
    bias: Recorded,
    real: Real,
) -> Recorded {
    let nodes = [x.node(), weight.node(), bias.node()];
    let [x, weight, bias] = [x, weight, bias].map(|input| input.into_primitive().to_contiguous());
    let (rows, padded) = (rows(&x), Padded::of(&x, &real));
    let before = padded.product(&weight);
    let result = silu(rows, &before, &bias);
    match ConvSilu.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(Saved { padded, weight, bias, before, real }, result),
        OpsKind::UnTracked(prep) => prep.finish(result),
    }
}

/// What the backward needs.
#[derive(Clone, Debug)]
struct Saved {
    padded: Padded,
    weight: FlexTensor,
    bias: FlexTensor,
    /// The product, without the bias.
    before: FlexTensor,
    real: Real,
}

#[derive(Debug)]
struct ConvSilu;

impl Backward<Flex, 3> for ConvSilu {
    type State = Saved;

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let Saved { padded, weight, bias, before, real } = ops.state;
        let (slopes, bias_gradient) = silu_backward(&gradient, &before, &bias);
        let [to_x, to_weight, to_bias] = ops.parents;
        if let Some(node) = to_bias {
            grads.register::<Flex>(node.id, tensor(bias_gradient, shape(&bias)));
        }
        if let Some(node) = to_weight {
            let inputs = Flex::float_swap_dims(padded.neighbours(), 0, 1);
            grads.register::<Flex>(node.id, matmul(&inputs, &slopes.centres()));
        }
        if let Some(node) = to_x {
            let turned = Flex::float_swap_dims(reversed(&weight), 0, 1);
            let found = matmul(&slopes.neighbours(), &turned);
            grads.register::<Flex>(node.id, padded.compact(&found, &real));
        }
    }
}

/// The rows of a batch with a zero position before the first, and one after each.
#[derive(Clone, Debug)]
struct Padded {
    values: FlexTensor,
    rows: Rows,
}

impl Padded {
    /// Padding becomes zero.
    fn of(x: &FlexTensor, real: &Real) -> Padded {
        let (rows, source) = (rows(x), values(x));
        let mut padded = vec![0.0; Padded::positions(rows) * rows.width];
        Padded::each_row(&mut padded, rows, |row, places| {
            let real = real.as_ref().map_or(rows.positions, |real| real[row]) * rows.width;
            let from = row * rows.positions * rows.width;
            places[..real].copy_from_slice(&source[from..][..real]);
        });
        Padded::new(padded, rows)
    }

    fn new(values: Vec<f32>, rows: Rows) -> Padded {
        let shape = Shape::new([Padded::positions(rows), rows.width]);
        Padded { values: tensor(values, shape), rows }
    }

    /// Positions of the buffer.
    fn positions(rows: Rows) -> usize {
        rows.batch * (rows.positions + 1) + 1
    }

    /// Runs `fill(row, places)` for every row of the batch in parallel, and returns the results in order.
    fn each_row<T: Send>(
        padded: &mut [f32],
        rows: Rows,
        fill: impl Fn(usize, &mut [f32]) -> T + Sync,
    ) -> Vec<T> {
        let step = (rows.positions + 1) * rows.width;
        let places = padded.get_mut(rows.width..).unwrap_or_default();
        places
            .par_chunks_mut(step.max(1))
            .enumerate()
            .map(|(row, row_places)| fill(row, row_places))
            .collect()
    }

    /// Each position with the one before and the one after it, from the first real one on: overlapping rows.
    fn neighbours(&self) -> FlexTensor {
        self.view(3, 0)
    }

    /// The same positions alone.
    fn centres(&self) -> FlexTensor {
        self.view(1, self.rows.width)
    }

    fn view(&self, wide: usize, start: usize) -> FlexTensor {
        let width = self.rows.width;
        let count = Padded::positions(self.rows).saturating_sub(2);
        let shape = Shape::new([count, wide * width]);
        self.values.clone().with_layout(Layout::new(shape, vec![width as isize, 1], start))
    }

    /// The neighbours times a weight `[3 * width, to]`.
    fn product(&self, weight: &FlexTensor) -> FlexTensor {
        matmul(&self.neighbours(), weight)
    }

    /// The rows of a product as a tensor of the input's shape, zero where it has padding.
    fn compact(&self, product: &FlexTensor, real: &Real) -> FlexTensor {
        let (rows, source) = (self.rows, values(product));
        let mut result = vec![0.0; rows.elements()];
        rows.each(&mut result, |block, result| {
            let real = real.as_ref().map_or(rows.positions, |real| real[block.row]);
            let count = result.len().min(real.saturating_sub(block.position) * rows.width);
            let from = (block.row * (rows.positions + 1) + block.position) * rows.width;
            result[..count].copy_from_slice(&source[from..][..count]);
        });
        tensor(result, Shape::new([rows.batch, rows.positions, rows.width]))
    }
}

/// Adds the bias to a product over `rows`, then SiLU.
fn silu(rows: Rows, product: &FlexTensor, bias: &FlexTensor) -> FlexTensor {
    let (source, bias) = (values(product), values(bias));
    let wide = Rows { width: bias.len(), ..rows };
    let mut result = vec![0.0; wide.elements()];
    wide.each(&mut result, |block, result| {
        let from = (block.row * (rows.positions + 1) + block.position) * wide.width;
        run(BiasSilu { product: &source[from..][..result.len()], bias, result });
    });
    tensor(result, Shape::new([rows.batch, rows.positions, wide.width]))
}

/// The gradient of the product, and that of the bias.
fn silu_backward(
    gradient: &FlexTensor,
    product: &FlexTensor,
    bias: &FlexTensor,
) -> (Padded, Vec<f32>) {
    let (rows, gradient) = (rows(gradient), values(gradient));
    let (product, bias) = (values(product), values(bias));
    let mut slopes = vec![0.0; Padded::positions(rows) * rows.width];
    let parts = Padded::each_row(&mut slopes, rows, |row, places| {
        let mut sums = vec![0.0; rows.width];
        let count = rows.positions * rows.width;
        let from = row * (rows.positions + 1) * rows.width;
        run(BiasSiluBackward {
            product: &product[from..][..count],
            bias,
            gradient: &gradient[row * count..][..count],
            result: &mut places[..count],
            sums: &mut sums,
        });
        sums
    });
    let mut totals = vec![0.0; rows.width];
    for part in parts {
        totals.iter_mut().zip(part).for_each(|(total, part)| *total += part);
    }
    (Padded::new(slopes, rows), totals)
}

/// A weight `[3 * from, to]` as `[from, 3 * to]`, with its three parts side by side, the last one first.
fn reversed(weight: &FlexTensor) -> FlexTensor {
    let shape = shape(weight);
    let (from, to, weight) = (shape[0] / 3, shape[1], values(weight));
    let mut turned = Vec::with_capacity(weight.len());
    for input in 0..from {
        for part in [2, 1, 0] {
            turned.extend_from_slice(&weight[(part * from + input) * to..][..to]);
        }
    }
    tensor(turned, Shape::new([from, 3 * to]))
}

struct BiasSilu<'a> {
    product: &'a [f32],
    bias: &'a [f32],
    result: &'a mut [f32],
}

impl WithSimd for BiasSilu<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let width = self.bias.len();
        let bias = &self.bias[..width];
        let rows = self.product.chunks_exact(width).zip(self.result.chunks_exact_mut(width));
        for (product, result) in rows {
            for index in 0..width {
                let x = product[index] + bias[index];
                result[index] = x * sigmoid(x);
            }
        }
    }
}

struct BiasSiluBackward<'a> {
    product: &'a [f32],
    bias: &'a [f32],
    gradient: &'a [f32],
    result: &'a mut [f32],
    sums: &'a mut [f32],
}

impl WithSimd for BiasSiluBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let width = self.bias.len();
        let (bias, sums) = (&self.bias[..width], &mut self.sums[..width]);
        let inputs = self.product.chunks_exact(width).zip(self.gradient.chunks_exact(width));
        for ((product, gradient), result) in inputs.zip(self.result.chunks_exact_mut(width)) {
            for index in 0..width {
                let x = product[index] + bias[index];
                let open = sigmoid(x);
                let slope = open * x.mul_add(1.0 - open, 1.0);
                result[index] = gradient[index] * slope;
                sums[index] += result[index];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;

    use crate::network::ops::check::{
        agrees, device, floats, noisy, repeats, result_and_gradients,
    };
    use crate::network::ops::{Lengths, conv_silu, plain};

    type Conv = fn(Tensor<3>, Tensor<2>, Tensor<1>, Option<&Lengths>) -> Tensor<3>;

    /// `[positions, from, to]`, the number of rows, and their real lengths.
    fn flat(
        conv: Conv,
        [positions, from, to]: [usize; 3],
        rows: usize,
        real: Option<&[usize]>,
    ) -> impl Fn(&[Tensor<1>]) -> Tensor<1> + Sync {
        let real = real.map(<[usize]>::to_vec);
        move |inputs| {
            let lengths = real.as_ref().map(|real| Lengths::new(real, positions, &device()));
            let x = inputs[0].clone().reshape([rows, positions, from]);
            let weight = inputs[1].clone().reshape([3 * from, to]);
            conv(x, weight, inputs[2].clone(), lengths.as_ref()).flatten(0, 2)
        }
    }

    fn lengths([positions, from, to]: [usize; 3], rows: usize) -> [usize; 3] {
        [rows * positions * from, 3 * from * to, to]
    }

    #[track_caller]
    fn check(shape: [usize; 3], rows: usize, real: Option<&[usize]>) {
        let fused = flat(conv_silu, shape, rows, real);
        agrees(&lengths(shape, rows), &fused, &flat(plain::conv_silu, shape, rows, real));
    }

    #[test]
    fn it_agrees_with_the_plain_operation() {
        check([40, 24, 48], 3, None);
        check([40, 24, 48], 3, Some(&[40, 33, 12]));
    }

    #[test]
    fn odd_sizes_agree() {
        check([1, 1, 1], 1, None);
        check([1, 3, 2], 4, Some(&[1, 0, 1, 0]));
        check([5, 7, 3], 2, Some(&[0, 5]));
        check([33, 5, 19], 2, Some(&[1, 32]));
    }

    #[test]
    fn inputs_that_are_views_agree() {
        let whole = |conv: Conv| {
            move |inputs: &[Tensor<1>]| {
                let x = inputs[0].clone().reshape([2, 4, 10]).narrow(2, 3, 2);
                let weight = inputs[1].clone().reshape([5, 6]).transpose();
                conv(x, weight, inputs[2].clone(), None).flatten(0, 2)
            }
        };
        agrees(&[80, 30, 5], &whole(conv_silu), &whole(plain::conv_silu));
    }

    #[test]
    fn padded_positions_are_never_read() {
        let clean = noisy(2 * 6 * 4, 1).reshape([2, 6, 4]);
        let real = [4, 6];
        let padding = Lengths::new(&real, 6, &device()).mask().reshape([2, 6, 1]).equal_elem(0.0);
        let spoilt = clean.clone().mask_fill(padding.expand([2, 6, 4]), f32::NAN);
        let run = |x: Tensor<3>| {
            let inputs = [x.flatten(0, 2), noisy(12 * 5, 2), noisy(5, 3)];
            result_and_gradients(&inputs, &flat(conv_silu, [6, 4, 5], 2, Some(&real)))
        };
        assert_eq!(run(clean), run(spoilt));
    }

    #[test]
    fn an_empty_batch_gives_an_empty_result() {
        let x = Tensor::<3>::zeros([0, 4, 2], &device());
        let weight = noisy(6 * 3, 1).reshape([6, 3]);
        assert!(floats(conv_silu(x, weight, noisy(3, 2), None)).is_empty());
    }

    #[test]
    fn it_is_the_same_on_any_number_of_threads() {
        let shape = [150, 64, 128];
        let operation = flat(conv_silu, shape, 4, Some(&[150, 150, 99, 150]));
        repeats(&lengths(shape, 4), &operation);
    }
}
