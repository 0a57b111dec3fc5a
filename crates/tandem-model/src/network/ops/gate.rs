//! The fused kernel behind [`super::gated_add`].
//!
//! In and out: tensors of the backend `flex`. One pass forward; one pass backward, in which the gradient of the first input is
//! the incoming one.

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use pulp::{Simd, WithSimd};

use super::fused::{Recorded, by_row, rows, shape, tensor, values};
use super::lanes::run;

/// The operation without autodiff.
pub(super) fn forward(x: &FlexTensor, gate: &FlexTensor, y: &FlexTensor) -> FlexTensor {
    let rows = rows(x);
    let mut result = vec![0.0; rows.elements()];
    rows.each(&mut result, |block, result| {
        let gate = by_row(values(gate), rows, block);
        run(Forward { x: block.of(values(x)), gate, y: block.of(values(y)), result });
    });
    tensor(result, shape(x))
}

/// The operation, with its backward registered.
pub(super) fn recorded<C: CheckpointStrategy>(
    x: Recorded,
    gate: Recorded,
    y: Recorded,
) -> Recorded {
    let nodes = [x.node(), gate.node(), y.node()];
    let [x, gate, y] = [x, gate, y].map(|input| input.into_primitive().to_contiguous());
    let result = forward(&x, &gate, &y);
    match GatedAdd.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((gate, y), result),
        OpsKind::UnTracked(prep) => prep.finish(result),
    }
}

#[derive(Debug)]
struct GatedAdd;

impl Backward<Flex, 3> for GatedAdd {
    type State = (FlexTensor, FlexTensor);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let (gate, y) = ops.state;
        let rows = rows(&y);
        let mut y_gradient = vec![0.0; rows.elements()];
        let parts = rows.each(&mut y_gradient, |block, result| {
            let mut sums = vec![0.0; rows.width];
            run(BackwardBlock {
                gate: by_row(values(&gate), rows, block),
                y: block.of(values(&y)),
                gradient: block.of(values(&gradient)),
                result,
                sums: &mut sums,
            });
            sums
        });
        let [to_x, to_gate, to_y] = ops.parents;
        if let Some(node) = to_gate {
            let sums = rows.totals(shape(&gate)[0], rows.width, &parts);
            grads.register::<Flex>(node.id, tensor(sums, shape(&gate)));
        }
        if let Some(node) = to_y {
            grads.register::<Flex>(node.id, tensor(y_gradient, shape(&y)));
        }
        if let Some(node) = to_x {
            grads.register::<Flex>(node.id, gradient);
        }
    }
}

struct Forward<'a> {
    x: &'a [f32],
    gate: &'a [f32],
    y: &'a [f32],
    result: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let width = self.gate.len();
        let gate = &self.gate[..width];
        let inputs = self.x.chunks_exact(width).zip(self.y.chunks_exact(width));
        for ((x, y), result) in inputs.zip(self.result.chunks_exact_mut(width)) {
            for index in 0..width {
                result[index] = y[index].mul_add(gate[index], x[index]);
            }
        }
    }
}

struct BackwardBlock<'a> {
    gate: &'a [f32],
    y: &'a [f32],
    gradient: &'a [f32],
    result: &'a mut [f32],
    sums: &'a mut [f32],
}

impl WithSimd for BackwardBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let width = self.gate.len();
        let (gate, sums) = (&self.gate[..width], &mut self.sums[..width]);
        let inputs = self.y.chunks_exact(width).zip(self.gradient.chunks_exact(width));
        for ((y, gradient), result) in inputs.zip(self.result.chunks_exact_mut(width)) {
            for index in 0..width {
                sums[index] = gradient[index].mul_add(y[index], sums[index]);
                result[index] = gradient[index] * gate[index];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;

    use crate::network::ops::check::{agrees, repeats};
    use crate::network::ops::{gated_add, plain};

    type Gate = fn(Tensor<3>, Tensor<2>, Tensor<3>) -> Tensor<3>;

    fn flat(
        gated: Gate,
        shape: [usize; 3],
        gates: usize,
    ) -> impl Fn(&[Tensor<1>]) -> Tensor<1> + Sync {
        move |inputs| {
            let gate = inputs[1].clone().reshape([gates, shape[2]]);
            let [x, y] = [0, 2].map(|index: usize| inputs[index].clone().reshape(shape));
            gated(x, gate, y).flatten(0, 2)
        }
    }

    #[track_caller]
    fn check(shape: [usize; 3], gates: usize) {
        let elements = shape.iter().product();
        let lengths = [elements, gates * shape[2], elements];
        agrees(&lengths, &flat(gated_add, shape, gates), &flat(plain::gated_add, shape, gates));
    }

    #[test]
    fn it_agrees_with_the_plain_operation() {
        check([3, 40, 48], 3);
        check([3, 40, 48], 1);
        check([2, 3, 5], 2);
    }

    #[test]
    fn it_is_the_same_on_any_number_of_threads() {
        repeats(&[6000, 60, 6000], &flat(gated_add, [3, 100, 20], 3));
    }
}
