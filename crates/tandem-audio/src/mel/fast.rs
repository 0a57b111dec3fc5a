//! The fast kernel: 1024 points, hop 256, one frame per lane. Written once for all vector units.
//!
//! In: samples. Out: log-mel values, frame after frame. Per group of `COUNT` frames:
//!
//! 1. [`Tile`]: the same sample of neighbouring frames is contiguous, one load for all.
//! 2. `odd_pass`, `even_pass`: window and four halvings, real; four remainders of 64 each.
//! 3. `second_pass`: reduces each remainder to bins while it is in the L1 cache; each bin's magnitude is
//!    added directly to its bands. Bins are neither reordered nor stored.
//! 4. `logarithms`, then `write_frames`: back to one frame after the other.
//!
//! Allocates nothing once built. Other settings: [`super::general`].
//!
//! Registers are moved with plain loops over indices. Iterators, `map` and `copy_from_slice` become calls
//! and copies through memory where the compiler splits a crate and does not inline across its parts: the
//! same kernel was 1.35 times slower.

// Iterators would become calls and copies here: see the profile in Cargo.toml.
#![allow(clippy::needless_range_loop)]

use super::butterfly::{Complex, Factors, eighth, even_sixteenth, odd_sixteenth};
use super::config::{MelConfig, MelError};
use super::lanes::{Lanes, MOST_LANES, ln, magnitude};
use super::plan::{CLASSES, ClassFactors, Plan, Share};
use super::tile::{Sample, Tile};
use std::ops::Range;

/// One more than the 64 values of a remainder: remainders 8 KiB apart would share the same few lines
/// of the L1 cache.
const STRIDE: usize = 65;
/// How many of [`CLASSES`] are odd. The classes are processed in two halves, so that four remainders
/// at a time stay in the L1 cache.
const ODD: usize = 4;

/// Tables and scratch of one extractor.
pub(super) struct Fast<S: Lanes> {
    simd: S,
    plan: Plan,
    tile: Tile<S>,
    remainders: Box<[Complex<S::V>; 4 * STRIDE]>,
    /// One sum per band, with an unused one at both ends.
    sums: Vec<S::V>,
}

impl<S: Lanes> Fast<S> {
    /// Tables for settings that [`super::plan::fits`] accepts.
    pub(super) fn new(simd: S, config: &MelConfig) -> Result<Box<Self>, MelError> {
        let zero = simd.splat(0.0);
        Ok(Box::new(Self {
            simd,
            plan: Plan::new(config)?,
            tile: Tile::new(simd),
            remainders: Box::new([[zero; 2]; 4 * STRIDE]),
            sums: vec![zero; config.bands + 2],
        }))
    }

    /// All frames of a signal. Shape of `out`: `[frames, bands]`. Must be inlined into code
    /// compiled for the vector unit.
    #[inline(always)]
    pub(super) fn run<T: Sample>(&mut self, samples: &[T], out: &mut [f32]) {
        let simd = self.simd;
        let bands = self.sums.len() - 2;
        self.tile.start(samples);
        for (group, out) in out.chunks_mut(S::COUNT * bands).enumerate() {
            self.tile.advance(samples, group * S::COUNT);
            for band in 0..self.sums.len() {
                self.sums[band] = simd.splat(0.0);
            }
            odd_pass(simd, T::window(&self.plan), &self.tile, &mut self.remainders);
            self.finish_classes(0..ODD);
            even_pass(simd, T::window(&self.plan), &self.tile, &mut self.remainders);
            self.finish_classes(ODD..CLASSES.len());
            let packed = remainder(&mut self.remainders, 3);
            unpack(simd, &self.plan, packed, &mut self.sums);
            let sums = &mut self.sums[1..=bands];
            logarithms(simd, self.plan.floor, sums);
            write_frames(simd, sums, out);
        }
    }

    /// Reduces some of [`CLASSES`] from remainders to bands.
    #[inline(always)]
    fn finish_classes(&mut self, classes: Range<usize>) {
        for class in classes.start..classes.end {
            let remainder = remainder(&mut self.remainders, class - classes.start);
            let (factors, shares) = (&self.plan.factors[class], &self.plan.shares[class]);
            second_pass(self.simd, factors, shares, remainder, &mut self.sums);
        }
    }
}
#[inline(always)]
fn remainder<V>(remainders: &mut [Complex<V>; 4 * STRIDE], place: usize) -> &mut [Complex<V>; 64] {
    remainders[STRIDE * place..].first_chunk_mut().expect("room for four remainders")
}

/// Window and the first four halvings: the remainders of the odd classes.
#[inline(always)]
fn odd_pass<S: Lanes>(
    simd: S,
    window: &[[f32; 16]; 64],
    tile: &Tile<S>,
    remainders: &mut [Complex<S::V>; 4 * STRIDE],
) {
    for n in 0..64 {
        let values = odd_sixteenth(simd, &tile.samples(n), &window[n]);
        for place in 0..4 {
            remainders[STRIDE * place + n] = values[place];
        }
    }
}

/// The same for the even classes. The real remainder of 128 is treated as 64 complex numbers: even
/// coefficients real, odd ones imaginary.
#[inline(always)]
fn even_pass<S: Lanes>(
    simd: S,
    window: &[[f32; 16]; 64],
    tile: &Tile<S>,
    remainders: &mut [Complex<S::V>; 4 * STRIDE],
) {
    for n in 0..64 {
        let (values, real) = even_sixteenth(simd, &tile.samples(n), &window[n]);
        for place in 0..3 {
            remainders[STRIDE * place + n] = values[place];
        }
        remainders[STRIDE * 3 + n / 2][n % 2] = real[0];
        remainders[STRIDE * 3 + 32 + n / 2][n % 2] = real[1];
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
    for row in 0..8 {
        let mut eight = [[simd.splat(0.0); 2]; 8];
        for k in 0..8 {
            eight[k] = x[8 * row + k];
        }
        eighth(simd, &mut eight, &factors.parts[row]);
        for k in 0..8 {
            add_to_bands(simd, eight[k], &shares[8 * row + k], sums);
        }
    }
}

/// Adds a bin's magnitude to its two bands. While the bin is in a register this is
/// cheaper than to keep all magnitudes, which would push the remainders out of the cache.
#[inline(always)]
fn add_to_bands<S: Lanes>(simd: S, bin: Complex<S::V>, share: &Share, sums: &mut [S::V]) {
    let magnitude = magnitude(simd, bin);
    let [falling, rising]: &mut [S::V; 2] =
        sums[share.interval..].first_chunk_mut().expect("a sum on either side of every interval");
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
    for row in 0..8 {
        let mut eight = [[simd.splat(0.0); 2]; 8];
        for k in 0..8 {
            eight[k] = x[8 * row + k];
        }
        eighth(simd, &mut eight, &factors.parts[row]);
        for k in 0..8 {
            x[8 * row + k] = eight[k];
        }
    }
    let half = simd.splat(0.5);
    for m in 0..=32 {
        let [a, b] = [x[plan.packed_place[m]], x[plan.packed_place[(64 - m) % 64]]];
        let (re, im) = (simd.splat(plan.unpack[m][0]), simd.splat(plan.unpack[m][1]));
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
    for band in 0..bands.len() {
        bands[band] = ln(simd, simd.max(bands[band], simd.splat(floor)));
    }
}

/// From one register per band to one row per frame. `out` may hold fewer frames than lanes.
#[inline(always)]
fn write_frames<S: Lanes>(simd: S, logs: &[S::V], out: &mut [f32]) {
    let bands = logs.len();
    let frames = out.len() / bands;
    let mut square = [simd.splat(0.0); MOST_LANES];
    for c in 0..bands.div_ceil(S::COUNT) {
        for k in 0..S::COUNT.min(bands - c * S::COUNT) {
            square[k] = logs[c * S::COUNT + k];
        }
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
