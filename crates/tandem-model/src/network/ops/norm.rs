//! The fused kernel behind [`super::norm_film`]: one pass over each position, forward and backward.
//!
//! In: slices, and tensors of the backend `flex`. Out: the same. The forward saves its input and two values per
//! position; the backward computes the rest again.

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use pulp::{Simd, WithSimd};

use super::fused::{Recorded, by_row, rows, shape, tensor, values};
use super::lanes::{run, sum_of, sum_pairs};
use super::plain::NORM_EPSILON;

/// The operation without autodiff.
pub(super) fn forward(x: &FlexTensor, scale: &FlexTensor, shift: &FlexTensor) -> FlexTensor {
    let rows = rows(x);
    let mut result = vec![0.0; rows.elements()];
    rows.each(&mut result, |block, result| {
        let [scale, shift] = [scale, shift].map(|film| by_row(values(film), rows, block));
        run(Forward { x: block.of(values(x)), scale, shift, result });
    });
    tensor(result, shape(x))
}

/// The operation, with its backward registered.
pub(super) fn recorded<C: CheckpointStrategy>(
    x: Recorded,
    scale: Recorded,
    shift: Recorded,
) -> Recorded {
    let nodes = [x.node(), scale.node(), shift.node()];
    let [x, scale, shift] = [x, scale, shift].map(|input| input.into_primitive().to_contiguous());
    let result = forward(&x, &scale, &shift);
    match NormFilm.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((x, scale), result),
        OpsKind::UnTracked(prep) => prep.finish(result),
    }
}

#[derive(Debug)]
struct NormFilm;

impl Backward<Flex, 3> for NormFilm {
    type State = (FlexTensor, FlexTensor);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let (x, scale) = ops.state;
        let rows = rows(&x);
        let film_shape = shape(&scale);
        let mut x_gradient = vec![0.0; rows.elements()];
        let parts = rows.each(&mut x_gradient, |block, result| {
            let mut sums = vec![0.0; 2 * rows.width];
            let (scale_sums, shift_sums) = sums.split_at_mut(rows.width);
            run(BackwardBlock {
                x: block.of(values(&x)),
                scale: by_row(values(&scale), rows, block),
                gradient: block.of(values(&gradient)),
                result,
                scale_sums,
                shift_sums,
            });
            sums
        });
        let sums = rows.totals(film_shape[0], 2 * rows.width, &parts);
        let [to_x, to_scale, to_shift] = ops.parents;
        if let Some(node) = to_x {
            grads.register::<Flex>(node.id, tensor(x_gradient, shape(&x)));
        }
        for (node, part) in [(to_scale, 0), (to_shift, 1)] {
            if let Some(node) = node {
                let part = sums.chunks(rows.width.max(1)).skip(part).step_by(2);
                let part = part.flatten().copied().collect();
                grads.register::<Flex>(node.id, tensor(part, film_shape.clone()));
            }
        }
    }
}

struct Forward<'a> {
    x: &'a [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    result: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let width = self.scale.len();
        let positions = self.x.chunks_exact(width).zip(self.result.chunks_exact_mut(width));
        for (x, result) in positions {
            let (mean, steepness) = moments(x);
            let (scale, shift) = (&self.scale[..width], &self.shift[..width]);
            for index in 0..width {
                let normal = (x[index] - mean) * steepness;
                result[index] = normal.mul_add(1.0 + scale[index], shift[index]);
            }
        }
    }
}

/// The mean, and one over the standard deviation.
#[inline(always)]
fn moments(x: &[f32]) -> (f32, f32) {
    let share = (x.len() as f32).recip();
    let mean = sum_of(x, |x| x) * share;
    let variance = sum_of(x, |x| (x - mean) * (x - mean)) * share;
    (mean, (variance + NORM_EPSILON).sqrt().recip())
}

struct BackwardBlock<'a> {
    x: &'a [f32],
    scale: &'a [f32],
    gradient: &'a [f32],
    result: &'a mut [f32],
    scale_sums: &'a mut [f32],
    shift_sums: &'a mut [f32],
}

impl WithSimd for BackwardBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let width = self.scale.len();
        let share = (width as f32).recip();
        let scale = &self.scale[..width];
        let (scale_sums, shift_sums) =
            (&mut self.scale_sums[..width], &mut self.shift_sums[..width]);
        let inputs = self.x.chunks_exact(width).zip(self.gradient.chunks_exact(width));
        for ((x, gradient), result) in inputs.zip(self.result.chunks_exact_mut(width)) {
            let (mean, steepness) = moments(x);
            // `result` first contains the gradient of the normalised values.
            for index in 0..width {
                let normal = (x[index] - mean) * steepness;
                scale_sums[index] = gradient[index].mul_add(normal, scale_sums[index]);
                shift_sums[index] += gradient[index];
                result[index] = gradient[index] * (1.0 + scale[index]);
            }
            let level = sum_of(result, |slope| slope) * share;
            let tilt = sum_pairs(result, x, |slope, x| slope * ((x - mean) * steepness)) * share;
            for index in 0..width {
                let normal = (x[index] - mean) * steepness;
                result[index] = steepness * (result[index] - level - normal * tilt);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;

    use crate::network::ops::check::{agrees, floats, noisy, repeats};
    use crate::network::ops::{norm_film, plain};

    type Norm = fn(Tensor<3>, Tensor<2>, Tensor<2>) -> Tensor<3>;

    fn flat(
        norm: Norm,
        shape: [usize; 3],
        films: usize,
    ) -> impl Fn(&[Tensor<1>]) -> Tensor<1> + Sync {
        move |inputs| {
            let film = |index: usize| inputs[index].clone().reshape([films, shape[2]]);
            norm(inputs[0].clone().reshape(shape), film(1), film(2)).flatten(0, 2)
        }
    }

    #[track_caller]
    fn check(shape: [usize; 3], films: usize) {
        let lengths = [shape.iter().product(), films * shape[2], films * shape[2]];
        agrees(&lengths, &flat(norm_film, shape, films), &flat(plain::norm_film, shape, films));
    }

    #[test]
    fn it_agrees_where_each_row_has_its_film() {
        check([3, 40, 48], 3);
    }

    #[test]
    fn it_agrees_where_all_rows_share_one() {
        check([3, 33, 32], 1);
    }

    #[test]
    fn odd_sizes_agree() {
        check([1, 1, 3], 1);
        check([2, 5, 17], 2);
    }

    #[test]
    fn a_row_of_equal_values_gives_the_shift() {
        let x = Tensor::full([1, 2, 16], 5.0, &crate::network::ops::check::device());
        let film = noisy(16, 1).reshape([1, 16]);
        let found = floats(norm_film(x, film.clone(), film.clone()));
        assert_eq!(found, [floats(film.clone()), floats(film)].concat());
    }

    #[test]
    fn it_is_the_same_on_any_number_of_threads() {
        let shape = [3, 100, 20];
        repeats(&[6000, 60, 60], &flat(norm_film, shape, 3));
        repeats(&[6000, 20, 20], &flat(norm_film, shape, 1));
    }
}
