//! Eight lanes in plain Rust, for CPUs without a file here; the compiler vectorises the loops
//! for the target. No `unsafe`.

// Iterators would become calls and copies here: see the profile in Cargo.toml.
#![allow(clippy::needless_range_loop)]

use super::{Lanes, MOST_LANES, SQRT_HALF_BITS};

const COUNT: usize = 8;

/// Needs no detection: it runs on every CPU.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Portable;

/// Eight floats, aligned so that vector loads stay within a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(in super::super) struct Eight([f32; COUNT]);

#[inline(always)]
fn each(a: Eight, b: Eight, c: Eight, operation: impl Fn(f32, f32, f32) -> f32) -> Eight {
    // A loop: `array::from_fn` becomes calls for each lane in a crate built in several parts.
    let mut out = [0.0; COUNT];
    for lane in 0..COUNT {
        out[lane] = operation(a.0[lane], b.0[lane], c.0[lane]);
    }
    Eight(out)
}

/// Deliberately not inlined: otherwise the compiler splits the shifted copies into single values and
/// computes the whole transform with those, at half the speed.
#[inline(never)]
fn neighbours(before: &[f32; 4], row: &Eight) -> [Eight; 4] {
    let mut both = [0.0; COUNT + 4];
    both[..4].copy_from_slice(before);
    both[4..].copy_from_slice(&row.0);
    let simd = Portable;
    [simd.load(&both[1..]), simd.load(&both[2..]), simd.load(&both[3..]), *row]
}

impl Lanes for Portable {
    type V = Eight;
    const COUNT: usize = COUNT;

    #[inline(always)]
    fn splat(self, value: f32) -> Eight {
        Eight([value; COUNT])
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> Eight {
        let mut out = [0.0; COUNT];
        out.copy_from_slice(&from[..COUNT]);
        Eight(out)
    }

    #[inline(always)]
    fn store(self, value: Eight, to: &mut [f32]) {
        to[..COUNT].copy_from_slice(&value.0);
    }

    #[inline(always)]
    fn load_pairs(self, from: &[i16]) -> Eight {
        let mut out = [0.0; COUNT];
        let from = &from[..2 * COUNT];
        for lane in 0..COUNT {
            let (even, odd) = (from[2 * lane] as u16, from[2 * lane + 1] as u16);
            out[lane] = f32::from_bits(u32::from(even) | u32::from(odd) << 16);
        }
        Eight(out)
    }

    #[inline(always)]
    fn split_pairs(self, pairs: Eight) -> (Eight, Eight) {
        let (mut even, mut odd) = ([0.0; COUNT], [0.0; COUNT]);
        for i in 0..COUNT {
            let bits = pairs.0[i].to_bits() as i32;
            even[i] = (bits << 16 >> 16) as f32;
            odd[i] = (bits >> 16) as f32;
        }
        (Eight(even), Eight(odd))
    }

    #[inline(always)]
    fn last_four(self, row: Eight) -> [f32; 4] {
        let mut out = [0.0; 4];
        out.copy_from_slice(&row.0[COUNT - 4..]);
        out
    }

    #[inline(always)]
    fn overlapped(self, before: &[f32; 4], row: Eight) -> [Eight; 4] {
        neighbours(before, &row)
    }

    #[inline(always)]
    fn transpose(self, rows: &mut [Eight; MOST_LANES]) {
        for i in 0..COUNT {
            for j in 0..i {
                let upper = rows[j].0[i];
                rows[j].0[i] = rows[i].0[j];
                rows[i].0[j] = upper;
            }
        }
    }

    #[inline(always)]
    fn add(self, a: Eight, b: Eight) -> Eight {
        each(a, b, a, |a, b, _| a + b)
    }

    #[inline(always)]
    fn sub(self, a: Eight, b: Eight) -> Eight {
        each(a, b, a, |a, b, _| a - b)
    }

    #[inline(always)]
    fn mul(self, a: Eight, b: Eight) -> Eight {
        each(a, b, a, |a, b, _| a * b)
    }

    // Two roundings: a fused multiply-add without the instruction for it is a slow call.
    #[inline(always)]
    fn mul_add(self, a: Eight, b: Eight, c: Eight) -> Eight {
        each(a, b, c, |a, b, c| a * b + c)
    }

    #[inline(always)]
    fn mul_sub(self, a: Eight, b: Eight, c: Eight) -> Eight {
        each(a, b, c, |a, b, c| a * b - c)
    }

    #[inline(always)]
    fn neg_mul_add(self, a: Eight, b: Eight, c: Eight) -> Eight {
        each(a, b, c, |a, b, c| c - a * b)
    }

    #[inline(always)]
    fn max(self, a: Eight, b: Eight) -> Eight {
        each(a, b, a, |a, b, _| if a > b { a } else { b })
    }

    #[inline(always)]
    fn sqrt(self, value: Eight) -> Eight {
        each(value, value, value, |value, _, _| value.sqrt())
    }

    #[inline(always)]
    fn split_exponent(self, value: Eight) -> (Eight, Eight) {
        let (mut exponent, mut mantissa) = ([0.0; COUNT], [0.0; COUNT]);
        for i in 0..COUNT {
            let offset = (value.0[i].to_bits() as i32).wrapping_sub(SQRT_HALF_BITS);
            exponent[i] = (offset >> 23) as f32;
            mantissa[i] = f32::from_bits(((offset & 0x007F_FFFF) + SQRT_HALF_BITS) as u32);
        }
        (Eight(exponent), Eight(mantissa))
    }
}
