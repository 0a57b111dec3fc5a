//! Parallel iteration over a tensor `[batch, positions, width]`.
//!
//! In: the shape. Out: tasks over blocks of positions that never cross from one row of the batch into the next. Blocks
//! do not depend on the number of threads, and their sums are added in order, so results are the same on any number of
//! threads.

use rayon::prelude::*;

/// Positions of one task: large enough to be worth a task, small enough for the cache.
const BLOCK: usize = 32;

/// The shape of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub batch: usize,
    pub positions: usize,
    pub width: usize,
}

/// One block of positions.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// Row of the batch.
    pub row: usize,
    /// First position within the row.
    pub position: usize,
    /// Index of the first element in the tensor.
    from: usize,
    count: usize,
}

impl Block {
    pub fn count(self) -> usize {
        self.count
    }

    /// Its part of a tensor of that shape.
    pub fn of(self, values: &[f32]) -> &[f32] {
        &values[self.from..][..self.count]
    }
}

impl Rows {
    pub fn elements(self) -> usize {
        self.batch * self.positions * self.width
    }

    /// The same elements as one row.
    pub fn in_one(self) -> Rows {
        Rows { batch: 1, positions: self.batch * self.positions, width: self.width }
    }

    /// Runs `task` on every block of `values` in parallel. Returns the results in order.
    pub fn each<T: Send>(
        self,
        values: &mut [f32],
        task: impl Fn(Block, &mut [f32]) -> T + Sync,
    ) -> Vec<T> {
        let mut rest = values;
        let mut blocks = Vec::with_capacity(self.batch * self.blocks_of_row());
        for block in (0..self.batch * self.blocks_of_row()).map(|index| self.block(index)) {
            let (values, after) = rest.split_at_mut(block.count);
            blocks.push((block, values));
            rest = after;
        }
        blocks.into_par_iter().map(|(block, values)| task(block, values)).collect()
    }

    /// Runs `task` on every block without values.
    pub fn read<T: Send>(self, task: impl Fn(Block) -> T + Sync) -> Vec<T> {
        let blocks = self.batch * self.blocks_of_row();
        (0..blocks).into_par_iter().map(|index| task(self.block(index))).collect()
    }

    /// Adds the sums of the blocks in order: `[batch, sums]`, or `[1, sums]` if `rows` is one.
    pub fn totals(self, rows: usize, sums: usize, parts: &[Vec<f32>]) -> Vec<f32> {
        let mut totals = vec![0.0; rows * sums];
        for (index, part) in parts.iter().enumerate() {
            let row = index / self.blocks_of_row() % rows;
            let totals = &mut totals[row * sums..][..sums];
            totals.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        totals
    }

    fn block(self, index: usize) -> Block {
        let blocks = self.blocks_of_row();
        let (row, position) = (index / blocks, index % blocks * BLOCK);
        let count = BLOCK.min(self.positions - position) * self.width;
        Block { row, position, from: (row * self.positions + position) * self.width, count }
    }

    fn blocks_of_row(self) -> usize {
        if self.width == 0 { 0 } else { self.positions.div_ceil(BLOCK) }
    }
}
