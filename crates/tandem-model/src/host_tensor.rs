//! Host arrays to tensors, and back.
//!
//! In: a vector and a shape, or a tensor. Out: the other.

use burn::tensor::{Device, Int, Tensor, TensorData};

pub(crate) fn floats<const D: usize>(
    values: Vec<f32>,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

pub(crate) fn ints<const D: usize>(
    values: Vec<i32>,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D, Int> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// The values of a float tensor. Waits for its device.
pub(crate) fn host_floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as::<f32>().expect("floats can be read as 32 bits")
}
