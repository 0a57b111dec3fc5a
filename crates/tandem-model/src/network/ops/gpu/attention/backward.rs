//! The gradient of the attention: one launch for the queries, one for keys and values.

use super::super::buffers::{dense, element, empty, empty_as, with_dense_rows};
use super::tiles::{
    Geometry, load, load_rotated, multiply_rows, pairs_each, row_step, store, store_turned_back,
};
use burn_cubecl::cubecl; // the name that the macro `cube` expands to
use burn_cubecl::cubecl::ir::ElemType;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

/// Rows that each unit owns of the tile that a cube keeps, and of the tiles that it goes through.
const KEPT_EACH: usize = 2;
const PASSING_EACH: usize = 1;

/// The gradient of `qkv`.
pub(super) fn launch(
    qkv: CubeTensor,
    lengths: CubeTensor,
    rotary: CubeTensor,
    mixed: CubeTensor,
    logs: CubeTensor,
    gradient: CubeTensor,
    heads: usize,
) -> CubeTensor {
    let [qkv, mixed, gradient] = [qkv, mixed, gradient].map(with_dense_rows);
    let [lengths, rotary, logs] = [lengths, rotary, logs].map(dense);
    let result = empty_as(&qkv, qkv.meta.shape().clone());
    let means = empty(&qkv, logs.meta.shape().clone());
    let (geometry, float) = (Geometry::of(&qkv, heads), element(&qkv));
    let client = qkv.client.clone();
    queries_kernel::launch(
        &client,
        geometry.cubes(KEPT_EACH),
        Geometry::units(),
        qkv.clone().into_tensor_arg(),
        lengths.clone().into_tensor_arg(),
        rotary.clone().into_tensor_arg(),
        mixed.into_tensor_arg(),
        gradient.clone().into_tensor_arg(),
        logs.clone().into_tensor_arg(),
        means.clone().into_tensor_arg(),
        result.clone().into_tensor_arg(),
        geometry.scale(),
        geometry.head,
        KEPT_EACH,
        PASSING_EACH,
        float,
    );
    keys_kernel::launch(
        &client,
        geometry.cubes(KEPT_EACH),
        Geometry::units(),
        qkv.into_tensor_arg(),
        lengths.into_tensor_arg(),
        rotary.into_tensor_arg(),
        gradient.into_tensor_arg(),
        logs.into_tensor_arg(),
        means.into_tensor_arg(),
        result.clone().into_tensor_arg(),
        geometry.scale(),
        geometry.head,
        KEPT_EACH,
        PASSING_EACH,
        float,
    );
    result
}

/// The gradients of one tile of queries, over all keys. Also each query's mean of the gradients of its scores, for
/// [`keys_kernel`].
#[cube(launch)]
fn queries_kernel<F: Float>(
    qkv: &Tensor<F>,
    lengths: &Tensor<f32>,
    rotary: &Tensor<f32>,
    mixed: &Tensor<F>,
    gradient: &Tensor<F>,
    logs: &Tensor<f32>,
    means: &mut Tensor<f32>,
    result: &mut Tensor<F>,
    scale: f32,
    #[comptime] head: usize,
    #[comptime] queries_each: usize,
    #[comptime] keys_each: usize,
    #[define(F)] _float: ElemType,
) {
    let query_tile = comptime!(16 * queries_each);
    let key_tile = comptime!(16 * keys_each);
    let step = comptime!(row_step(head));
    let score_step = comptime!(key_tile + 1);
    let pairs = comptime!(pairs_each(head));
    let columns = comptime!(2 * pairs);
    let half = comptime!(head / 2);
    let room = comptime!(16 * pairs);

    let (x, y) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
    let first = CUBE_POS_X as usize * query_tile;
    let (at, row) = (CUBE_POS_Y as usize, CUBE_POS_Z as usize);
    let positions = qkv.shape(1);
    let width = mixed.shape(2);
    let length = usize::cast_from(lengths[row]);
    let start = row * qkv.stride(0) + at * head;
    let stride = qkv.stride(1);
    let log_start = (row * logs.shape(1) + at) * positions;

    let mut queries = Shared::<[f32]>::new_slice(comptime!(query_tile * step));
    let mut upward = Shared::<[f32]>::new_slice(comptime!(query_tile * step));
    let mut keys = Shared::<[f32]>::new_slice(comptime!(key_tile * step));
    let mut values = Shared::<[f32]>::new_slice(comptime!(key_tile * step));
    let mut slopes = Shared::<[f32]>::new_slice(comptime!(query_tile * score_step));

    let mut log = Array::<f32>::new(queries_each);
    let mut mean = Array::<f32>::new(queries_each);
    let mut sums = Array::<f32>::new(comptime!(queries_each * columns));
    let mut tile = Array::<f32>::new(comptime!(queries_each * keys_each));
    let mut slope = Array::<f32>::new(comptime!(queries_each * keys_each));

    let gradient_start = row * gradient.stride(0) + at * head;
    let gradient_stride = gradient.stride(1);
    load_rotated::<F>(
        qkv,
        start,
        stride,
        rotary,
        scale,
        first,
        length,
        &mut queries,
        queries_each,
        head,
    );
    load::<F>(
        gradient,
        gradient_start,
        gradient_stride,
        first,
        length,
        &mut upward,
        queries_each,
        head,
    );
    sync_cube();
    // Each of a row's 16 units sums up its columns; then each unit sums up the 16.
    #[unroll]
    for i in 0..queries_each {
        let position = first + y + 16 * i;
        let real = position < length;
        let mut part = 0.0f32;
        log[i] = 0.0f32;
        if real {
            let place = row * mixed.stride(0) + position * mixed.stride(1) + at * head;
            #[unroll]
            for c in 0..pairs {
                let pair = x + 16 * c;
                if pair < half {
                    let above = (y + 16 * i) * step + pair;
                    part += f32::cast_from(mixed[place + pair]) * upward[above];
                    part += f32::cast_from(mixed[place + pair + half]) * upward[above + room];
                }
            }
            log[i] = logs[log_start + position];
        }
        slopes[(y + 16 * i) * score_step + x] = part;
        #[unroll]
        for c in 0..columns {
            sums[i * columns + c] = 0.0f32;
        }
    }
    sync_cube();
    #[unroll]
    for i in 0..queries_each {
        let mut all = 0.0f32;
        for k in 0..16 {
            all += slopes[(y + 16 * i) * score_step + k];
        }
        mean[i] = all;
        let position = first + y + 16 * i;
        if x == 0 && position < positions {
            means[log_start + position] = all;
        }
    }
    let mut key = select(first < length, 0, length);
    while key < length {
        let from = start + width;
        load_rotated::<F>(
            qkv, from, stride, rotary, 1.0f32, key, length, &mut keys, keys_each, head,
        );
        load::<F>(qkv, start + 2 * width, stride, key, length, &mut values, keys_each, head);
        sync_cube();
        multiply_rows(&queries, &keys, &mut tile, queries_each, keys_each, head);
        multiply_rows(&upward, &values, &mut slope, queries_each, keys_each, head);
        #[unroll]
        for i in 0..queries_each {
            #[unroll]
            for j in 0..keys_each {
                let weight = (tile[i * keys_each + j] - log[i]).exp();
                let down = weight * (slope[i * keys_each + j] - mean[i]);
                let masked = key + x + 16 * j >= length;
                slopes[(y + 16 * i) * score_step + x + 16 * j] = select(masked, 0.0f32, down);
            }
        }
        sync_cube();
        for k in 0..key_tile {
            #[unroll]
            for i in 0..queries_each {
                let down = slopes[(y + 16 * i) * score_step + k];
                #[unroll]
                for c in 0..columns {
                    sums[i * columns + c] += down * keys[k * step + x + 16 * c];
                }
            }
        }
        sync_cube();
        key += key_tile;
    }
    #[unroll]
    for i in 0..queries_each {
        let position = first + y + 16 * i;
        if position < positions {
            let place = row * result.stride(0) + position * result.stride(1) + at * head;
            let real = position < length;
            store_turned_back::<F>(
                &sums,
                i * columns,
                rotary,
                scale,
                position,
                real,
                place,
                result,
                head,
            );
        }
    }
}

/// The gradients of one tile of keys and their values, over all queries.
#[cube(launch)]
fn keys_kernel<F: Float>(
    qkv: &Tensor<F>,
    lengths: &Tensor<f32>,
    rotary: &Tensor<f32>,
    gradient: &Tensor<F>,
    logs: &Tensor<f32>,
    means: &Tensor<f32>,
    result: &mut Tensor<F>,
    scale: f32,
    #[comptime] head: usize,
    #[comptime] keys_each: usize,
    #[comptime] queries_each: usize,
    #[define(F)] _float: ElemType,
) {
    let key_tile = comptime!(16 * keys_each);
    let query_tile = comptime!(16 * queries_each);
    let step = comptime!(row_step(head));
    let score_step = comptime!(query_tile + 1);
    let columns = comptime!(2 * pairs_each(head));

    let (x, y) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
    let first = CUBE_POS_X as usize * key_tile;
    let (at, row) = (CUBE_POS_Y as usize, CUBE_POS_Z as usize);
    let positions = qkv.shape(1);
    let width = gradient.shape(2);
    let length = usize::cast_from(lengths[row]);
    let start = row * qkv.stride(0) + at * head;
    let stride = qkv.stride(1);
    let log_start = (row * logs.shape(1) + at) * positions;
    let gradient_start = row * gradient.stride(0) + at * head;
    let gradient_stride = gradient.stride(1);

    let mut keys = Shared::<[f32]>::new_slice(comptime!(key_tile * step));
    let mut values = Shared::<[f32]>::new_slice(comptime!(key_tile * step));
    let mut queries = Shared::<[f32]>::new_slice(comptime!(query_tile * step));
    let mut upward = Shared::<[f32]>::new_slice(comptime!(query_tile * step));
    let mut weights = Shared::<[f32]>::new_slice(comptime!(key_tile * score_step));
    let mut slopes = Shared::<[f32]>::new_slice(comptime!(key_tile * score_step));

    let mut key_sums = Array::<f32>::new(comptime!(keys_each * columns));
    let mut value_sums = Array::<f32>::new(comptime!(keys_each * columns));
    let mut tile = Array::<f32>::new(comptime!(keys_each * queries_each));
    let mut slope = Array::<f32>::new(comptime!(keys_each * queries_each));
    #[unroll]
    for i in 0..comptime!(keys_each * columns) {
        key_sums[i] = 0.0f32;
        value_sums[i] = 0.0f32;
    }

    let from = start + width;
    load_rotated::<F>(qkv, from, stride, rotary, 1.0f32, first, length, &mut keys, keys_each, head);
    load::<F>(qkv, start + 2 * width, stride, first, length, &mut values, keys_each, head);
    let mut query = select(first < length, 0, length);
    while query < length {
        load_rotated::<F>(
            qkv,
            start,
            stride,
            rotary,
            scale,
            query,
            length,
            &mut queries,
            queries_each,
            head,
        );
        load::<F>(
            gradient,
            gradient_start,
            gradient_stride,
            query,
            length,
            &mut upward,
            queries_each,
            head,
        );
        sync_cube();
        multiply_rows(&keys, &queries, &mut tile, keys_each, queries_each, head);
        multiply_rows(&values, &upward, &mut slope, keys_each, queries_each, head);
        #[unroll]
        for j in 0..queries_each {
            let position = query + x + 16 * j;
            let real = position < length;
            let mut log = 0.0f32;
            let mut mean = 0.0f32;
            if real {
                log = logs[log_start + position];
                mean = means[log_start + position];
            }
            #[unroll]
            for i in 0..keys_each {
                let real = real && first + y + 16 * i < length;
                let weight = select(real, (tile[i * queries_each + j] - log).exp(), 0.0f32);
                let place = (y + 16 * i) * score_step + x + 16 * j;
                weights[place] = weight;
                slopes[place] = weight * (slope[i * queries_each + j] - mean);
            }
        }
        sync_cube();
        for q in 0..query_tile {
            #[unroll]
            for i in 0..keys_each {
                let weight = weights[(y + 16 * i) * score_step + q];
                let down = slopes[(y + 16 * i) * score_step + q];
                #[unroll]
                for c in 0..columns {
                    value_sums[i * columns + c] += weight * upward[q * step + x + 16 * c];
                    key_sums[i * columns + c] += down * queries[q * step + x + 16 * c];
                }
            }
        }
        sync_cube();
        query += query_tile;
    }
    #[unroll]
    for i in 0..keys_each {
        let position = first + y + 16 * i;
        if position < positions {
            let place = row * result.stride(0) + position * result.stride(1) + at * head + width;
            let real = position < length;
            // The queries carry the scale.
            store_turned_back::<F>(
                &key_sums,
                i * columns,
                rotary,
                1.0f32,
                position,
                real,
                place,
                result,
                head,
            );
            store::<F>(&value_sums, i * columns, 1.0f32, real, place + width, result, head);
        }
    }
}
