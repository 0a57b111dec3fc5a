//! One head of one row, copied from the packed tensor for small matrix products.
//!
//! In: the packed queries, keys and values. Out: rows of `padded(head)`, rotated by their positions, and their gradients
//! rotated back.

use super::rotary::Rotary;
use super::{BLOCK, Geometry};
use crate::network::ops::lanes::padded;

/// One head of one row in the packed tensor.
pub(super) struct HeadInput<'a> {
    /// The row's part of `qkv`, from the first query of this head.
    qkv: &'a [f32],
    pub(super) width: usize,
    pub(super) head: usize,
    pub(super) length: usize,
    rotary: &'a Rotary,
}

impl<'a> HeadInput<'a> {
    pub(super) fn of(
        qkv: &'a [f32],
        geometry: &Geometry,
        rotary: &'a Rotary,
        row: usize,
        head: usize,
    ) -> HeadInput<'a> {
        let width = geometry.width();
        let from = row * geometry.positions * 3 * width + head * geometry.head;
        HeadInput {
            qkv: qkv.get(from..).unwrap_or_default(),
            width,
            head: geometry.head,
            length: geometry.lengths[row],
            rotary,
        }
    }

    /// The vector of one position: queries are part 0, keys part 1, values part 2.
    #[inline(always)]
    pub(super) fn vector(&self, part: usize, position: usize) -> &'a [f32] {
        &self.qkv[(3 * position + part) * self.width..][..self.head]
    }

    /// Queries or keys with their rotary positions, times `factor`, as rows of `padded(head)`.
    #[inline(always)]
    pub(super) fn turned(&self, part: usize, factor: f32) -> Vec<f32> {
        let (half, step) = (self.head / 2, padded(self.head));
        let mut packed = vec![0.0; padded(self.length) * step];
        for (position, packed) in packed.chunks_exact_mut(step).take(self.length).enumerate() {
            let (low, high) = self.vector(part, position).split_at(half);
            let (to_low, to_high) = packed[..self.head].split_at_mut(half);
            let (cos, sin) = self.rotary.at(position);
            for index in 0..half {
                let (cos, sin) = (factor * cos[index], factor * sin[index]);
                to_low[index] = low[index] * cos - high[index] * sin;
                to_high[index] = low[index] * sin + high[index] * cos;
            }
        }
        packed
    }

    /// Values as rows of `padded(head)`.
    #[inline(always)]
    pub(super) fn values(&self) -> Vec<f32> {
        self.packed(|position| self.vector(2, position))
    }

    #[inline(always)]
    pub(super) fn packed(&self, vector: impl Fn(usize) -> &'a [f32]) -> Vec<f32> {
        let step = padded(self.head);
        let mut packed = vec![0.0; padded(self.length) * step];
        for (position, packed) in packed.chunks_exact_mut(step).take(self.length).enumerate() {
            packed[..self.head].copy_from_slice(vector(position));
        }
        packed
    }

    /// Rows of `padded(head)` as columns: `[head, padded(length)]`.
    #[inline(always)]
    pub(super) fn transposed(&self, rows: &[f32]) -> Vec<f32> {
        let (from_step, to_step) = (padded(self.head), padded(self.length));
        let mut columns = vec![0.0; self.head * to_step];
        for (position, row) in rows.chunks_exact(from_step).enumerate() {
            for (index, &value) in row[..self.head].iter().enumerate() {
                columns[index * to_step + position] = value;
            }
        }
        columns
    }

    #[inline(always)]
    pub(super) fn scale(&self) -> f32 {
        (self.head as f32).sqrt().recip()
    }

    /// First and number of queries of each block.
    #[inline(always)]
    pub(super) fn blocks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let length = self.length;
        (0..length).step_by(BLOCK).map(move |first| (first, BLOCK.min(length - first)))
    }
}

impl HeadInput<'_> {
    /// The gradient before the rotation, from the one after it.
    #[inline(always)]
    pub(super) fn turn_back(&self, gradient: &mut [f32], factor: f32) {
        let (half, step) = (self.head / 2, padded(self.head));
        for (position, gradient) in gradient.chunks_exact_mut(step).take(self.length).enumerate() {
            let (low, high) = gradient[..self.head].split_at_mut(half);
            let (cos, sin) = self.rotary.at(position);
            for index in 0..half {
                let (cos, sin) = (factor * cos[index], factor * sin[index]);
                let (up, down) = (low[index], high[index]);
                low[index] = up * cos + down * sin;
                high[index] = down * cos - up * sin;
            }
        }
    }
}
