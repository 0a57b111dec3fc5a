//! What the kernels of the attention share: tiles in shared memory, and products of them.
//!
//! A cube has 16 x 16 units and works on one tile of queries (or keys) of one head of one row. Unit `(x, y)` owns the
//! tile's rows `y + 16 i`, and of each row the columns `x + 16 j`. In a tile, the two halves of a head, which the rotary
//! positions pair, are each filled up with zeros to a multiple of 16 columns, so that every unit owns both elements of its
//! pairs. Rows are one float longer, so that 16 units read 16 banks. No atomics and no plane operations:
//! results are equal from run to run, and every backend of CubeCL can run the kernels.

use burn_cubecl::cubecl; // the name that the macro `cube` expands to
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

/// Units along each side of a cube.
pub(super) const SIDE: usize = 16;

/// The sizes of a launch.
pub(super) struct Geometry {
    batch: usize,
    positions: usize,
    heads: usize,
    /// Floats of a head.
    pub(super) head: usize,
}

impl Geometry {
    pub(super) fn of(qkv: &CubeTensor, heads: usize) -> Geometry {
        let shape = qkv.meta.shape();
        Geometry { batch: shape[0], positions: shape[1], heads, head: shape[2] / 3 / heads }
    }

    /// One cube for each tile of `SIDE * rows_each` positions.
    pub(super) fn cubes(&self, rows_each: usize) -> CubeCount {
        let tiles = self.positions.div_ceil(SIDE * rows_each);
        CubeCount::Static(tiles as u32, self.heads as u32, self.batch as u32)
    }

    pub(super) fn units() -> CubeDim {
        CubeDim::new_2d(SIDE as u32, SIDE as u32)
    }

    /// The factor of the scores.
    pub(super) fn scale(&self) -> f32 {
        (self.head as f32).sqrt().recip()
    }
}

/// Columns of a tile that each unit owns in each half of a head.
pub(super) fn pairs_each(head: usize) -> usize {
    (head / 2).div_ceil(SIDE)
}

/// Floats from one row of a tile to the next.
pub(super) fn row_step(head: usize) -> usize {
    2 * SIDE * pairs_each(head) + 1
}

/// Rows `first..` of one head to shared memory, rotated by their positions, times `factor`; zeros for padding.
/// `start` is the place of the head's first element at the row's first position.
#[cube]
pub(super) fn load_rotated<F: Float>(
    from: &Tensor<F>,
    start: usize,
    stride: usize,
    rotary: &Tensor<f32>,
    factor: f32,
    first: usize,
    length: usize,
    to: &mut Shared<[f32]>,
    #[comptime] rows_each: usize,
    #[comptime] head: usize,
) {
    let half = comptime!(head / 2);
    let room = comptime!(SIDE * pairs_each(head));
    let step = comptime!(row_step(head));
    let sines = rotary.shape(1) * half;
    #[unroll]
    for i in 0..rows_each {
        let offset = UNIT_POS_Y as usize + 16 * i;
        let position = first + offset;
        #[unroll]
        for c in 0..comptime!(pairs_each(head)) {
            let pair = UNIT_POS_X as usize + 16 * c;
            let mut low = 0.0f32;
            let mut high = 0.0f32;
            if position < length && pair < half {
                let place = start + position * stride + pair;
                let (a, b) = (f32::cast_from(from[place]), f32::cast_from(from[place + half]));
                let cos = factor * rotary[position * half + pair];
                let sin = factor * rotary[sines + position * half + pair];
                low = a * cos - b * sin;
                high = a * sin + b * cos;
            }
            to[offset * step + pair] = low;
            to[offset * step + pair + room] = high;
        }
    }
}

/// The same without the rotation.
#[cube]
pub(super) fn load<F: Float>(
    from: &Tensor<F>,
    start: usize,
    stride: usize,
    first: usize,
    length: usize,
    to: &mut Shared<[f32]>,
    #[comptime] rows_each: usize,
    #[comptime] head: usize,
) {
    let half = comptime!(head / 2);
    let room = comptime!(SIDE * pairs_each(head));
    let step = comptime!(row_step(head));
    #[unroll]
    for i in 0..rows_each {
        let offset = UNIT_POS_Y as usize + 16 * i;
        let position = first + offset;
        #[unroll]
        for c in 0..comptime!(pairs_each(head)) {
            let pair = UNIT_POS_X as usize + 16 * c;
            let mut low = 0.0f32;
            let mut high = 0.0f32;
            if position < length && pair < half {
                let place = start + position * stride + pair;
                low = f32::cast_from(from[place]);
                high = f32::cast_from(from[place + half]);
            }
            to[offset * step + pair] = low;
            to[offset * step + pair + room] = high;
        }
    }
}

/// The products of this unit's rows of `left` with its rows of `right`.
#[cube]
pub(super) fn multiply_rows(
    left: &Shared<[f32]>,
    right: &Shared<[f32]>,
    to: &mut Array<f32>,
    #[comptime] left_each: usize,
    #[comptime] right_each: usize,
    #[comptime] head: usize,
) {
    let step = comptime!(row_step(head));
    let (x, y) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
    #[unroll]
    for i in 0..comptime!(left_each * right_each) {
        to[i] = 0.0f32;
    }
    for d in 0..comptime!(row_step(head) - 1) {
        #[unroll]
        for i in 0..left_each {
            let a = left[(y + 16 * i) * step + d];
            #[unroll]
            for j in 0..right_each {
                to[i * right_each + j] += a * right[(x + 16 * j) * step + d];
            }
        }
    }
}

/// This unit's columns of a row of gradients, rotated back, times `factor`; zeros for padding.
#[cube]
pub(super) fn store_turned_back<F: Float>(
    from: &Array<f32>,
    #[comptime] offset: usize,
    rotary: &Tensor<f32>,
    factor: f32,
    position: usize,
    real: bool,
    place: usize,
    to: &mut Tensor<F>,
    #[comptime] head: usize,
) {
    let half = comptime!(head / 2);
    let pairs = comptime!(pairs_each(head));
    let sines = rotary.shape(1) * half;
    #[unroll]
    for c in 0..pairs {
        let pair = UNIT_POS_X as usize + 16 * c;
        if pair < half {
            let cos = factor * rotary[position * half + pair];
            let sin = factor * rotary[sines + position * half + pair];
            let (low, high) = (from[offset + c], from[offset + c + pairs]);
            to[place + pair] = F::cast_from(select(real, low * cos + high * sin, 0.0f32));
            to[place + pair + half] = F::cast_from(select(real, high * cos - low * sin, 0.0f32));
        }
    }
}

/// The same without the rotation.
#[cube]
pub(super) fn store<F: Float>(
    from: &Array<f32>,
    #[comptime] offset: usize,
    factor: f32,
    real: bool,
    place: usize,
    to: &mut Tensor<F>,
    #[comptime] head: usize,
) {
    let half = comptime!(head / 2);
    let pairs = comptime!(pairs_each(head));
    #[unroll]
    for c in 0..pairs {
        let pair = UNIT_POS_X as usize + 16 * c;
        if pair < half {
            to[place + pair] = F::cast_from(select(real, factor * from[offset + c], 0.0f32));
            to[place + pair + half] =
                F::cast_from(select(real, factor * from[offset + c + pairs], 0.0f32));
        }
    }
}
