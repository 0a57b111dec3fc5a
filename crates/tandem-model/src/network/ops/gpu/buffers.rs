//! What the launches of our own kernels share: inputs in a form that they read, and memory for their results.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::tensor::{DType, Shape};
use burn_cubecl::cubecl::ir::ElemType;
use burn_cubecl::kernel::{into_contiguous, untile};
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;

/// A tensor whose rows have no gaps between their elements. Gaps between rows stay: CUDA and ROCm leave some in the
/// result of a matrix product, and copying it would cost a launch.
pub(super) fn with_dense_rows(tensor: CubeTensor) -> CubeTensor {
    let tensor = untile(tensor);
    let dense = tensor.meta.strides().last() == Some(&1);
    if dense { tensor } else { into_contiguous(tensor) }
}

/// A tensor without any gaps.
pub(super) fn dense(tensor: CubeTensor) -> CubeTensor {
    into_contiguous(untile(tensor))
}

/// Memory for a result in 32 bits; its contents are whatever was there.
pub(super) fn empty(like: &CubeTensor, shape: Shape) -> CubeTensor {
    empty_of(like, shape, DType::F32)
}

/// Memory for a result in the precision of another tensor.
pub(super) fn empty_as(like: &CubeTensor, shape: Shape) -> CubeTensor {
    empty_of(like, shape, like.dtype)
}

/// Memory for a result in this type.
pub(super) fn empty_of(like: &CubeTensor, shape: Shape, dtype: DType) -> CubeTensor {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape, dtype)
}

/// The type of a tensor's elements, for a kernel.
pub(super) fn element(tensor: &CubeTensor) -> ElemType {
    dtype_to_storage_type(tensor.dtype)
}
