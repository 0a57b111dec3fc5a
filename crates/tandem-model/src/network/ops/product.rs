//! Products of small matrices that fit in the cache, for attention heads.
//!
//! In: packed, row-major slices. Out: the same. Large matrices use the product of the backend instead, since this one
//! does no packing.

use pulp::Simd;

/// Rows of one tile: rows of the left matrix are padded to a multiple of this.
const ROWS: usize = 8;

/// A row-major matrix that is part of a larger one.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub values: &'a [f32],
    /// Distance between rows.
    pub step: usize,
}

/// Whether the product replaces or extends the result.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Into {
    Replace,
    Add,
}

/// The left matrix, and how it is stored.
#[derive(Clone, Copy)]
pub(super) enum Left<'a> {
    /// `[rows, depth]`.
    Rows(Matrix<'a>),
    /// `[depth, rows]`.
    Columns(Matrix<'a>),
}

/// `left * right`: `[rows, depth] * [depth, columns]`, the result's rows `step` apart.
///
/// `rows` is a multiple of 8 and `columns` one of 16. Loops are duplicated and use indices, because only inlined
/// code is compiled for the widest registers: with `zip`, a third of the step of a tiny voice was spent in iterator
/// calls.
#[inline(always)]
pub(super) fn product<S: Simd>(
    simd: S,
    [rows, depth, columns]: [usize; 3],
    left: Left<'_>,
    right: Matrix<'_>,
    (result, step): (&mut [f32], usize),
    into: Into,
) {
    // Sixteen sums of two registers each need more than sixteen registers.
    let twice = if S::REGISTER_COUNT > 16 { 2 * S::F32_LANES } else { columns + 1 };
    let mut column = 0;
    while column + twice <= columns {
        for row in (0..rows).step_by(ROWS) {
            let right = Matrix { values: &right.values[column..], step: right.step };
            let sums = tile::<S, 2>(simd, row, depth, left, right);
            store(simd, sums, &mut result[row * step + column..], step, into);
        }
        column += twice;
    }
    while column < columns {
        for row in (0..rows).step_by(ROWS) {
            let right = Matrix { values: &right.values[column..], step: right.step };
            let sums = tile::<S, 1>(simd, row, depth, left, right);
            store(simd, sums, &mut result[row * step + column..], step, into);
        }
        column += S::F32_LANES;
    }
}

/// Eight rows of the product from `row` on, `WIDE` registers wide.
#[inline(always)]
fn tile<S: Simd, const WIDE: usize>(
    simd: S,
    row: usize,
    depth: usize,
    left: Left<'_>,
    right: Matrix<'_>,
) -> [[S::f32s; WIDE]; ROWS] {
    match left {
        Left::Rows(left) => {
            let left = Matrix { values: &left.values[row * left.step..], step: left.step };
            rows_times(simd, depth, left, right)
        }
        Left::Columns(left) => {
            let left = Matrix { values: &left.values[row..], step: left.step };
            columns_times(simd, depth, left, right)
        }
    }
}

/// A tile of a row-major matrix.
#[allow(clippy::needless_range_loop, reason = "iterators are not inlined here")]
#[inline(always)]
fn rows_times<S: Simd, const WIDE: usize>(
    simd: S,
    depth: usize,
    left: Matrix<'_>,
    right: Matrix<'_>,
) -> [[S::f32s; WIDE]; ROWS] {
    let rows: [&[f32]; ROWS] = std::array::from_fn(|row| &left.values[row * left.step..][..depth]);
    let mut sums = [[simd.splat_f32s(0.0); WIDE]; ROWS];
    for deep in 0..depth {
        let right = &right.values[deep * right.step..][..WIDE * S::F32_LANES];
        let (right, _) = S::as_simd_f32s(right);
        let mut row = 0;
        while row < ROWS {
            let left = simd.splat_f32s(rows[row][deep]);
            let mut wide = 0;
            while wide < WIDE {
                sums[row][wide] = simd.mul_add_e_f32s(left, right[wide], sums[row][wide]);
                wide += 1;
            }
            row += 1;
        }
    }
    sums
}

/// A tile of a column-major matrix.
#[inline(always)]
fn columns_times<S: Simd, const WIDE: usize>(
    simd: S,
    depth: usize,
    left: Matrix<'_>,
    right: Matrix<'_>,
) -> [[S::f32s; WIDE]; ROWS] {
    let mut sums = [[simd.splat_f32s(0.0); WIDE]; ROWS];
    for deep in 0..depth {
        let left = &left.values[deep * left.step..][..ROWS];
        let right = &right.values[deep * right.step..][..WIDE * S::F32_LANES];
        let (right, _) = S::as_simd_f32s(right);
        let mut row = 0;
        while row < ROWS {
            let left = simd.splat_f32s(left[row]);
            let mut wide = 0;
            while wide < WIDE {
                sums[row][wide] = simd.mul_add_e_f32s(left, right[wide], sums[row][wide]);
                wide += 1;
            }
            row += 1;
        }
    }
    sums
}

#[inline(always)]
fn store<S: Simd, const WIDE: usize>(
    simd: S,
    sums: [[S::f32s; WIDE]; ROWS],
    place: &mut [f32],
    step: usize,
    into: Into,
) {
    let mut row = 0;
    while row < ROWS {
        let place = &mut place[row * step..][..WIDE * S::F32_LANES];
        let (place, _) = S::as_mut_simd_f32s(place);
        let mut wide = 0;
        while wide < WIDE {
            let sum = sums[row][wide];
            place[wide] = if into == Into::Add { simd.add_f32s(place[wide], sum) } else { sum };
            wide += 1;
        }
        row += 1;
    }
}
