//! Each position joined with its two neighbours, on a GPU: one launch forward, one backward.
//!
//! In and out: as [`super::super::neighbours`]. Padded positions are never read.

mod kernels;

use super::super::Lengths;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, Dispatch, backend_extension};
use burn::tensor::{Shape, Tensor};
use burn_cubecl::CubeBackend;

/// See [`super::super::neighbours`].
pub(in super::super) fn neighbours(x: Tensor<3>, lengths: Option<&Lengths>) -> Tensor<3> {
    // The kernels take a tensor there in any case, and do not read it without lengths.
    let counts = match lengths {
        Some(lengths) => lengths.counts().into_dispatch(),
        None => x.clone().inner().into_dispatch(),
    };
    let masked = lengths.is_some();
    Tensor::from_dispatch(Dispatch::gpu_neighbours(x.into_dispatch(), counts, masked))
}

/// What runs on the device. `lengths` are floats, `[batch]`, read if `masked`.
#[backend_extension(Cube, Fusion)]
pub trait NeighbourKernels: Backend {
    /// `[batch, positions, width]` to `[batch, positions, 3 * width]`.
    #[fusion(dtype = x, shape = Shape::new([x[0], x[1], 3 * x[2]]))]
    fn neighbours_forward(
        x: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        masked: bool,
    ) -> FloatTensor<Self>;

    /// The gradient of the input.
    #[fusion(dtype = gradient, shape = Shape::new([gradient[0], gradient[1], gradient[2] / 3]))]
    fn neighbours_backward(
        gradient: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        masked: bool,
    ) -> FloatTensor<Self>;
}

impl NeighbourKernels for CubeBackend {
    fn neighbours_forward(
        x: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        masked: bool,
    ) -> FloatTensor<Self> {
        kernels::join(x, lengths, masked)
    }

    fn neighbours_backward(
        gradient: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        masked: bool,
    ) -> FloatTensor<Self> {
        kernels::add_up(gradient, lengths, masked)
    }
}

/// What tensors call.
#[backend_extension(Cube, Autodiff)]
pub trait NeighbourOps: Backend {
    /// See [`super::super::neighbours`].
    fn gpu_neighbours(
        x: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        masked: bool,
    ) -> FloatTensor<Self>;
}

impl NeighbourOps for Cube {
    fn gpu_neighbours(
        x: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        masked: bool,
    ) -> FloatTensor<Self> {
        Cube::neighbours_forward(x, lengths, masked)
    }
}

impl<C: CheckpointStrategy> NeighbourOps for Autodiff<Cube, C> {
    fn gpu_neighbours(
        x: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        masked: bool,
    ) -> FloatTensor<Self> {
        let node = x.node();
        let (x, lengths) = (x.into_primitive(), lengths.into_primitive());
        let joined = Cube::neighbours_forward(x, lengths.clone(), masked);
        match Neighbours.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((lengths, masked), joined),
            OpsKind::UnTracked(prep) => prep.finish(joined),
        }
    }
}

#[derive(Debug)]
struct Neighbours;

impl Backward<Cube, 1> for Neighbours {
    type State = (FloatTensor<Cube>, bool);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let (lengths, masked) = ops.state;
        let [Some(node)] = ops.parents else { return };
        grads.register::<Cube>(node.id, Cube::neighbours_backward(gradient, lengths, masked));
    }
}
