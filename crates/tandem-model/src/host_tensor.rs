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

/// Values that are read at once: what they pass through on the host is as large.
const READ_AT_ONCE: usize = 1 << 24;

/// The values of float tensors, many in one read: each read waits for all that is launched by then.
pub(crate) fn host_floats_of_all(tensors: Vec<Tensor<1>>) -> Vec<Vec<f32>> {
    let mut values = 0;
    let together = |one: &Tensor<1>, next: &Tensor<1>| {
        values += one.dims()[0];
        let joined = values + next.dims()[0] <= READ_AT_ONCE && one.device() == next.device();
        values = if joined { values } else { 0 };
        joined
    };
    let read = |tensors: &[Tensor<1>]| {
        let all = tensors.iter().cloned().fold(Transaction::default(), Transaction::register);
        all.try_execute().unwrap_or_else(|error| panic!("floats cannot be read: {error}"))
    };
    let floats = |data: TensorData| {
        data.convert::<f32>().try_into_vec::<f32>().expect("floats can be read as 32 bits")
    };
    tensors.chunk_by(together).flat_map(read).map(floats).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tensors_are_read_in_their_order() {
        let values: Vec<Vec<f32>> = (1..40).map(|length| vec![length as f32; length]).collect();
        let large = vec![0.5; READ_AT_ONCE];
        let all: Vec<Vec<f32>> =
            values.iter().cloned().chain([large]).chain(values.clone()).collect();
        let tensor = |values: &Vec<f32>| Tensor::from_floats(values.as_slice(), &Device::flex());
        assert!(host_floats_of_all(all.iter().map(tensor).collect()) == all);
        assert!(host_floats_of_all(Vec::new()).is_empty());
    }
}
