//! The fused kernels behind [`super::linear()`] and [`super::linear_silu`]: matrix products, with everything
//! around them in one parallel pass each.
//!
//! In and out: tensors of the backend `flex`. The bias is added in place. The backward converts the incoming gradient to that
//! before the activation, in place if there is no other reference, and sums the gradient of the bias in the same pass.

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::ops::FloatTensorOps;
use burn::tensor::Shape;
use pulp::{Simd, WithSimd};

use super::fused::{Recorded, rows, shape, tensor, values};
use super::lanes::{run, sigmoid};
use super::matmul::matmul;
use super::rows::Rows;

/// `x * weight + bias` without autodiff.
pub(super) fn forward(x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor) -> FlexTensor {
    let shape = shape(x);
    let mut result = matmul(&as_matrix(x), weight);
    let width = result.layout().shape()[1];
    let all = Rows { batch: 1, positions: shape[0] * shape[1], width };
    all.each(result.storage_mut(), |_, result| run(AddBias { bias: values(bias), result }));
    result.with_layout(Layout::contiguous(Shape::new([shape[0], shape[1], width])))
}

/// `silu` of each element.
pub(super) fn silu(x: &FlexTensor) -> FlexTensor {
    let rows = rows(x);
    let mut result = vec![0.0; rows.elements()];
    rows.in_one().each(&mut result, |block, result| run(Silu { x: block.of(values(x)), result }));
    tensor(result, shape(x))
}

/// The product alone, with its backward registered.
pub(super) fn recorded<C: CheckpointStrategy>(
    x: Recorded,
    weight: Recorded,
    bias: Recorded,
) -> Recorded {
    let nodes = [x.node(), weight.node(), bias.node()];
    let [x, weight, bias] = [x, weight, bias].map(|input| input.into_primitive().to_contiguous());
    let result = forward(&x, &weight, &bias);
    match Linear.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((x, weight, None), result),
        OpsKind::UnTracked(prep) => prep.finish(result),
    }
}

/// With the activation, and its backward registered.
pub(super) fn recorded_silu<C: CheckpointStrategy>(
    x: Recorded,
    weight: Recorded,
    bias: Recorded,
) -> Recorded {
    let nodes = [x.node(), weight.node(), bias.node()];
    let [x, weight, bias] = [x, weight, bias].map(|input| input.into_primitive().to_contiguous());
    let before = forward(&x, &weight, &bias);
    let result = silu(&before);
    match Linear.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((x, weight, Some(before)), result),
        OpsKind::UnTracked(prep) => prep.finish(result),
    }
}

#[derive(Debug)]
struct Linear;

impl Backward<Flex, 3> for Linear {
    /// Input, weight, and what the activation was applied to.
    type State = (FlexTensor, FlexTensor, Option<FlexTensor>);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let mut gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let (x, weight, before) = ops.state;
        let all = rows(&gradient).in_one();
        let parts = match before {
            Some(before) => all.each(gradient.storage_mut(), |block, gradient| {
                let mut sums = vec![0.0; all.width];
                let before = block.of(values(&before));
                run(SiluBackward { before, gradient, sums: &mut sums });
                sums
            }),
            None => all.read(|block| {
                let mut sums = vec![0.0; all.width];
                run(AddRows { rows: block.of(values(&gradient)), sums: &mut sums });
                sums
            }),
        };
        let [to_x, to_weight, to_bias] = ops.parents;
        if let Some(node) = to_bias {
            let sums = all.totals(1, all.width, &parts);
            grads.register::<Flex>(node.id, tensor(sums, Shape::new([all.width])));
        }
        let gradient = as_matrix(&gradient);
        if let Some(node) = to_weight {
            let x = Flex::float_swap_dims(as_matrix(&x), 0, 1);
            grads.register::<Flex>(node.id, matmul(&x, &gradient));
        }
        if let Some(node) = to_x {
            let weight = Flex::float_swap_dims(weight, 0, 1);
            let gradient = matmul(&gradient, &weight);
            let gradient = gradient.with_layout(Layout::contiguous(shape(&x)));
            grads.register::<Flex>(node.id, gradient);
        }
    }
}

/// All positions of all rows of the batch as one matrix.
fn as_matrix(tensor: &FlexTensor) -> FlexTensor {
    let rows = rows(tensor);
    let shape = Shape::new([rows.batch * rows.positions, rows.width]);
    let layout = Layout::contiguous(shape);
    let strides = layout.strides().to_vec();
    let start = tensor.layout().start_offset();
    tensor.clone().with_layout(Layout::new(layout.shape().clone(), strides, start))
}

struct AddBias<'a> {
    bias: &'a [f32],
    result: &'a mut [f32],
}

impl WithSimd for AddBias<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for result in self.result.chunks_exact_mut(self.bias.len()) {
            result.iter_mut().zip(self.bias).for_each(|(result, bias)| *result += bias);
        }
    }
}

struct AddRows<'a> {
    rows: &'a [f32],
    sums: &'a mut [f32],
}

impl WithSimd for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for row in self.rows.chunks_exact(self.sums.len()) {
            self.sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }
}

struct Silu<'a> {
    x: &'a [f32],
    result: &'a mut [f32],
}

impl WithSimd for Silu<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (result, &x) in self.result.iter_mut().zip(self.x) {
            *result = x * sigmoid(x);
        }
    }
}

struct SiluBackward<'a> {
    before: &'a [f32],
    gradient: &'a mut [f32],
    sums: &'a mut [f32],
}

impl WithSimd for SiluBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let width = self.sums.len();
        let sums = &mut self.sums[..width];
        let rows = self.before.chunks_exact(width).zip(self.gradient.chunks_exact_mut(width));
        for (before, gradient) in rows {
            for index in 0..width {
                let open = sigmoid(before[index]);
                let slope = open * before[index].mul_add(1.0 - open, 1.0);
                gradient[index] *= slope;
                sums[index] += gradient[index];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;

    use crate::network::ops::check::{agrees, noisy, repeats, result_and_gradients};
    use crate::network::ops::{linear, linear_silu, plain};

    type Linear = fn(Tensor<3>, Tensor<2>, Tensor<1>) -> Tensor<3>;

    /// `[batch, positions, from, to]`.
    fn flat(
        linear: Linear,
        [batch, positions, from, to]: [usize; 4],
    ) -> impl Fn(&[Tensor<1>]) -> Tensor<1> + Sync {
        move |inputs| {
            let x = inputs[0].clone().reshape([batch, positions, from]);
            let weight = inputs[1].clone().reshape([from, to]);
            linear(x, weight, inputs[2].clone()).flatten(0, 2)
        }
    }

    fn lengths([batch, positions, from, to]: [usize; 4]) -> [usize; 3] {
        [batch * positions * from, from * to, to]
    }

    #[track_caller]
    fn check(shape: [usize; 4]) {
        let lengths = lengths(shape);
        agrees(&lengths, &flat(linear, shape), &flat(plain::linear, shape));
        agrees(&lengths, &flat(linear_silu, shape), &flat(plain::linear_silu, shape));
    }

    #[test]
    fn it_agrees_with_the_plain_operation() {
        check([3, 40, 24, 48]);
    }

    #[test]
    fn odd_sizes_agree() {
        check([1, 1, 1, 1]);
        check([2, 5, 7, 3]);
        check([1, 33, 5, 19]);
    }

    #[test]
    fn inputs_that_are_views_agree() {
        let whole = |linear: Linear| {
            move |inputs: &[Tensor<1>]| {
                let x = inputs[0].clone().reshape([2, 4, 10]).narrow(2, 3, 6);
                let weight = inputs[1].clone().reshape([5, 6]).transpose();
                linear(x, weight, inputs[2].clone()).flatten(0, 2)
            }
        };
        agrees(&[80, 30, 5], &whole(linear_silu), &whole(plain::linear_silu));
        agrees(&[80, 30, 5], &whole(linear), &whole(plain::linear));
    }

    #[test]
    fn a_result_used_twice_keeps_its_gradient() {
        let shape = [1, 4, 3, 5];
        let twice = |linear: Linear| {
            move |inputs: &[Tensor<1>]| {
                let result = flat(linear, shape)(inputs);
                result.clone() * result.clone() + result
            }
        };
        agrees(&lengths(shape), &twice(linear_silu), &twice(plain::linear_silu));
    }

    #[test]
    fn far_values_stay_finite() {
        let x = noisy(64, 1) * 200.0;
        let ones = noisy(1, 1).ones_like();
        let inputs = [x, ones.clone(), ones];
        let (result, gradients) = result_and_gradients(&inputs, &flat(linear_silu, [1, 64, 1, 1]));
        assert!(result.iter().chain(gradients.iter().flatten()).all(|value| value.is_finite()));
    }

    #[test]
    fn it_is_the_same_on_any_number_of_threads() {
        let shape = [4, 150, 64, 256];
        repeats(&lengths(shape), &flat(linear_silu, shape));
        repeats(&lengths(shape), &flat(linear, shape));
    }
}
