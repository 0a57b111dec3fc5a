//! The kernels of [`super`] and their launches.
//!
//! Cubes of 32 x 8 units. A norm gives each of 8 positions 32 units, which share its width; sums over positions give
//! each of 32 columns 8 units, which share the positions. Partial sums meet in shared memory in a fixed order: no
//! atomics, so results are equal from run to run.

use super::super::super::plain::NORM_EPSILON;
use super::super::buffers::{dense, element, empty, empty_as, with_dense_rows};
use burn::tensor::Shape;
use burn_cubecl::cubecl; // the name that the macro `cube` expands to
use burn_cubecl::cubecl::ir::ElemType;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

/// Units of a cube along the width, and along the positions.
const WIDE: usize = 32;
const HIGH: usize = 8;

/// The shape of each position's mean and inverse deviation.
pub(super) fn stats_shape(x: &Shape) -> Shape {
    Shape::new([x[0], x[1], 2])
}

fn units() -> CubeDim {
    CubeDim::new_2d(WIDE as u32, HIGH as u32)
}

/// One cube for each `HIGH` positions.
fn by_position(x: &CubeTensor) -> CubeCount {
    let shape = x.meta.shape();
    CubeCount::Static((shape[0] * shape[1]).div_ceil(HIGH) as u32, 1, 1)
}

/// One cube for each `WIDE` columns of each row of the projection.
fn by_column(x: &CubeTensor, films: usize) -> CubeCount {
    CubeCount::Static(x.meta.shape()[2].div_ceil(WIDE) as u32, films as u32, 1)
}

/// The modulated norm, and the state for its gradients.
pub(super) fn norm(x: CubeTensor, film: CubeTensor, part: usize) -> (CubeTensor, CubeTensor) {
    let (x, film) = (with_dense_rows(x), with_dense_rows(film));
    let shape = x.meta.shape().clone();
    let (y, stats) = (empty_as(&x, shape.clone()), empty(&x, stats_shape(&shape)));
    let float = element(&x);
    norm_kernel::launch(
        &x.client.clone(),
        by_position(&x),
        units(),
        x.into_tensor_arg(),
        film.into_tensor_arg(),
        y.clone().into_tensor_arg(),
        stats.clone().into_tensor_arg(),
        part * shape[2],
        NORM_EPSILON,
        float,
    );
    (y, stats)
}

/// The gradient of the input of a norm.
pub(super) fn norm_to_input(
    x: CubeTensor,
    film: CubeTensor,
    stats: CubeTensor,
    gradient: CubeTensor,
    part: usize,
) -> CubeTensor {
    let [x, film, gradient] = [x, film, gradient].map(with_dense_rows);
    let shape = x.meta.shape().clone();
    let (result, float) = (empty_as(&x, shape.clone()), element(&x));
    norm_to_input_kernel::launch(
        &x.client.clone(),
        by_position(&x),
        units(),
        x.into_tensor_arg(),
        film.into_tensor_arg(),
        dense(stats).into_tensor_arg(),
        gradient.into_tensor_arg(),
        result.clone().into_tensor_arg(),
        part * shape[2],
        float,
    );
    result
}

/// The gradients of scale and shift, `[films, 2 * width]`.
pub(super) fn norm_to_film(
    x: CubeTensor,
    stats: CubeTensor,
    gradient: CubeTensor,
    films: usize,
) -> CubeTensor {
    let (x, gradient) = (with_dense_rows(x), with_dense_rows(gradient));
    let result = empty(&x, Shape::new([films, 2 * x.meta.shape()[2]]));
    let float = element(&x);
    norm_to_film_kernel::launch(
        &x.client.clone(),
        by_column(&x, films),
        units(),
        x.into_tensor_arg(),
        dense(stats).into_tensor_arg(),
        gradient.into_tensor_arg(),
        result.clone().into_tensor_arg(),
        float,
    );
    result
}

/// `x + gate * y`.
pub(super) fn gated_add(x: CubeTensor, film: CubeTensor, y: CubeTensor, part: usize) -> CubeTensor {
    let [x, film, y] = [x, film, y].map(with_dense_rows);
    let shape = x.meta.shape().clone();
    let (result, float) = (empty_as(&x, shape.clone()), element(&x));
    gated_add_kernel::launch(
        &x.client.clone(),
        by_position(&x),
        units(),
        x.into_tensor_arg(),
        film.into_tensor_arg(),
        y.into_tensor_arg(),
        result.clone().into_tensor_arg(),
        part * shape[2],
        float,
    );
    result
}

/// The gradients of `y` and of the gate, `[films, width]`.
pub(super) fn gated_add_backward(
    film: CubeTensor,
    y: CubeTensor,
    gradient: CubeTensor,
    part: usize,
) -> (CubeTensor, CubeTensor) {
    let [film, y, gradient] = [film, y, gradient].map(with_dense_rows);
    let (shape, films) = (y.meta.shape().clone(), film.meta.shape()[0]);
    let (to_y, float) = (empty_as(&y, shape.clone()), element(&y));
    let to_gate = empty(&y, Shape::new([films, shape[2]]));
    gated_add_backward_kernel::launch(
        &y.client.clone(),
        by_column(&y, films),
        units(),
        film.into_tensor_arg(),
        y.into_tensor_arg(),
        gradient.into_tensor_arg(),
        to_y.clone().into_tensor_arg(),
        to_gate.clone().into_tensor_arg(),
        part * shape[2],
        float,
    );
    (to_y, to_gate)
}

/// The place of a position, counted over all rows, in a tensor with gaps.
#[cube]
fn place_of<F: Float>(x: &Tensor<F>, position: usize) -> usize {
    let positions = x.shape(1);
    (position / positions) * x.stride(0) + (position % positions) * x.stride(1)
}

/// The place of a position's row of the projection.
#[cube]
fn film_place<F: Float>(film: &Tensor<f32>, x: &Tensor<F>, position: usize) -> usize {
    let each = x.shape(0) * x.shape(1) / film.shape(0);
    (position / each) * film.stride(0)
}

/// The sum over the units of this unit's position.
#[cube]
fn sum_of_position(value: f32, parts: &mut Shared<[f32]>) -> f32 {
    let from = UNIT_POS_Y as usize * 32;
    // The sum before has been read.
    sync_cube();
    parts[from + UNIT_POS_X as usize] = value;
    sync_cube();
    let mut sum = 0.0f32;
    for k in 0..32 {
        sum += parts[from + k];
    }
    sum
}

/// The sum over the units of this unit's column.
#[cube]
fn sum_of_column(value: f32, parts: &mut Shared<[f32]>) -> f32 {
    sync_cube();
    parts[UNIT_POS_Y as usize * 32 + UNIT_POS_X as usize] = value;
    sync_cube();
    let mut sum = 0.0f32;
    for k in 0..8 {
        sum += parts[k * 32 + UNIT_POS_X as usize];
    }
    sum
}

#[cube(launch)]
fn norm_kernel<F: Float>(
    x: &Tensor<F>,
    film: &Tensor<f32>,
    y: &mut Tensor<F>,
    stats: &mut Tensor<f32>,
    start: usize,
    epsilon: f32,
    #[define(F)] _float: ElemType,
) {
    let mut parts = Shared::<[f32]>::new_slice(256usize);
    let width = x.shape(2);
    let position = CUBE_POS_X as usize * 8 + UNIT_POS_Y as usize;
    let real = position < x.shape(0) * x.shape(1);
    // The units of a cube meet at barriers, so those without a position repeat the first.
    let from = place_of::<F>(x, select(real, position, 0));
    let unit = UNIT_POS_X as usize;

    let mut sum = 0.0f32;
    let mut c = unit;
    while c < width {
        sum += f32::cast_from(x[from + c]);
        c += 32;
    }
    let mean = sum_of_position(sum, &mut parts) / f32::cast_from(width);
    let mut squares = 0.0f32;
    c = unit;
    while c < width {
        let off = f32::cast_from(x[from + c]) - mean;
        squares += off * off;
        c += 32;
    }
    let variance = sum_of_position(squares, &mut parts) / f32::cast_from(width);
    let inverse = 1.0f32 / (variance + epsilon).sqrt();
    if real {
        let scale = film_place::<F>(film, x, position) + start;
        let shift = scale + width;
        let to = position * width;
        c = unit;
        while c < width {
            let normal = (f32::cast_from(x[from + c]) - mean) * inverse;
            y[to + c] = F::cast_from(normal * (1.0f32 + film[scale + c]) + film[shift + c]);
            c += 32;
        }
        if unit == 0 {
            stats[2 * position] = mean;
            stats[2 * position + 1] = inverse;
        }
    }
}

#[cube(launch)]
fn norm_to_input_kernel<F: Float>(
    x: &Tensor<F>,
    film: &Tensor<f32>,
    stats: &Tensor<f32>,
    gradient: &Tensor<F>,
    result: &mut Tensor<F>,
    start: usize,
    #[define(F)] _float: ElemType,
) {
    let mut parts = Shared::<[f32]>::new_slice(256usize);
    let width = x.shape(2);
    let wanted = CUBE_POS_X as usize * 8 + UNIT_POS_Y as usize;
    let real = wanted < x.shape(0) * x.shape(1);
    let position = select(real, wanted, 0);
    let (from, above) = (place_of::<F>(x, position), place_of::<F>(gradient, position));
    let scale = film_place::<F>(film, x, position) + start;
    let (mean, inverse) = (stats[2 * position], stats[2 * position + 1]);
    let unit = UNIT_POS_X as usize;

    let mut sum = 0.0f32;
    let mut along = 0.0f32;
    let mut c = unit;
    while c < width {
        let inner = f32::cast_from(gradient[above + c]) * (1.0f32 + film[scale + c]);
        sum += inner;
        along += inner * (f32::cast_from(x[from + c]) - mean) * inverse;
        c += 32;
    }
    let sum = sum_of_position(sum, &mut parts) / f32::cast_from(width);
    let along = sum_of_position(along, &mut parts) / f32::cast_from(width);
    if real {
        let to = position * width;
        c = unit;
        while c < width {
            let inner = f32::cast_from(gradient[above + c]) * (1.0f32 + film[scale + c]);
            let normal = (f32::cast_from(x[from + c]) - mean) * inverse;
            result[to + c] = F::cast_from((inner - sum - normal * along) * inverse);
            c += 32;
        }
    }
}

#[cube(launch)]
fn norm_to_film_kernel<F: Float>(
    x: &Tensor<F>,
    stats: &Tensor<f32>,
    gradient: &Tensor<F>,
    result: &mut Tensor<f32>,
    #[define(F)] _float: ElemType,
) {
    let mut parts = Shared::<[f32]>::new_slice(256usize);
    let width = x.shape(2);
    let column = CUBE_POS_X as usize * 32 + UNIT_POS_X as usize;
    let real = column < width;
    let each = x.shape(0) * x.shape(1) / result.shape(0);
    let end = (CUBE_POS_Y as usize + 1) * each;
    let mut to_scale = 0.0f32;
    let mut to_shift = 0.0f32;
    let mut position = CUBE_POS_Y as usize * each + UNIT_POS_Y as usize;
    while position < end {
        if real {
            let above = f32::cast_from(gradient[place_of::<F>(gradient, position) + column]);
            let value = f32::cast_from(x[place_of::<F>(x, position) + column]);
            let off = value - stats[2 * position];
            to_scale += above * off * stats[2 * position + 1];
            to_shift += above;
        }
        position += 8;
    }
    let to_scale = sum_of_column(to_scale, &mut parts);
    let to_shift = sum_of_column(to_shift, &mut parts);
    if real && UNIT_POS_Y == 0 {
        let to = CUBE_POS_Y as usize * 2 * width + column;
        result[to] = to_scale;
        result[to + width] = to_shift;
    }
}

#[cube(launch)]
fn gated_add_kernel<F: Float>(
    x: &Tensor<F>,
    film: &Tensor<f32>,
    y: &Tensor<F>,
    result: &mut Tensor<F>,
    start: usize,
    #[define(F)] _float: ElemType,
) {
    let width = x.shape(2);
    let position = CUBE_POS_X as usize * 8 + UNIT_POS_Y as usize;
    if position < x.shape(0) * x.shape(1) {
        let (from, other) = (place_of::<F>(x, position), place_of::<F>(y, position));
        let gate = film_place::<F>(film, x, position) + start;
        let to = position * width;
        let mut c = UNIT_POS_X as usize;
        while c < width {
            let added = film[gate + c] * f32::cast_from(y[other + c]);
            result[to + c] = F::cast_from(f32::cast_from(x[from + c]) + added);
            c += 32;
        }
    }
}

#[cube(launch)]
fn gated_add_backward_kernel<F: Float>(
    film: &Tensor<f32>,
    y: &Tensor<F>,
    gradient: &Tensor<F>,
    to_y: &mut Tensor<F>,
    to_gate: &mut Tensor<f32>,
    start: usize,
    #[define(F)] _float: ElemType,
) {
    let mut parts = Shared::<[f32]>::new_slice(256usize);
    let width = y.shape(2);
    let column = CUBE_POS_X as usize * 32 + UNIT_POS_X as usize;
    let real = column < width;
    let each = y.shape(0) * y.shape(1) / film.shape(0);
    let end = (CUBE_POS_Y as usize + 1) * each;
    let mut gate = 0.0f32;
    if real {
        gate = film[CUBE_POS_Y as usize * film.stride(0) + start + column];
    }
    let mut sum = 0.0f32;
    let mut position = CUBE_POS_Y as usize * each + UNIT_POS_Y as usize;
    while position < end {
        if real {
            let above = f32::cast_from(gradient[place_of::<F>(gradient, position) + column]);
            sum += above * f32::cast_from(y[place_of::<F>(y, position) + column]);
            to_y[position * width + column] = F::cast_from(above * gate);
        }
        position += 8;
    }
    let sum = sum_of_column(sum, &mut parts);
    if real && UNIT_POS_Y == 0 {
        to_gate[CUBE_POS_Y as usize * width + column] = sum;
    }
}
