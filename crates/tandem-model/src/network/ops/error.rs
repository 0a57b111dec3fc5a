//! The fused kernel behind [`super::squared_error`].
//!
//! In and out: tensors of the backend `flex`. Padded positions are skipped, so that not even `NaN` leaks from them.

use std::sync::Arc;

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::tensor::Shape;
use pulp::{Simd, WithSimd};

use super::fused::{Recorded, rows, shape, tensor, values};
use super::lanes::{run, sum_pairs};
use super::rows::{Block, Rows};

/// The operation without autodiff.
pub(super) fn forward(guess: &FlexTensor, truth: &FlexTensor, lengths: &[usize]) -> FlexTensor {
    let rows = rows(guess);
    let sums = rows.read(|block| {
        let real = real_elements(rows, block, lengths);
        let [guess, truth] = [guess, truth].map(|tensor| &block.of(values(tensor))[..real]);
        f64::from(run(Forward { guess, truth }))
    });
    let mean = sums.iter().sum::<f64>() * share(rows, lengths);
    tensor(vec![mean as f32], Shape::new([1]))
}

/// The operation, with its backward registered.
pub(super) fn recorded<C: CheckpointStrategy>(
    guess: Recorded,
    truth: Recorded,
    lengths: Arc<[usize]>,
) -> Recorded {
    let nodes = [guess.node(), truth.node()];
    let [guess, truth] = [guess, truth].map(|input| input.into_primitive().to_contiguous());
    let result = forward(&guess, &truth, &lengths);
    match SquaredError.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((guess, truth, lengths), result),
        OpsKind::UnTracked(prep) => prep.finish(result),
    }
}

#[derive(Debug)]
struct SquaredError;

impl Backward<Flex, 2> for SquaredError {
    type State = (FlexTensor, FlexTensor, Arc<[usize]>);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let (guess, truth, lengths) = ops.state;
        let rows = rows(&guess);
        let factor = 2.0 * share(rows, &lengths) * f64::from(values(&gradient)[0]);
        let [to_guess, to_truth] = ops.parents;
        for (node, sign) in [(to_guess, 1.0), (to_truth, -1.0)] {
            let Some(node) = node else { continue };
            let mut result = vec![0.0; rows.elements()];
            rows.each(&mut result, |block, result| {
                let real = real_elements(rows, block, &lengths);
                let [guess, truth] =
                    [&guess, &truth].map(|tensor| &block.of(values(tensor))[..real]);
                let factor = (sign * factor) as f32;
                run(BackwardBlock { guess, truth, factor, result: &mut result[..real] });
            });
            grads.register::<Flex>(node.id, tensor(result, shape(&guess)));
        }
    }
}

/// One over the number of real elements.
fn share(rows: Rows, lengths: &[usize]) -> f64 {
    let real = lengths.iter().sum::<usize>() * rows.width;
    (real.max(1) as f64).recip()
}

/// The number of real elements of a block, which come first.
fn real_elements(rows: Rows, block: Block, lengths: &[usize]) -> usize {
    let real = lengths[block.row].saturating_sub(block.position) * rows.width;
    real.min(block.count())
}

struct Forward<'a> {
    guess: &'a [f32],
    truth: &'a [f32],
}

impl WithSimd for Forward<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> f32 {
        sum_pairs(self.guess, self.truth, |guess, truth| (guess - truth) * (guess - truth))
    }
}

struct BackwardBlock<'a> {
    guess: &'a [f32],
    truth: &'a [f32],
    factor: f32,
    result: &'a mut [f32],
}

impl WithSimd for BackwardBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let inputs = self.guess.iter().zip(self.truth);
        for (result, (guess, truth)) in self.result.iter_mut().zip(inputs) {
            *result = self.factor * (guess - truth);
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;

    use crate::network::ops::check::{agrees, device, noisy, repeats, result_and_gradients};
    use crate::network::ops::{Lengths, plain, squared_error};

    type Error = fn(Tensor<3>, Tensor<3>, &Lengths) -> Tensor<1>;

    fn flat(
        error: Error,
        [positions, bands]: [usize; 2],
        real: &[usize],
    ) -> impl Fn(&[Tensor<1>]) -> Tensor<1> + Sync {
        let real = real.to_vec();
        move |inputs| {
            let lengths = Lengths::new(&real, positions, &device());
            let shape = [real.len(), positions, bands];
            let [guess, truth] = [0, 1].map(|index: usize| inputs[index].clone().reshape(shape));
            error(guess, truth, &lengths)
        }
    }

    #[track_caller]
    fn check(shape: [usize; 2], real: &[usize]) {
        let elements = real.len() * shape[0] * shape[1];
        let fused = flat(squared_error, shape, real);
        agrees(&[elements, elements], &fused, &flat(plain::squared_error, shape, real));
    }

    #[test]
    fn it_agrees_with_the_plain_operation() {
        check([70, 8], &[70, 33, 0, 32]);
        check([3, 5], &[2]);
        check([3, 5], &[0]);
    }

    #[test]
    fn padded_positions_are_never_read() {
        let guess = noisy(12, 1);
        let spoilt = guess.clone().slice_fill(8..12, f32::NAN);
        let run = |guess: Tensor<1>| {
            result_and_gradients(&[guess, noisy(12, 2)], &flat(squared_error, [3, 4], &[2]))
        };
        assert_eq!(run(guess), run(spoilt));
    }

    #[test]
    fn it_is_the_same_on_any_number_of_threads() {
        repeats(&[8000, 8000], &flat(squared_error, [100, 20], &[100, 64, 33, 9]));
    }
}
