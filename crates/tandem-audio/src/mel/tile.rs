//! The samples of a group of frames, transposed so that one load reads one sample of each frame.
//!
//! In: samples and the number of a group. Out: [`Tile`], row `r` of which contains sample `r` of each
//! block of 256; frame `f` is blocks `f` to `f + 3` of the padded signal. Padding is
//! written for the few blocks that have any. Allocates nothing once built.

// Iterators would become calls and copies here: see the profile in Cargo.toml.
#![allow(clippy::needless_range_loop)]

use super::lanes::{Lanes, MOST_LANES};
use super::padding::reflected;
use super::plan::{HOP, POINTS, Plan};

/// Narrow enough to share the L1 cache with the remainders of the transform.
pub(super) struct Tile<S: Lanes> {
    simd: S,
    /// The last four blocks of the previous group: a frame extends over three further blocks.
    before: Box<[[f32; 4]; HOP]>,
    rows: Box<[S::V; HOP]>,
    short_edges: Edges<i16>,
    float_edges: Edges<f32>,
}

/// Blocks beyond the ends of the signal, with their padding.
type Edges<T> = Box<[[T; HOP]; MOST_LANES]>;

/// A sample type that the kernel supports.
pub(super) trait Sample: Copy + Default {
    /// The window that scales this type to a full scale of one.
    fn window(plan: &Plan) -> &[[f32; 16]; 64];
    /// The buffer for the padded blocks of this type.
    fn edges<S: Lanes>(tile: &mut Tile<S>) -> (&mut Edges<Self>, &mut [S::V; HOP]);
    /// Writes the blocks side by side into the rows.
    fn spread<S: Lanes>(simd: S, blocks: &[&[Self; HOP]; MOST_LANES], rows: &mut [S::V; HOP]);
}

impl<S: Lanes> Tile<S> {
    pub(super) fn new(simd: S) -> Self {
        Self {
            simd,
            before: Box::new([[0.0; 4]; HOP]),
            rows: Box::new([simd.splat(0.0); HOP]),
            short_edges: Box::new([[0; HOP]; MOST_LANES]),
            float_edges: Box::new([[0.0; HOP]; MOST_LANES]),
        }
    }

    /// Prepares the tile for [`Tile::advance`] to the first group.
    #[inline(always)]
    pub(super) fn start<T: Sample>(&mut self, samples: &[T]) {
        self.fill(samples, 3 - S::COUNT as isize);
    }

    /// Loads the group of frames that starts at `frame`, after the previous group.
    #[inline(always)]
    pub(super) fn advance<T: Sample>(&mut self, samples: &[T], frame: usize) {
        for r in 0..HOP {
            self.before[r] = self.simd.last_four(self.rows[r]);
        }
        self.fill(samples, frame as isize + 3);
    }

    /// Samples `n + 64 k` of every frame, for all 16 `k`.
    #[inline(always)]
    pub(super) fn samples(&self, n: usize) -> [S::V; 16] {
        let mut x = [self.simd.splat(0.0); 16];
        for j in 0..4 {
            let r = n + 64 * j;
            let blocks = self.simd.overlapped(&self.before[r], self.rows[r]);
            // By index: with portable lanes an iterator over the array would be copied.
            for block in 0..4 {
                x[4 * block + j] = blocks[block];
            }
        }
        x
    }

    /// Writes the blocks from `first` on into the rows.
    #[inline(always)]
    fn fill<T: Sample>(&mut self, samples: &[T], first: isize) {
        let simd = self.simd;
        let (edges, rows) = T::edges(self);
        for lane in 0..S::COUNT {
            if inside(samples, first + lane as isize).is_none() {
                write_edge(samples, first + lane as isize, &mut edges[lane]);
            }
        }
        let mut blocks = [&edges[0]; MOST_LANES];
        for lane in 0..S::COUNT {
            blocks[lane] = inside(samples, first + lane as isize).unwrap_or(&edges[lane]);
        }
        T::spread(simd, &blocks, rows);
    }
}

/// The block of the padded signal, if it has no padding in it.
#[inline(always)]
fn inside<T>(samples: &[T], block: isize) -> Option<&[T; HOP]> {
    let start = usize::try_from(block * HOP as isize - (POINTS / 2) as isize).ok()?;
    samples.get(start..start + HOP)?.first_chunk()
}

/// The block of the padded signal with its padding, and silence after its end.
#[inline(never)]
fn write_edge<T: Sample>(samples: &[T], block: isize, edge: &mut [T; HOP]) {
    let padded = samples.len() + POINTS;
    let Ok(start) = usize::try_from(block * HOP as isize) else { return edge.fill(T::default()) };
    for k in 0..HOP {
        let place = start + k;
        edge[k] = match place < padded {
            true => samples[reflected(place, POINTS / 2, samples.len())],
            false => T::default(),
        };
    }
}

impl Sample for f32 {
    #[inline(always)]
    fn window(plan: &Plan) -> &[[f32; 16]; 64] {
        &plan.window
    }

    #[inline(always)]
    fn edges<S: Lanes>(tile: &mut Tile<S>) -> (&mut Edges<Self>, &mut [S::V; HOP]) {
        (&mut tile.float_edges, &mut tile.rows)
    }

    #[inline(always)]
    fn spread<S: Lanes>(simd: S, blocks: &[&[f32; HOP]; MOST_LANES], rows: &mut [S::V; HOP]) {
        for c in 0..HOP / S::COUNT {
            let mut square = [simd.splat(0.0); MOST_LANES];
            for lane in 0..S::COUNT {
                square[lane] = simd.load(&blocks[lane][c * S::COUNT..]);
            }
            simd.transpose(&mut square);
            for k in 0..S::COUNT {
                rows[c * S::COUNT + k] = square[k];
            }
        }
    }
}

impl Sample for i16 {
    #[inline(always)]
    fn window(plan: &Plan) -> &[[f32; 16]; 64] {
        &plan.window_16_bit
    }

    #[inline(always)]
    fn edges<S: Lanes>(tile: &mut Tile<S>) -> (&mut Edges<Self>, &mut [S::V; HOP]) {
        (&mut tile.short_edges, &mut tile.rows)
    }

    /// Two samples share one lane: this halves the transposition; the pair is separated at the end.
    #[inline(always)]
    fn spread<S: Lanes>(simd: S, blocks: &[&[i16; HOP]; MOST_LANES], rows: &mut [S::V; HOP]) {
        for c in 0..HOP / (2 * S::COUNT) {
            let mut square = [simd.splat(0.0); MOST_LANES];
            for lane in 0..S::COUNT {
                square[lane] = simd.load_pairs(&blocks[lane][2 * c * S::COUNT..]);
            }
            simd.transpose(&mut square);
            for k in 0..S::COUNT {
                let r = 2 * (c * S::COUNT + k);
                (rows[r], rows[r + 1]) = simd.split_pairs(square[k]);
            }
        }
    }
}
