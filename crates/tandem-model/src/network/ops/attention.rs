//! The fused kernel behind [`super::attention()`]: one task per row of the batch and head.
//!
//! In: packed queries, keys and values as slices. Out: the mixed values, and the gradient of the packed input. The values
//! of a head are packed once, so that all products are small and in the cache. Scores exist for [`BLOCK`] queries at a
//! time; the backward computes them again from the saved normaliser of each query.

mod head; // one head, packed
mod rotary; // position embeddings

use std::sync::Arc;

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::tensor::Shape;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::fused::{Recorded, shape, tensor, values};
use super::lanes::{exp, largest, padded, run, sum_of, sum_pairs};
use super::product::{Into, Left, Matrix, product};
use head::HeadInput;
use rotary::Rotary;

/// Queries whose scores exist at the same time.
const BLOCK: usize = 64;

/// Rows that one task copies between heads and the tensor.
const ROWS_PER_TASK: usize = 32;

/// The shape of an attention and the real lengths of its rows.
#[derive(Clone, Debug)]
struct Geometry {
    positions: usize,
    heads: usize,
    head: usize,
    lengths: Arc<[usize]>,
}

impl Geometry {
    fn of(qkv: &FlexTensor, heads: usize, lengths: Arc<[usize]>) -> Geometry {
        let shape = shape(qkv);
        Geometry { positions: shape[1], heads, head: shape[2] / 3 / heads, lengths }
    }

    /// The shape of the mixed values.
    fn shape(&self) -> Shape {
        Shape::new([self.lengths.len(), self.positions, self.width()])
    }

    fn width(&self) -> usize {
        self.heads * self.head
    }

    /// Runs `task(row, head)` for every row of the batch and head, in parallel, in order.
    fn each_head<T: Send>(&self, task: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
        let tasks = self.lengths.len() * self.heads;
        (0..tasks)
            .into_par_iter()
            .map(|index| task(index / self.heads, index % self.heads))
            .collect()
    }

    /// Runs `fill(row, position, place)` for every real position, in parallel; `place` is its part of `values`.
    fn each_position(&self, values: &mut [f32], fill: impl Fn(usize, usize, &mut [f32]) + Sync) {
        let total = self.lengths.len() * self.positions;
        if total == 0 {
            return;
        }
        let width = values.len() / total;
        values.par_chunks_mut(width * ROWS_PER_TASK).enumerate().for_each(|(task, values)| {
            for (offset, place) in values.chunks_exact_mut(width).enumerate() {
                let index = task * ROWS_PER_TASK + offset;
                let (row, position) = (index / self.positions, index % self.positions);
                if position < self.lengths[row] {
                    fill(row, position, place);
                }
            }
        });
    }
}

/// The operation without autodiff.
pub(super) fn forward(qkv: &FlexTensor, heads: usize, lengths: Arc<[usize]>) -> FlexTensor {
    let geometry = Geometry::of(qkv, heads, lengths);
    tensor(mix(values(qkv), &geometry).0, geometry.shape())
}

/// The operation, with its backward registered.
pub(super) fn recorded<C: CheckpointStrategy>(
    qkv: Recorded,
    heads: usize,
    lengths: Arc<[usize]>,
) -> Recorded {
    let node = qkv.node();
    let qkv = qkv.into_primitive().to_contiguous();
    let geometry = Geometry::of(&qkv, heads, lengths);
    let (mixed, normalisers) = mix(values(&qkv), &geometry);
    let mixed = tensor(mixed, geometry.shape());
    match Attention.prepare::<C>([node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((qkv, mixed.clone(), normalisers, geometry), mixed),
        OpsKind::UnTracked(prep) => prep.finish(mixed),
    }
}

#[derive(Debug)]
struct Attention;

impl Backward<Flex, 1> for Attention {
    type State = (FlexTensor, FlexTensor, Normalisers, Geometry);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let (qkv, mixed, normalisers, geometry) = ops.state;
        let [Some(node)] = ops.parents else { return };
        let [q, m, g] = [&qkv, &mixed, &gradient].map(values);
        let gradient = unmix(q, m, g, &normalisers, &geometry);
        grads.register::<Flex>(node.id, tensor(gradient, shape(&qkv)));
    }
}

/// What the backward needs from the forward, in addition to its input.
#[derive(Clone, Debug)]
struct Normalisers(Arc<Vec<Vec<f32>>>);

/// The mixed values `[batch, positions, width]`.
fn mix(qkv: &[f32], geometry: &Geometry) -> (Vec<f32>, Normalisers) {
    let rotary = Rotary::of(geometry.positions, geometry.head);
    let heads = geometry
        .each_head(|row, head| run(HeadForward(&HeadInput::of(qkv, geometry, &rotary, row, head))));
    let mut mixed = vec![0.0; geometry.lengths.len() * geometry.positions * geometry.width()];
    geometry.each_position(&mut mixed, |row, position, place| {
        let heads = &heads[row * geometry.heads..];
        for (place, head) in place.chunks_exact_mut(geometry.head).zip(heads) {
            let step = padded(geometry.head);
            place.copy_from_slice(&head.mixed[position * step..][..geometry.head]);
        }
    });
    let normalisers = heads.into_iter().map(|head| head.normalisers).collect();
    (mixed, Normalisers(Arc::new(normalisers)))
}

/// The gradient of `qkv`, from that of the mixed values.
fn unmix(
    qkv: &[f32],
    mixed: &[f32],
    gradient: &[f32],
    normalisers: &Normalisers,
    geometry: &Geometry,
) -> Vec<f32> {
    let rotary = Rotary::of(geometry.positions, geometry.head);
    let heads = geometry.each_head(|row, head| {
        let from = row * geometry.positions * geometry.width() + head * geometry.head;
        run(HeadBackward {
            input: &HeadInput::of(qkv, geometry, &rotary, row, head),
            mixed: mixed.get(from..).unwrap_or_default(),
            gradient: gradient.get(from..).unwrap_or_default(),
            normalisers: &normalisers.0[row * geometry.heads + head],
        })
    });
    let (width, step) = (geometry.width(), padded(geometry.head));
    let mut result = vec![0.0; qkv.len()];
    geometry.each_position(&mut result, |row, position, place| {
        for (index, head) in heads[row * geometry.heads..][..geometry.heads].iter().enumerate() {
            for (part, source) in [&head.q, &head.k, &head.v].into_iter().enumerate() {
                let place = &mut place[part * width + index * geometry.head..][..geometry.head];
                place.copy_from_slice(&source[position * step..][..geometry.head]);
            }
        }
    });
    result
}

struct HeadForward<'a>(&'a HeadInput<'a>);

struct MixedHead {
    /// Rows of `padded(head)`.
    mixed: Vec<f32>,
    /// Logarithm of the sum of a query's exponentials.
    normalisers: Vec<f32>,
}

impl WithSimd for HeadForward<'_> {
    type Output = MixedHead;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> MixedHead {
        let input = self.0;
        let (length, step, keys) = (input.length, padded(input.head), padded(input.length));
        let queries = input.turned(0, input.scale());
        let key_columns = input.transposed(&input.turned(1, 1.0));
        let values = input.values();
        let mut scores = vec![0.0; BLOCK.min(keys) * keys];
        let mut mixed = vec![0.0; keys * step];
        let mut normalisers = vec![0.0; length];
        for (first, count) in input.blocks() {
            let rows = count.next_multiple_of(8);
            let queries = Matrix { values: &queries[first * step..], step };
            let key_columns = Matrix { values: &key_columns, step: keys };
            let queries = Left::Rows(queries);
            let to = (&mut scores[..], keys);
            product(simd, [rows, input.head, keys], queries, key_columns, to, Into::Replace);
            let mut factors = [0.0; BLOCK];
            for query in 0..count {
                let (log, factor) = exponentials(&mut scores[query * keys..][..length]);
                (normalisers[first + query], factors[query]) = (log, factor);
            }
            let weights = Left::Rows(Matrix { values: &scores, step: keys });
            let values = Matrix { values: &values, step };
            let mixed = &mut mixed[first * step..];
            let to = (&mut *mixed, step);
            product(simd, [rows, length, step], weights, values, to, Into::Replace);
            for (mixed, factor) in mixed.chunks_exact_mut(step).zip(&factors[..count]) {
                mixed.iter_mut().for_each(|mixed| *mixed *= factor);
            }
        }
        MixedHead { mixed, normalisers }
    }
}

/// Replaces scores by their exponentials relative to the largest. Returns the logarithm of the sum of the true
/// exponentials, and the factor that normalises the relative ones.
#[inline(always)]
fn exponentials(scores: &mut [f32]) -> (f32, f32) {
    let most = largest(scores);
    scores.iter_mut().for_each(|score| *score = exp(*score - most));
    let sum = sum_of(scores, |score| score);
    (most + sum.ln(), sum.recip())
}

struct HeadBackward<'a> {
    input: &'a HeadInput<'a>,
    /// From this head's first element on, rows `width` apart; `gradient` the same.
    mixed: &'a [f32],
    gradient: &'a [f32],
    normalisers: &'a [f32],
}

/// Gradients as rows of `padded(head)`.
struct HeadGradients {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

impl WithSimd for HeadBackward<'_> {
    type Output = HeadGradients;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> HeadGradients {
        let input = self.input;
        let (head, length, step, keys) =
            (input.head, input.length, padded(input.head), padded(input.length));
        let queries = input.turned(0, input.scale());
        let key_rows = input.turned(1, 1.0);
        let key_columns = input.transposed(&key_rows);
        let value_columns = input.transposed(&input.values());
        let gradient = input.packed(|position| &self.gradient[position * input.width..][..head]);
        let mut weights = vec![0.0; BLOCK.min(keys) * keys];
        let mut slopes = weights.clone();
        let zeros = vec![0.0; keys * step];
        let mut result = HeadGradients { q: zeros.clone(), k: zeros.clone(), v: zeros };
        for (first, count) in input.blocks() {
            let rows = count.next_multiple_of(8);
            let queries = Matrix { values: &queries[first * step..], step };
            let gradient = Matrix { values: &gradient[first * step..], step };
            let columns = |values| Matrix { values, step: keys };
            let sizes = [rows, head, keys];
            let to = (&mut weights[..], keys);
            let left = Left::Rows(queries);
            product(simd, sizes, left, columns(&key_columns), to, Into::Replace);
            let to = (&mut slopes[..], keys);
            let left = Left::Rows(gradient);
            product(simd, sizes, left, columns(&value_columns), to, Into::Replace);
            for query in 0..count {
                let position = first + query;
                let mixed = &self.mixed[position * input.width..][..head];
                let upward = &gradient.values[query * step..][..head];
                let mean = sum_pairs(mixed, upward, |mixed, upward| mixed * upward);
                let weights = &mut weights[query * keys..][..keys];
                let slopes = &mut slopes[query * keys..][..keys];
                for (weight, slope) in weights.iter_mut().zip(slopes) {
                    *weight = exp(*weight - self.normalisers[position]);
                    *slope = *weight * (*slope - mean);
                }
            }
            let sizes = [keys, count, step];
            let key_rows = Matrix { values: &key_rows, step };
            let to = (&mut result.q[first * step..], step);
            let left = Left::Rows(columns(&slopes));
            product(simd, [rows, length, step], left, key_rows, to, Into::Replace);
            let left = Left::Columns(columns(&slopes));
            product(simd, sizes, left, queries, (&mut result.k[..], step), Into::Add);
            let left = Left::Columns(columns(&weights));
            product(simd, sizes, left, gradient, (&mut result.v[..], step), Into::Add);
        }
        input.turn_back(&mut result.q, input.scale());
        input.turn_back(&mut result.k, 1.0);
        result
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;

    use crate::network::ops::check::{
        agrees, device, floats, noisy, repeats, result_and_gradients,
    };
    use crate::network::ops::{Lengths, attention, plain};

    type Attention = fn(Tensor<3>, usize, &Lengths) -> Tensor<3>;

    /// `[positions, heads, head]` and the real lengths.
    fn flat(
        attention: Attention,
        [positions, heads, head]: [usize; 3],
        real: &[usize],
    ) -> impl Fn(&[Tensor<1>]) -> Tensor<1> + Sync {
        let real = real.to_vec();
        move |inputs| {
            let lengths = Lengths::new(&real, positions, &device());
            let qkv = inputs[0].clone().reshape([real.len(), positions, 3 * heads * head]);
            attention(qkv, heads, &lengths).flatten(0, 2)
        }
    }

    #[track_caller]
    fn check(shape: [usize; 3], real: &[usize]) {
        let length = real.len() * shape.iter().product::<usize>() * 3;
        let fused = flat(attention, shape, real);
        agrees(&[length], &fused, &flat(plain::attention, shape, real));
    }

    #[test]
    fn it_agrees_with_the_plain_operation() {
        check([20, 2, 32], &[20, 20]);
    }

    #[test]
    fn rows_of_all_lengths_agree() {
        check([17, 3, 16], &[17, 1, 0, 9]);
    }

    #[test]
    fn more_queries_than_a_block_agree() {
        check([150, 1, 32], &[150, 131]);
    }

    #[test]
    fn odd_sizes_agree() {
        check([5, 1, 2], &[5, 3]);
        check([1, 2, 6], &[1]);
        check([67, 1, 40], &[65]);
    }

    #[test]
    fn rows_without_a_real_position_give_zeros() {
        let (result, gradients) =
            result_and_gradients(&[noisy(3 * 4 * 24, 1)], &flat(attention, [4, 2, 4], &[0, 0, 0]));
        assert!(result.iter().chain(&gradients[0]).all(|&value| value == 0.0));
    }

    #[test]
    fn padded_positions_are_never_read() {
        let shape = [6, 1, 8];
        let clean = noisy(2 * 6 * 24, 1).reshape([2, 6, 24]);
        let padding = Lengths::new(&[4, 6], 6, &device()).mask().reshape([2, 6, 1]).equal_elem(0.0);
        let spoilt = clean.clone().mask_fill(padding.expand([2, 6, 24]), f32::NAN);
        let run = |qkv: Tensor<3>| {
            result_and_gradients(&[qkv.flatten(0, 2)], &flat(attention, shape, &[4, 6]))
        };
        assert_eq!(run(clean), run(spoilt));
    }

    #[test]
    fn it_is_the_same_on_any_number_of_threads() {
        repeats(&[3 * 90 * 96], &flat(attention, [90, 2, 16], &[90, 61, 7]));
    }

    #[test]
    fn it_runs_without_autodiff_too() {
        let qkv = noisy(2 * 9 * 48, 3).reshape([2, 9, 48]);
        let lengths = Lengths::new(&[9, 4], 9, &device());
        let recorded = attention(qkv.clone(), 2, &lengths);
        assert_eq!(floats(recorded), floats(attention(qkv.inner(), 2, &lengths)));
    }
}
