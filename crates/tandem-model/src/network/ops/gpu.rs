//! Operations on GPUs with a backward pass written by hand.
//!
//! In and out: tensors on any GPU, recorded for the backward pass. The maths is that of [`super::plain`]; automatic
//! differentiation of it launches several times as many kernels, most of them smaller than the cost of a launch.

use super::plain::{NormState, norm_film_backward, norm_film_forward};
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, Cube, Dispatch, DispatchDevice, TensorMetadata, backend_extension,
};
use burn::tensor::{Slice, Tensor};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether a tensor is on a GPU and records what happens to it.
pub(super) fn is_recorded<const D: usize>(x: &Tensor<D>) -> bool {
    match x.device().as_dispatch() {
        DispatchDevice::Autodiff(device) => matches!(**device, DispatchDevice::Cube(_)),
        _ => false,
    }
}

/// See [`super::parts()`].
pub(super) fn parts<const N: usize, const D: usize>(x: Tensor<D>, dim: usize) -> [Tensor<D>; N] {
    let split = Arc::new(Split { dim, gradients: Mutex::new(vec![None; N]) });
    std::array::from_fn(|number| {
        let part = Dispatch::recorded_part(x.clone().into_dispatch(), split.clone(), number);
        Tensor::from_dispatch(part)
    })
}

/// See [`super::norm_film`].
pub(super) fn norm_film(x: Tensor<3>, scale: Tensor<2>, shift: Tensor<2>) -> Tensor<3> {
    Tensor::from_dispatch(Dispatch::recorded_norm_film(
        x.into_dispatch(),
        scale.into_dispatch(),
        shift.into_dispatch(),
    ))
}

/// What the parts of one tensor share.
#[derive(Debug)]
pub struct Split {
    dim: usize,
    /// The gradients of the parts that the backward pass has reached.
    gradients: Mutex<Vec<Option<FloatTensor<Cube>>>>,
}

impl Split {
    fn gradients(&self) -> MutexGuard<'_, Vec<Option<FloatTensor<Cube>>>> {
        self.gradients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Split {
    /// A part that the loss does not depend on would cost the others their gradients, without a word.
    fn drop(&mut self) {
        let waiting = self.gradients().iter().flatten().count();
        assert!(
            waiting == 0 || std::thread::panicking(),
            "{waiting} parts of a tensor have a gradient, and the others have none"
        );
    }
}

/// The operations on primitives.
#[backend_extension(Cube, Autodiff)]
pub trait RecordedOps: Backend {
    /// One of the parts of a tensor.
    fn recorded_part(x: FloatTensor<Self>, split: Arc<Split>, number: usize) -> FloatTensor<Self>;

    /// See [`super::norm_film`].
    fn recorded_norm_film(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

impl RecordedOps for Cube {
    fn recorded_part(x: FloatTensor<Self>, split: Arc<Split>, number: usize) -> FloatTensor<Self> {
        let count = split.gradients().len();
        let shape = x.shape();
        let slices: Vec<Slice> = (0..shape.num_dims())
            .map(|dim| match shape[dim] / count {
                width if dim == split.dim => Slice::from(number * width..(number + 1) * width),
                _ => Slice::from(0..shape[dim]),
            })
            .collect();
        Cube::float_slice(x, &slices)
    }

    fn recorded_norm_film(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        primitive(norm_film_forward(tensor(x), tensor(scale), tensor(shift)).0)
    }
}

impl<C: CheckpointStrategy> RecordedOps for Autodiff<Cube, C> {
    fn recorded_part(x: FloatTensor<Self>, split: Arc<Split>, number: usize) -> FloatTensor<Self> {
        let node = x.node();
        let part = Cube::recorded_part(x.into_primitive(), split.clone(), number);
        match Part.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((split, number), part),
            OpsKind::UnTracked(prep) => prep.finish(part),
        }
    }

    fn recorded_norm_film(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), scale.node(), shift.node()];
        let (x, scale, shift) =
            (x.into_primitive(), scale.into_primitive(), shift.into_primitive());
        let (y, state) = norm_film_forward(tensor(x), tensor(scale), tensor(shift));
        match NormFilm.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(state, primitive(y)),
            OpsKind::UnTracked(prep) => prep.finish(primitive(y)),
        }
    }
}

#[derive(Debug)]
struct Part;

impl Backward<Cube, 1> for Part {
    type State = (Arc<Split>, usize);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let (split, number) = ops.state;
        let [Some(node)] = ops.parents else { return };
        let mut gradients = split.gradients();
        gradients[number] = Some(gradient);
        // The last part that the backward pass reaches. The gradient of the whole is used after it.
        if let Some(all) = gradients.iter().cloned().collect::<Option<Vec<_>>>() {
            gradients.fill(None);
            grads.register::<Cube>(node.id, Cube::float_cat(all, split.dim));
        }
    }
}

#[derive(Debug)]
struct NormFilm;

impl Backward<Cube, 3> for NormFilm {
    type State = NormState;

    fn backward(self, ops: Ops<NormState, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let (x, scale, shift) = norm_film_backward(ops.state, tensor(gradient));
        let [to_x, to_scale, to_shift] = ops.parents;
        if let Some(node) = to_x {
            grads.register::<Cube>(node.id, primitive(x));
        }
        if let Some(node) = to_scale {
            grads.register::<Cube>(node.id, primitive(scale));
        }
        if let Some(node) = to_shift {
            grads.register::<Cube>(node.id, primitive(shift));
        }
    }
}

fn tensor<const D: usize>(primitive: FloatTensor<Cube>) -> Tensor<D> {
    Tensor::from_primitive::<Cube>(primitive)
}

fn primitive<const D: usize>(tensor: Tensor<D>) -> FloatTensor<Cube> {
    tensor.try_into_primitive::<Cube>().expect("a tensor that is on a GPU")
}
