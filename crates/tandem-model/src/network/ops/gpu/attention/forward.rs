//! The mixed values of the attention: one launch.

use super::super::buffers::{dense, element, empty, empty_as, with_dense_rows};
use super::tiles::{Geometry, load, load_rotated, multiply_rows, pairs_each, row_step, store};
use burn::tensor::Shape;
use burn_cubecl::cubecl; // the name that the macro `cube` expands to
use burn_cubecl::cubecl::ir::ElemType;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

/// Rows that each unit owns of the tile of queries, and of the tiles of keys.
const QUERIES_EACH: usize = 2;
const KEYS_EACH: usize = 2;

/// The mixed values and the logarithms of the sums, in tensors of these shapes.
pub(super) fn launch(
    qkv: CubeTensor,
    lengths: CubeTensor,
    rotary: CubeTensor,
    heads: usize,
    [mixed, logs]: [Shape; 2],
) -> (CubeTensor, CubeTensor) {
    let (qkv, lengths, rotary) = (with_dense_rows(qkv), dense(lengths), dense(rotary));
    let (mixed, logs) = (empty_as(&qkv, mixed), empty(&qkv, logs));
    let (geometry, float) = (Geometry::of(&qkv, heads), element(&qkv));
    attention_kernel::launch(
        &qkv.client.clone(),
        geometry.cubes(QUERIES_EACH),
        Geometry::units(),
        qkv.into_tensor_arg(),
        lengths.into_tensor_arg(),
        rotary.into_tensor_arg(),
        mixed.clone().into_tensor_arg(),
        logs.clone().into_tensor_arg(),
        geometry.scale(),
        geometry.head,
        QUERIES_EACH,
        KEYS_EACH,
        float,
    );
    (mixed, logs)
}

/// One tile of queries over all keys, with a running maximum and sum of the exponentials.
#[cube(launch)]
fn attention_kernel<F: Float>(
    qkv: &Tensor<F>,
    lengths: &Tensor<f32>,
    rotary: &Tensor<f32>,
    mixed: &mut Tensor<F>,
    logs: &mut Tensor<f32>,
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
    let columns = comptime!(2 * pairs_each(head));

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
    let mut keys = Shared::<[f32]>::new_slice(comptime!(key_tile * step));
    let mut values = Shared::<[f32]>::new_slice(comptime!(key_tile * step));
    let mut scores = Shared::<[f32]>::new_slice(comptime!(query_tile * score_step));

    let mut sums = Array::<f32>::new(queries_each);
    let mut most = Array::<f32>::new(queries_each);
    let mut result = Array::<f32>::new(comptime!(queries_each * columns));
    let mut tile = Array::<f32>::new(comptime!(queries_each * keys_each));
    #[unroll]
    for i in 0..queries_each {
        sums[i] = 0.0f32;
        most[i] = -1e30f32;
        #[unroll]
        for c in 0..columns {
            result[i * columns + c] = 0.0f32;
        }
    }

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
    // A tile of padding has no key to look at.
    let mut key = select(first < length, 0, length);
    while key < length {
        let from = start + width;
        load_rotated::<F>(
            qkv, from, stride, rotary, 1.0f32, key, length, &mut keys, keys_each, head,
        );
        load::<F>(qkv, start + 2 * width, stride, key, length, &mut values, keys_each, head);
        sync_cube();
        multiply_rows(&queries, &keys, &mut tile, queries_each, keys_each, head);
        #[unroll]
        for i in 0..queries_each {
            #[unroll]
            for j in 0..keys_each {
                let masked = key + x + 16 * j >= length;
                let score = select(masked, -1e30f32, tile[i * keys_each + j]);
                tile[i * keys_each + j] = score;
                scores[(y + 16 * i) * score_step + x + 16 * j] = score;
            }
        }
        sync_cube();
        #[unroll]
        for i in 0..queries_each {
            let mut largest = most[i];
            for k in 0..key_tile {
                largest = max(largest, scores[(y + 16 * i) * score_step + k]);
            }
            let factor = (most[i] - largest).exp();
            most[i] = largest;
            sums[i] *= factor;
            #[unroll]
            for c in 0..columns {
                result[i * columns + c] *= factor;
            }
        }
        // Every unit of a row has read its scores.
        sync_cube();
        #[unroll]
        for i in 0..queries_each {
            #[unroll]
            for j in 0..keys_each {
                let weight = (tile[i * keys_each + j] - most[i]).exp();
                let masked = key + x + 16 * j >= length;
                scores[(y + 16 * i) * score_step + x + 16 * j] = select(masked, 0.0f32, weight);
            }
        }
        sync_cube();
        for k in 0..key_tile {
            #[unroll]
            for i in 0..queries_each {
                let weight = scores[(y + 16 * i) * score_step + k];
                sums[i] += weight;
                #[unroll]
                for c in 0..columns {
                    result[i * columns + c] += weight * values[k * step + x + 16 * c];
                }
            }
        }
        // The next keys and values go to the same place.
        sync_cube();
        key += key_tile;
    }

    #[unroll]
    for i in 0..queries_each {
        let position = first + y + 16 * i;
        if position < positions {
            let real = position < length;
            let place = row * mixed.stride(0) + position * mixed.stride(1) + at * head;
            store::<F>(&result, i * columns, 1.0f32 / sums[i], real, place, mixed, head);
            if x == 0 {
                logs[log_start + position] = select(real, most[i] + sums[i].ln(), 0.0f32);
            }
        }
    }
}
