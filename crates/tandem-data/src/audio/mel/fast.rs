//! The fast kernel: 1024 points, hop 256, one frame per lane. Written once for all vector units.
//!
//! In: samples. Out: log-mel values, frame after frame. Per group of `COUNT` frames:
//!
//! 1. `spread`: sample `r` of each 256-sample block side by side, so that the same place of
//!    neighbouring frames is one load (frame `f` is blocks `f` to `f + 3`).
//! 2. `first_pass`: window and four halvings, real; leaves eight remainders of 64.
//! 3. `second_pass`: each remainder down to bins while it is in the nearest cache; each bin's
//!    magnitude goes straight into its bands. Bins are never put in order, nor kept.
//! 4. `logarithms`, and `write_frames`: back to one frame after the other.
//!
//! Allocates nothing once built. Other settings: [`super::general`].

use super::butterfly::{Complex, Factors, eighth, sixteenth};
use super::config::{MelConfig, MelError};
use super::lanes::{Lanes, MOST_LANES, ln, magnitude};
use super::padding::reflected;
use super::plan::{CLASSES, ClassFactors, HOP, POINTS, Plan, Share};

/// Padding before the signal, in blocks.
const PADDING_BLOCKS: usize = POINTS / 2 / HOP;
/// One more than the 64 values of a remainder: remainders 8 KiB apart would all fall into the
/// same few lines of the nearest cache.
const STRIDE: usize = 65;

/// Tables and scratch of one extractor.
pub(super) struct Fast<S: Lanes> {
    simd: S,
    plan: Plan,
    scratch: Scratch<S::V>,
    short_edges: Edges<i16>,
    float_edges: Edges<f32>,
}

/// Working memory; registers in memory are aligned to their size.
struct Scratch<V> {
    /// Row `r`: sample `r` of the group's blocks, then of the next group's.
    tile: Box<[[V; 2]; HOP]>,
    remainders: Vec<Complex<V>>,
    /// One sum per band, between two that nobody reads.
    sums: Vec<V>,
}

/// Blocks that reach beyond the signal, with the padding written out.
type Edges<T> = Box<[[T; HOP]; MOST_LANES]>;

/// A kind of sample the kernel can read.
pub(super) trait Sample: Copy + Default {
    /// The window that brings this kind to a full scale of one.
    fn window(plan: &Plan) -> &[[f32; 16]; 64];
    /// Writes the blocks side by side into the second half of the tile.
    fn spread<S: Lanes>(simd: S, blocks: &[&[Self; HOP]; MOST_LANES], tile: &mut [[S::V; 2]; HOP]);
}

impl<S: Lanes> Fast<S> {
    /// Tables for settings that [`super::plan::fits`] has approved.
    pub(super) fn new(simd: S, config: &MelConfig) -> Result<Box<Self>, MelError> {
        let zero = simd.splat(0.0);
        Ok(Box::new(Self {
            simd,
            plan: Plan::new(config)?,
            scratch: Scratch {
                tile: Box::new([[zero; 2]; HOP]),
                remainders: vec![[zero; 2]; STRIDE * 8],
                sums: vec![zero; config.bands + 2],
            },
            short_edges: Box::new([[0; HOP]; MOST_LANES]),
            float_edges: Box::new([[0.0; HOP]; MOST_LANES]),
        }))
    }

    /// Features of 16-bit samples. Must be inlined into code compiled for the vector unit.
    #[inline(always)]
    pub(super) fn run_shorts(&mut self, samples: &[i16], out: &mut [f32]) {
        run(self.simd, &self.plan, &mut self.scratch, &mut self.short_edges, samples, out);
    }

    /// Features of float samples. Must be inlined into code compiled for the vector unit.
    #[inline(always)]
    pub(super) fn run_floats(&mut self, samples: &[f32], out: &mut [f32]) {
        run(self.simd, &self.plan, &mut self.scratch, &mut self.float_edges, samples, out);
    }
}

/// All frames of a signal. Shape of `out`: `[frames, bands]`.
#[inline(always)]
fn run<S: Lanes, T: Sample>(
    simd: S,
    plan: &Plan,
    scratch: &mut Scratch<S::V>,
    edges: &mut Edges<T>,
    samples: &[T],
    out: &mut [f32],
) {
    let bands = scratch.sums.len() - 2;
    let frames = out.len() / bands;
    fill(simd, samples, 0, edges, &mut scratch.tile);
    for (group, out) in out.chunks_mut(S::COUNT * bands).enumerate() {
        for row in scratch.tile.iter_mut() {
            row[0] = row[1];
        }
        let first_frame = group * S::COUNT;
        // Only the last three lanes look into the next group's blocks.
        if first_frame + S::COUNT < frames + 3 {
            fill(simd, samples, first_frame + S::COUNT, edges, &mut scratch.tile);
        }
        first_pass(simd, T::window(plan), &scratch.tile, &mut scratch.remainders);
        scratch.sums.fill(simd.splat(0.0));
        for class in 0..CLASSES.len() {
            let remainder = remainder_of(&mut scratch.remainders, class);
            let (factors, shares) = (&plan.factors[class], &plan.shares[class]);
            second_pass(simd, factors, shares, remainder, &mut scratch.sums);
        }
        let packed = remainder_of(&mut scratch.remainders, CLASSES.len());
        unpack(simd, plan, packed, &mut scratch.sums);
        let bands = &mut scratch.sums[1..=bands];
        logarithms(simd, plan.floor, bands);
        write_frames(simd, bands, out);
    }
}

/// Brings the blocks from `first` on into the second half of the tile.
#[inline(always)]
fn fill<S: Lanes, T: Sample>(
    simd: S,
    samples: &[T],
    first: usize,
    edges: &mut Edges<T>,
    tile: &mut [[S::V; 2]; HOP],
) {
    for lane in 0..S::COUNT {
        if inside(samples, first + lane).is_none() {
            write_edge(samples, first + lane, &mut edges[lane]);
        }
    }
    let mut blocks = [&edges[0]; MOST_LANES];
    for lane in 0..S::COUNT {
        blocks[lane] = inside(samples, first + lane).unwrap_or(&edges[lane]);
    }
    T::spread(simd, &blocks, tile);
}

/// The block of the padded signal, if it has no padding in it.
#[inline(always)]
fn inside<T>(samples: &[T], block: usize) -> Option<&[T; HOP]> {
    let start = block.checked_sub(PADDING_BLOCKS)? * HOP;
    samples.get(start..start + HOP)?.first_chunk()
}

/// The block of the padded signal with its padding; silence after the padding's end.
#[inline(never)]
fn write_edge<T: Sample>(samples: &[T], block: usize, edge: &mut [T; HOP]) {
    for (i, value) in edge.iter_mut().enumerate() {
        let place = block * HOP + i;
        let padded = samples.len() + POINTS;
        *value = if place < padded {
            samples[reflected(place, POINTS / 2, samples.len())]
        } else {
            T::default()
        };
    }
}

impl Sample for f32 {
    fn window(plan: &Plan) -> &[[f32; 16]; 64] {
        &plan.window
    }

    #[inline(always)]
    fn spread<S: Lanes>(simd: S, blocks: &[&[f32; HOP]; MOST_LANES], tile: &mut [[S::V; 2]; HOP]) {
        for (c, rows) in tile.chunks_exact_mut(S::COUNT).enumerate() {
            let mut square = [simd.splat(0.0); MOST_LANES];
            for lane in 0..S::COUNT {
                square[lane] = simd.load(&blocks[lane][c * S::COUNT..]);
            }
            simd.transpose(&mut square);
            for (row, value) in rows.iter_mut().zip(square) {
                row[1] = value;
            }
        }
    }
}

impl Sample for i16 {
    fn window(plan: &Plan) -> &[[f32; 16]; 64] {
        &plan.window_16_bit
    }

    /// Two samples travel in one lane: half the transposing, and the pair is parted at the end.
    #[inline(always)]
    fn spread<S: Lanes>(simd: S, blocks: &[&[i16; HOP]; MOST_LANES], tile: &mut [[S::V; 2]; HOP]) {
        for (c, rows) in tile.chunks_exact_mut(2 * S::COUNT).enumerate() {
            let mut square = [simd.splat(0.0); MOST_LANES];
            for lane in 0..S::COUNT {
                square[lane] = simd.load_pairs(&blocks[lane][2 * c * S::COUNT..]);
            }
            simd.transpose(&mut square);
            for (pair, value) in rows.chunks_exact_mut(2).zip(square) {
                (pair[0][1], pair[1][1]) = simd.split_pairs(value);
            }
        }
    }
}

#[inline(always)]
fn remainder_of<V>(remainders: &mut [Complex<V>], class: usize) -> &mut [Complex<V>; 64] {
    let part = &mut remainders[STRIDE * class..];
    part.first_chunk_mut().expect("every remainder has 64 values")
}

/// Window and the first four halvings: eight remainders of 64 coefficients.
#[inline(always)]
fn first_pass<S: Lanes>(
    simd: S,
    window: &[[f32; 16]; 64],
    tile: &[[S::V; 2]; HOP],
    remainders: &mut [Complex<S::V>],
) {
    let remainders: &mut [Complex<S::V>; STRIDE * 8] =
        remainders.first_chunk_mut().expect("eight remainders");
    for n in 0..64 {
        let mut x = [simd.splat(0.0); 16];
        for k in 0..16 {
            // Sample n + 64 k of the frame is sample n + 64 (k mod 4) of its block k / 4.
            x[k] = simd.shifted(&tile[n + 64 * (k % 4)], k / 4);
        }
        let sixteenth = sixteenth(simd, &x, &window[n]);
        for class in 0..CLASSES.len() {
            remainders[STRIDE * class + n] = sixteenth.complex[class];
        }
        // The real remainder of 128 goes on as 64 complex numbers, even and odd coefficients.
        let start = STRIDE * CLASSES.len();
        remainders[start + n / 2][n % 2] = sixteenth.real[0];
        remainders[start + 32 + n / 2][n % 2] = sixteenth.real[1];
    }
}

/// A remainder of 64 down to its 64 bins, and their magnitudes into the bands.
#[inline(always)]
fn second_pass<S: Lanes>(
    simd: S,
    factors: &ClassFactors,
    shares: &[Share; 64],
    x: &mut [Complex<S::V>; 64],
    sums: &mut [S::V],
) {
    columns(simd, &factors.whole, x);
    let rows = x.chunks_exact(8).zip(shares.chunks_exact(8));
    for ((row, shares), factors) in rows.zip(&factors.parts) {
        let mut eight = [[simd.splat(0.0); 2]; 8];
        eight.copy_from_slice(row);
        eighth(simd, &mut eight, factors);
        for k in 0..8 {
            add_to_bands(simd, eight[k], &shares[k], sums);
        }
    }
}

/// Adds a bin's magnitude to the two bands it lies under. While the bin is in a register this is
/// cheaper than to keep all magnitudes, which would push the remainders out of the cache.
#[inline(always)]
fn add_to_bands<S: Lanes>(simd: S, bin: Complex<S::V>, share: &Share, sums: &mut [S::V]) {
    let magnitude = magnitude(simd, bin);
    let [falling, rising]: &mut [S::V; 2] =
        sums[share.stretch..].first_chunk_mut().expect("a sum on either side of every stretch");
    *falling = simd.mul_add(magnitude, simd.splat(share.falling), *falling);
    *rising = simd.mul_add(magnitude, simd.splat(share.rising), *rising);
}

/// The first three halvings of a remainder of 64.
#[inline(always)]
fn columns<S: Lanes>(simd: S, factors: &Factors, x: &mut [Complex<S::V>; 64]) {
    for m in 0..8 {
        let mut eight = [[simd.splat(0.0); 2]; 8];
        for k in 0..8 {
            eight[k] = x[m + 8 * k];
        }
        eighth(simd, &mut eight, factors);
        for k in 0..8 {
            x[m + 8 * k] = eight[k];
        }
    }
}

/// The bins divisible by 8, from the packed remainder: a transform of 128 real
/// values by one of 64 complex ones. With `z` its values and `Z` its outputs, bin `8 m` is
/// `(Z[m] + conj Z[-m]) / 2 + e^(-2 pi i m / 128) (Z[m] - conj Z[-m]) / 2i`, and bin `512 - 8 m`
/// the conjugate of the difference of the same two terms.
#[inline(always)]
fn unpack<S: Lanes>(simd: S, plan: &Plan, x: &mut [Complex<S::V>; 64], sums: &mut [S::V]) {
    let factors = &plan.factors[CLASSES.len()];
    columns(simd, &factors.whole, x);
    for (row, factors) in x.chunks_exact_mut(8).zip(&factors.parts) {
        let mut eight = [[simd.splat(0.0); 2]; 8];
        eight.copy_from_slice(row);
        eighth(simd, &mut eight, factors);
        row.copy_from_slice(&eight);
    }
    let half = simd.splat(0.5);
    for m in 0..=32 {
        let [a, b] = [x[plan.packed_place[m]], x[plan.packed_place[(64 - m) % 64]]];
        let [re, im] = plan.unpack[m].map(|part| simd.splat(part));
        let even = [simd.mul(half, simd.add(a[0], b[0])), simd.mul(half, simd.sub(a[1], b[1]))];
        let odd = [simd.sub(a[0], b[0]), simd.add(a[1], b[1])];
        let odd = [
            simd.neg_mul_add(odd[1], im, simd.mul(odd[0], re)),
            simd.mul_add(odd[1], re, simd.mul(odd[0], im)),
        ];
        let plus = [simd.add(even[0], odd[0]), simd.add(even[1], odd[1])];
        let minus = [simd.sub(even[0], odd[0]), simd.sub(even[1], odd[1])];
        add_to_bands(simd, plus, &plan.eighth_shares[m], sums);
        // The middle one is its own partner.
        if m < 32 {
            add_to_bands(simd, minus, &plan.eighth_shares[64 - m], sums);
        }
    }
}

/// `ln(max(x, floor))` of every band.
#[inline(always)]
fn logarithms<S: Lanes>(simd: S, floor: f32, bands: &mut [S::V]) {
    for band in bands {
        *band = ln(simd, simd.max(*band, simd.splat(floor)));
    }
}

/// From one register per band to one row per frame. `out` may hold fewer frames than lanes.
#[inline(always)]
fn write_frames<S: Lanes>(simd: S, logs: &[S::V], out: &mut [f32]) {
    let bands = logs.len();
    let frames = out.len() / bands;
    let mut square = [simd.splat(0.0); MOST_LANES];
    for (c, part) in logs.chunks(S::COUNT).enumerate() {
        square[..part.len()].copy_from_slice(part);
        simd.transpose(&mut square);
        for lane in 0..frames.min(S::COUNT) {
            let row = &mut out[lane * bands + c * S::COUNT..(lane + 1) * bands];
            if row.len() >= S::COUNT {
                simd.store(square[lane], row);
            } else {
                let mut rest = [0.0; MOST_LANES];
                simd.store(square[lane], &mut rest);
                row.copy_from_slice(&rest[..row.len()]);
            }
        }
    }
}
