//! Host arrays to tensors, and back.
//!
//! In: a vector and a shape, or a tensor. Out: the other.

use burn::tensor::{Device, Int, Tensor, TensorData, Transaction};

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

/// The values of float tensors. Waits once for each device: a single read waits for all that is launched by then.
pub(crate) fn host_floats_of_all(tensors: Vec<Tensor<1>>) -> Vec<Vec<f32>> {
    let on_one_device = |one: &Tensor<1>, other: &Tensor<1>| one.device() == other.device();
    let read = |tensors: &[Tensor<1>]| {
        let all = tensors.iter().cloned().fold(Transaction::default(), Transaction::register);
        all.try_execute().unwrap_or_else(|error| panic!("floats cannot be read: {error}"))
    };
    let floats = |data: TensorData| {
        data.convert::<f32>().try_into_vec::<f32>().expect("floats can be read as 32 bits")
    };
    tensors.chunk_by(on_one_device).flat_map(read).map(floats).collect()
}
