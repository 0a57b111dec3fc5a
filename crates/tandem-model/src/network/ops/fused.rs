//! Dispatch of the CPU backend to the fused kernels.
//!
//! In and out: primitives of the backend `flex`, with and without autodiff. [`super`] only passes
//! tensors for which [`on_cpu`] is true.

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, DispatchDevice, Flex, backend_extension};
use burn::tensor::{Bytes, DType, Shape, Tensor};

use super::rows::{Block, Rows};
use super::{attention, conv, error, gate, linear, norm};

/// A tensor of the CPU backend with autodiff.
pub(super) type Recorded = FloatTensor<Autodiff<Flex>>;

/// Whether the fused kernels support a tensor: on `flex`, in single precision.
pub(crate) fn on_cpu<const D: usize>(tensor: &Tensor<D>) -> bool {
    on_host(tensor) && tensor.dtype() == DType::F32
}

/// Whether a tensor is on `flex`, in any precision.
pub(super) fn on_host<const D: usize>(tensor: &Tensor<D>) -> bool {
    let device = tensor.device();
    match device.as_dispatch() {
        DispatchDevice::Autodiff(device) => matches!(**device, DispatchDevice::Flex(_)),
        device => matches!(device, DispatchDevice::Flex(_)),
    }
}

/// The fused operations on primitives; see the functions of [`super`].
#[backend_extension(Flex, Autodiff)]
pub trait FusedOps: Backend {
    /// See [`super::attention()`].
    fn fused_attention(
        qkv: FloatTensor<Self>,
        heads: usize,
        lengths: Arc<[usize]>,
    ) -> FloatTensor<Self>;

    /// See [`super::norm_film`].
    fn fused_norm_film(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// See [`super::linear()`].
    fn fused_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// See [`super::linear_silu`].
    fn fused_linear_silu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// See [`super::conv_silu`].
    fn fused_conv_silu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        lengths: Option<Arc<[usize]>>,
    ) -> FloatTensor<Self>;

    /// See [`super::gated_add`].
    fn fused_gated_add(
        x: FloatTensor<Self>,
        gate: FloatTensor<Self>,
        y: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// See [`super::squared_error`].
    fn fused_squared_error(
        guess: FloatTensor<Self>,
        truth: FloatTensor<Self>,
        lengths: Arc<[usize]>,
    ) -> FloatTensor<Self>;
}

impl FusedOps for Flex {
    fn fused_attention(qkv: FlexTensor, heads: usize, lengths: Arc<[usize]>) -> FlexTensor {
        attention::forward(&qkv.to_contiguous(), heads, lengths)
    }

    fn fused_norm_film(x: FlexTensor, scale: FlexTensor, shift: FlexTensor) -> FlexTensor {
        norm::forward(&x.to_contiguous(), &scale.to_contiguous(), &shift.to_contiguous())
    }

    fn fused_linear(x: FlexTensor, weight: FlexTensor, bias: FlexTensor) -> FlexTensor {
        linear::forward(&x.to_contiguous(), &weight, &bias.to_contiguous())
    }

    fn fused_linear_silu(x: FlexTensor, weight: FlexTensor, bias: FlexTensor) -> FlexTensor {
        linear::silu(&Self::fused_linear(x, weight, bias))
    }

    fn fused_conv_silu(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        lengths: Option<Arc<[usize]>>,
    ) -> FlexTensor {
        conv::forward(&x.to_contiguous(), &weight, &bias.to_contiguous(), &lengths)
    }

    fn fused_gated_add(x: FlexTensor, gate: FlexTensor, y: FlexTensor) -> FlexTensor {
        gate::forward(&x.to_contiguous(), &gate.to_contiguous(), &y.to_contiguous())
    }

    fn fused_squared_error(
        guess: FlexTensor,
        truth: FlexTensor,
        lengths: Arc<[usize]>,
    ) -> FlexTensor {
        error::forward(&guess.to_contiguous(), &truth.to_contiguous(), &lengths)
    }
}

impl<C: CheckpointStrategy> FusedOps for Autodiff<Flex, C> {
    fn fused_attention(qkv: Recorded, heads: usize, lengths: Arc<[usize]>) -> Recorded {
        attention::recorded::<C>(qkv, heads, lengths)
    }

    fn fused_norm_film(x: Recorded, scale: Recorded, shift: Recorded) -> Recorded {
        norm::recorded::<C>(x, scale, shift)
    }

    fn fused_linear(x: Recorded, weight: Recorded, bias: Recorded) -> Recorded {
        linear::recorded::<C>(x, weight, bias)
    }

    fn fused_linear_silu(x: Recorded, weight: Recorded, bias: Recorded) -> Recorded {
        linear::recorded_silu::<C>(x, weight, bias)
    }

    fn fused_conv_silu(
        x: Recorded,
        weight: Recorded,
        bias: Recorded,
        lengths: Option<Arc<[usize]>>,
    ) -> Recorded {
        conv::recorded::<C>(x, weight, bias, lengths)
    }

    fn fused_gated_add(x: Recorded, gate: Recorded, y: Recorded) -> Recorded {
        gate::recorded::<C>(x, gate, y)
    }

    fn fused_squared_error(guess: Recorded, truth: Recorded, lengths: Arc<[usize]>) -> Recorded {
        error::recorded::<C>(guess, truth, lengths)
    }
}

/// The values of a contiguous tensor.
pub(super) fn values(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("a contiguous tensor of single precision")
}

/// A tensor of these values.
pub(super) fn tensor(values: Vec<f32>, shape: Shape) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(values), Layout::contiguous(shape), DType::F32)
}

/// The shape of a tensor.
pub(super) fn shape(tensor: &FlexTensor) -> Shape {
    tensor.layout().shape().clone()
}

/// The rows of a tensor with three dimensions.
pub(super) fn rows(tensor: &FlexTensor) -> Rows {
    let shape = tensor.layout().shape();
    Rows { batch: shape[0], positions: shape[1], width: shape[2] }
}

/// The part of a tensor `[batch, width]` or `[1, width]` for a block: one row per row of the batch, or one for all.
pub(super) fn by_row(film: &[f32], rows: Rows, block: Block) -> &[f32] {
    let row = if film.len() == rows.width { 0 } else { block.row };
    &film[row * rows.width..][..rows.width]
}
