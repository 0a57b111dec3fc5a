//! How kernels walk a tensor `[batch, positions, width]` in parallel.
//!
//! In: the shape. Out: tasks over blocks of positions that never cross from one row of the batch into the next. Blocks
//! are cut the same way whatever the number of threads, and what they sum up is added in their order: so results are
//! the same on any number of threads.

use rayon::prelude::*;

/// Positions of one task: long enough to pay for it, short enough to stay in the cache.
const BLOCK: usize = 32;

/// The shape of a tensor that is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub batch: usize,
    pub positions: usize,
    pub width: usize,
}

/// One block of positions, as it is handed to a task.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// Which row of the batch it is part of.
    pub row: usize,
    /// Its first position within that row.
    pub position: usize,
    /// Where its first element stands in the tensor.
    from: usize,
    /// How many elements it has.
    count: usize,
}

impl Block {
    /// How many elements it has.
    pub fn count(self) -> usize {
        self.count
    }

    /// Its part of a tensor of that shape.
    pub fn of(self, values: &[f32]) -> &[f32] {
        &values[self.from..][..self.count]
    }
}

impl Rows {
    /// How many elements there are.
    pub fn elements(self) -> usize {
        self.batch * self.positions * self.width
    }

    /// The same elements as one long row.
    pub fn in_one(self) -> Rows {
        Rows { batch: 1, positions: self.batch * self.positions, width: self.width }
    }

    /// Runs `task` on every block of `values` in parallel; gives what tasks give, in order.
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

    /// The same without values to change.
    pub fn read<T: Send>(self, task: impl Fn(Block) -> T + Sync) -> Vec<T> {
        let blocks = self.batch * self.blocks_of_row();
        (0..blocks).into_par_iter().map(|index| task(self.block(index))).collect()
    }

    /// Adds up what each block gave, in order: `[batch, sums]`, or `[1, sums]` where `rows` is one.
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
