//! Equal parts of a tensor, with one gradient for all of them.
//!
//! In: a tensor. Out: its parts along a dimension. With a slice for each part, the backward pass on a GPU fills a tensor
//! of zeros for every part, writes the gradient into it and adds them up: three launches for each. There it joins the
//! gradients of all parts at once instead (`ops/gpu.rs`).

use burn::tensor::Tensor;

/// Equal parts along a dimension. **All of them must be used**: the backward pass waits for the gradient of each.
pub fn parts<const N: usize, const D: usize>(x: Tensor<D>, dim: usize) -> [Tensor<D>; N] {
    #[cfg(feature = "any-gpu")]
    if super::gpu::is_recorded(&x) {
        return super::gpu::parts(x, dim);
    }
    let width = x.dims()[dim] / N;
    std::array::from_fn(|number| x.clone().narrow(dim, number * width, width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn parts_are_those_of_the_dimension() {
        let x = Tensor::<2>::from_floats([[1., 2., 3., 4.], [5., 6., 7., 8.]], &Device::flex());
        let found = parts::<2, 2>(x, 1).map(|part| part.try_into_vec_as::<f32>().unwrap());
        assert_eq!(found, [[1., 2., 5., 6.], [3., 4., 7., 8.]]);
    }
}
