//! Kernels of our own for GPUs, each with its backward pass.
//!
//! In and out: tensors on any GPU, recorded for the backward pass or not. Those of positions have 32 or 16 bits; arithmetic,
//! sums, statistics and modulations have 32. One source in CubeCL for
//! CUDA, Vulkan, Metal and ROCm, registered through Burn's backend extensions, so that they run under autodiff and
//! in the order of the library's fusion queue. The maths is that of [`super::plain`], whose automatic differentiation
//! launches many times as many kernels, most of them smaller than the cost of a launch.

mod attention; // never stores the matrix of scores
mod film; // modulated norms and gates
pub(crate) mod adamw; // the optimizer step over all weights
mod neighbours; // for convolutions over three positions
mod buffers; // what their launches share

use burn::backend::DispatchDevice;
use burn::tensor::{DType, Tensor};

pub(super) use attention::{WIDEST_HEAD, attention};
pub(super) use film::FilmParts;
pub(super) use neighbours::neighbours;

/// Whether the kernels support a tensor.
pub(super) fn is_supported<const D: usize>(x: &Tensor<D>) -> bool {
    let device = x.device();
    let gpu = match device.as_dispatch() {
        DispatchDevice::Autodiff(device) => matches!(**device, DispatchDevice::Cube(_)),
        device => matches!(device, DispatchDevice::Cube(_)),
    };
    gpu && matches!(x.dtype(), DType::F32 | DType::F16 | DType::BF16)
}
