//! The kernels of [`super`] and their launches: one unit for each element of the result.

use super::super::buffers::{dense, element, empty_as, with_dense_rows};
use burn::tensor::Shape;
use burn_cubecl::cubecl; // the name that the macro `cube` expands to
use burn_cubecl::cubecl::ir::ElemType;
use burn_cubecl::cubecl::{calculate_cube_count_elemwise, prelude::*};
use burn_cubecl::tensor::CubeTensor;

/// Each position with the one before it and the one after it.
pub(super) fn join(x: CubeTensor, lengths: CubeTensor, masked: bool) -> CubeTensor {
    let shape = x.meta.shape().clone();
    let result = Shape::new([shape[0], shape[1], 3 * shape[2]]);
    let float = element(&x);
    launch(with_dense_rows(x), lengths, result, |client, count, dim, x, lengths, result| {
        join_kernel::launch(client, count, dim, x, lengths, result, masked, float);
    })
}

/// The sum of the three gradients of each position.
pub(super) fn add_up(gradient: CubeTensor, lengths: CubeTensor, masked: bool) -> CubeTensor {
    let shape = gradient.meta.shape().clone();
    let result = Shape::new([shape[0], shape[1], shape[2] / 3]);
    let (gradient, float) = (with_dense_rows(gradient.clone()), element(&gradient));
    launch(gradient, lengths, result, |client, count, dim, gradient, lengths, result| {
        add_up_kernel::launch(client, count, dim, gradient, lengths, result, masked, float);
    })
}

fn launch(
    from: CubeTensor,
    lengths: CubeTensor,
    result: Shape,
    launch: impl FnOnce(&Client, CubeCount, CubeDim, TensorArg, TensorArg, TensorArg),
) -> CubeTensor {
    let elements = result.num_elements();
    let result = empty_as(&from, result);
    let client = from.client.clone();
    let dim = CubeDim::new(&client, elements);
    let count = calculate_cube_count_elemwise(&client, elements, dim);
    let lengths = dense(lengths).into_tensor_arg();
    launch(&client, count, dim, from.into_tensor_arg(), lengths, result.clone().into_tensor_arg());
    result
}

/// The positions of a row that count.
#[cube]
fn length_of(lengths: &Tensor<f32>, row: usize, all: usize, #[comptime] masked: bool) -> usize {
    if masked { usize::cast_from(lengths[row]) } else { all }
}

#[cube(launch)]
fn join_kernel<F: Float>(
    x: &Tensor<F>,
    lengths: &Tensor<f32>,
    result: &mut Tensor<F>,
    #[comptime] masked: bool,
    #[define(F)] _float: ElemType,
) {
    if ABSOLUTE_POS < result.len() {
        let (positions, width) = (x.shape(1), x.shape(2));
        let column = ABSOLUTE_POS % (3 * width);
        let place = ABSOLUTE_POS / (3 * width);
        let (row, position) = (place / positions, place % positions);
        let length = length_of(lengths, row, positions, masked);
        // One more than the neighbour's position, which may be before the first.
        let from = position + column / width;
        let mut value = 0.0f32;
        if from > 0 && from <= length {
            let place = row * x.stride(0) + (from - 1) * x.stride(1) + column % width;
            value = f32::cast_from(x[place]);
        }
        result[ABSOLUTE_POS] = F::cast_from(value);
    }
}

#[cube(launch)]
fn add_up_kernel<F: Float>(
    gradient: &Tensor<F>,
    lengths: &Tensor<f32>,
    result: &mut Tensor<F>,
    #[comptime] masked: bool,
    #[define(F)] _float: ElemType,
) {
    if ABSOLUTE_POS < result.len() {
        let (positions, width) = (result.shape(1), result.shape(2));
        let column = ABSOLUTE_POS % width;
        let place = ABSOLUTE_POS / width;
        let (row, position) = (place / positions, place % positions);
        let length = length_of(lengths, row, positions, masked);
        let from = row * gradient.stride(0) + column;
        let stride = gradient.stride(1);
        let mut sum = 0.0f32;
        if position < length {
            sum = f32::cast_from(gradient[from + position * stride + width]);
            if position + 1 < positions {
                sum += f32::cast_from(gradient[from + (position + 1) * stride]);
            }
            if position > 0 {
                sum += f32::cast_from(gradient[from + (position - 1) * stride + 2 * width]);
            }
        }
        result[ABSOLUTE_POS] = F::cast_from(sum);
    }
}
