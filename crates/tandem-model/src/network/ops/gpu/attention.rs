//! Self-attention on a GPU in one launch forward and two backward; the matrix of scores is never stored.
//!
//! In and out: as [`super::super::attention()`]. Sums and scores have 32 bits. The tables of the rotary positions are kept, so
//! that a step copies nothing to the device.

mod backward; // the gradients of queries, then of keys and values
mod forward; // the mixed values
mod tiles; // what the kernels share

use super::super::Lengths;
use super::super::plain::rotary_values;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::{DType, Device, Shape, Tensor, TensorData};
use burn_cubecl::CubeBackend;
use std::cell::RefCell;

/// The widest head whose tiles fit into 32 KiB of shared memory, which every GPU has.
pub(in super::super) const WIDEST_HEAD: usize = 64;

/// See [`super::super::attention()`].
pub(in super::super) fn attention(qkv: Tensor<3>, heads: usize, lengths: &Lengths) -> Tensor<3> {
    let [_, positions, packed] = qkv.dims();
    let rotary = rotary_table(positions, packed / 3 / heads, qkv.device().inner());
    Tensor::from_dispatch(Dispatch::gpu_attention(
        qkv.into_dispatch(),
        lengths.counts().into_dispatch(),
        rotary.into_dispatch(),
        heads,
    ))
}

/// Tables that a thread keeps: one for each shape of its batches.
const KEPT_TABLES: usize = 64;

/// What a table depends on.
#[derive(Clone, PartialEq)]
struct TableKey {
    positions: usize,
    head: usize,
    device: Device,
}

thread_local! {
    /// By thread: the library would wait for the thread that made a tensor before another one uses it.
    static TABLES: RefCell<Vec<(TableKey, Tensor<3>)>> = const { RefCell::new(Vec::new()) };
}

/// Cosines, then sines, of each position's angles: `[2, positions, head / 2]`.
fn rotary_table(positions: usize, head: usize, device: Device) -> Tensor<3> {
    let key = TableKey { positions, head, device };
    TABLES.with_borrow_mut(|kept| {
        if let Some((_, table)) = kept.iter().find(|(known, _)| *known == key) {
            return table.clone();
        }
        let (mut values, sines) = rotary_values(positions, head);
        values.extend(sines);
        let values = TensorData::new(values, [2, positions, head / 2]);
        let table = Tensor::from_data(values, &key.device);
        if kept.len() == KEPT_TABLES {
            kept.remove(0);
        }
        kept.push((key, table.clone()));
        table
    })
}

/// What runs on the device. `lengths` are floats, `[batch]`.
#[backend_extension(Cube, Fusion)]
pub trait AttentionKernels: Backend {
    /// The mixed values, and the logarithm of the sum of each query's exponentials, `[batch, heads, positions]`.
    #[fusion(meta = forward_outputs)]
    fn attention_forward(
        qkv: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        rotary: FloatTensor<Self>,
        heads: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradient of `qkv`.
    #[fusion(dtype = qkv, shape = qkv)]
    fn attention_backward(
        qkv: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        rotary: FloatTensor<Self>,
        mixed: FloatTensor<Self>,
        logs: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        heads: usize,
    ) -> FloatTensor<Self>;
}

/// The outputs of [`AttentionKernels::attention_forward`], for the queue of fusion.
fn forward_outputs(
    qkv: &TensorSpec,
    _lengths: &TensorSpec,
    _rotary: &TensorSpec,
    heads: &usize,
) -> (TensorSpec, TensorSpec) {
    let [mixed, logs] = output_shapes(&qkv.shape, *heads);
    (TensorSpec::new(mixed, qkv.dtype), TensorSpec::new(logs, DType::F32))
}

/// The shapes of the mixed values and of the logarithms.
fn output_shapes(qkv: &Shape, heads: usize) -> [Shape; 2] {
    let (batch, positions, width) = (qkv[0], qkv[1], qkv[2] / 3);
    [Shape::new([batch, positions, width]), Shape::new([batch, heads, positions])]
}

impl AttentionKernels for CubeBackend {
    fn attention_forward(
        qkv: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        rotary: FloatTensor<Self>,
        heads: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let shapes = output_shapes(&qkv.shape(), heads);
        forward::launch(qkv, lengths, rotary, heads, shapes)
    }

    fn attention_backward(
        qkv: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        rotary: FloatTensor<Self>,
        mixed: FloatTensor<Self>,
        logs: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        heads: usize,
    ) -> FloatTensor<Self> {
        backward::launch(qkv, lengths, rotary, mixed, logs, gradient, heads)
    }
}

/// What tensors call.
#[backend_extension(Cube, Autodiff)]
pub trait AttentionOps: Backend {
    /// See [`super::super::attention()`].
    fn gpu_attention(
        qkv: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        rotary: FloatTensor<Self>,
        heads: usize,
    ) -> FloatTensor<Self>;
}

impl AttentionOps for Cube {
    fn gpu_attention(
        qkv: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        rotary: FloatTensor<Self>,
        heads: usize,
    ) -> FloatTensor<Self> {
        Cube::attention_forward(qkv, lengths, rotary, heads).0
    }
}

impl<C: CheckpointStrategy> AttentionOps for Autodiff<Cube, C> {
    fn gpu_attention(
        qkv: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        rotary: FloatTensor<Self>,
        heads: usize,
    ) -> FloatTensor<Self> {
        let node = qkv.node();
        let [qkv, lengths, rotary] = [qkv, lengths, rotary].map(|tensor| tensor.into_primitive());
        let (mixed, logs) =
            Cube::attention_forward(qkv.clone(), lengths.clone(), rotary.clone(), heads);
        match Attention.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let result = mixed.clone();
                prep.finish(State { qkv, lengths, rotary, mixed, logs, heads }, result)
            }
            OpsKind::UnTracked(prep) => prep.finish(mixed),
        }
    }
}

#[derive(Debug)]
struct Attention;

/// What the backward pass needs: the input, the result, and one number for each query of each head.
#[derive(Clone, Debug)]
struct State {
    qkv: FloatTensor<Cube>,
    lengths: FloatTensor<Cube>,
    rotary: FloatTensor<Cube>,
    mixed: FloatTensor<Cube>,
    logs: FloatTensor<Cube>,
    heads: usize,
}

impl Backward<Cube, 1> for Attention {
    type State = State;

    fn backward(self, ops: Ops<State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let State { qkv, lengths, rotary, mixed, logs, heads } = ops.state;
        let [Some(node)] = ops.parents else { return };
        let gradient = Cube::attention_backward(qkv, lengths, rotary, mixed, logs, gradient, heads);
        grads.register::<Cube>(node.id, gradient);
    }
}
