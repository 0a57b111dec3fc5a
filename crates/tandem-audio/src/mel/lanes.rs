//! The vector operations of the mel kernel, and a logarithm built on them.
//!
//! The kernel is written once, over [`Lanes`]: one frame per lane. Each instruction set has a
//! small file that implements it; those files know nothing about audio.
//! A value of a `Lanes` type proves that this CPU has the instructions, because only the type's
//! `detect` creates it. Therefore the methods are safe to call.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(super) mod neon;
pub(super) mod portable;

/// Lanes of the widest instruction set; the size of shared arrays.
pub(super) const MOST_LANES: usize = 16;

/// A vector unit: processes `COUNT` single-precision floats at once.
///
/// All methods must be `#[inline(always)]`: they only become instructions inside a function
/// that is compiled for the instruction set.
pub(super) trait Lanes: Copy {
    type V: Copy;
    /// Floats in a register; at least 4, at most [`MOST_LANES`].
    const COUNT: usize;

    /// The same value in every lane.
    fn splat(self, value: f32) -> Self::V;
    /// The first `COUNT` floats of a slice.
    fn load(self, from: &[f32]) -> Self::V;
    /// Writes `COUNT` floats to the start of a slice.
    fn store(self, value: Self::V, to: &mut [f32]);
    /// The first `2 * COUNT` integers of a slice, two per lane, with unchanged bits.
    fn load_pairs(self, from: &[i16]) -> Self::V;
    /// The first and the second value of each lane's pair, as floats.
    fn split_pairs(self, pairs: Self::V) -> (Self::V, Self::V);
    /// The last four values.
    fn last_four(self, row: Self::V) -> [f32; 4];
    /// `COUNT` consecutive values from the second, third, fourth and fifth on, of `before` and then
    /// `row`. Shuffled from registers: loads across two cache lines cost four times as much.
    fn overlapped(self, before: &[f32; 4], row: Self::V) -> [Self::V; 4];
    /// Transposes the first `COUNT` registers.
    fn transpose(self, rows: &mut [Self::V; MOST_LANES]);

    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `a * b - c`
    fn mul_sub(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `c - a * b`
    fn neg_mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The larger of each two.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// Square root of values from 1e-30 to 1e36, to within 3e-7 of its size.
    fn sqrt(self, value: Self::V) -> Self::V;
    /// `e` and `m` with `value = m * 2^e` and `m` in `[sqrt(1/2), sqrt(2))`, for positive
    /// normal values.
    fn split_exponent(self, value: Self::V) -> (Self::V, Self::V);
}

/// Bits of the largest float below `sqrt(1/2)` plus one: where mantissas begin.
pub(super) const SQRT_HALF_BITS: i32 = 0x3F35_04F3;
/// Added under a square root, so that zero needs no special case: 1e-15 in magnitude.
const TINY: f32 = 1e-30;
/// ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// `(ln(1 + f) - f + f^2 / 2) / f^3` as a polynomial in `f`, constant term first: our own
/// weighted minimax fit over `[sqrt(1/2) - 1, sqrt(2) - 1]`, 7e-9 off in the logarithm.
const LN_TAIL: [f32; 7] = [
    0.333_341_66,
    -0.250_017,
    0.199_548_75,
    -0.165_644_26,
    0.149_779_93,
    -0.143_790_08,
    0.086_721_88,
];

/// Natural logarithm of positive normal floats, to within 6e-8 plus half a unit in the last
/// place of the result.
#[inline(always)]
pub(super) fn ln<S: Lanes>(simd: S, value: S::V) -> S::V {
    let (exponent, mantissa) = simd.split_exponent(value);
    let f = simd.sub(mantissa, simd.splat(1.0));
    let square = simd.mul(f, f);
    let mut tail = simd.splat(LN_TAIL[6]);
    for k in 0..6 {
        tail = simd.mul_add(tail, f, simd.splat(LN_TAIL[5 - k]));
    }
    let small = simd.mul_add(exponent, simd.splat(LN_2_LOW), simd.mul(tail, simd.mul(square, f)));
    let small = simd.neg_mul_add(square, simd.splat(0.5), small);
    simd.mul_add(exponent, simd.splat(LN_2_HIGH), simd.add(f, small))
}

/// Magnitude of a complex number.
#[inline(always)]
pub(super) fn magnitude<S: Lanes>(simd: S, [re, im]: [S::V; 2]) -> S::V {
    simd.sqrt(simd.mul_add(re, re, simd.mul_add(im, im, simd.splat(TINY))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every method against plain arithmetic; the logarithm and the root against f64.
    fn check<S: Lanes>(simd: S) {
        check_moves(simd);
        check_arithmetic(simd);
        check_functions(simd);
    }

    fn lanes_of<S: Lanes>(simd: S, value: S::V) -> Vec<f32> {
        let mut out = vec![0.0; S::COUNT];
        simd.store(value, &mut out);
        out
    }

    fn count<S: Lanes>(from: usize) -> Vec<f32> {
        (from..from + S::COUNT).map(|i| i as f32).collect()
    }

    fn check_moves<S: Lanes>(simd: S) {
        let n = S::COUNT;
        let last: Vec<f32> = count::<S>(0)[n - 4..].to_vec();
        assert_eq!(simd.last_four(simd.load(&count::<S>(0))).to_vec(), last);
        let overlapped = simd.overlapped(&[0.0, 1.0, 2.0, 3.0], simd.load(&count::<S>(4)));
        for (by, register) in overlapped.into_iter().enumerate() {
            assert_eq!(lanes_of(simd, register), count::<S>(by + 1));
        }
        let mut rows = [simd.splat(0.0); MOST_LANES];
        for (i, row) in rows[..n].iter_mut().enumerate() {
            *row = simd.load(&count::<S>(100 * i));
        }
        simd.transpose(&mut rows);
        for (i, row) in rows[..n].iter().enumerate() {
            let column: Vec<f32> = (0..n).map(|j| (100 * j + i) as f32).collect();
            assert_eq!(lanes_of(simd, *row), column);
        }
        let samples: Vec<i16> =
            (0..2 * n as i16).map(|i| [i16::MIN, i16::MAX, -1, i][i as usize % 4]).collect();
        let (even, odd) = simd.split_pairs(simd.load_pairs(&samples));
        let half = |k: usize| -> Vec<f32> {
            samples.iter().skip(k).step_by(2).map(|&s| f32::from(s)).collect()
        };
        assert_eq!((lanes_of(simd, even), lanes_of(simd, odd)), (half(0), half(1)));
    }

    fn check_arithmetic<S: Lanes>(simd: S) {
        let (a, b, c) = (count::<S>(3), count::<S>(20), count::<S>(7));
        let [va, vb, vc] = [&a, &b, &c].map(|x| simd.load(x));
        type Scalar = fn(f32, f32, f32) -> f32;
        let pairs: [(S::V, Scalar); 7] = [
            (simd.add(va, vb), |a, b, _| a + b),
            (simd.sub(va, vb), |a, b, _| a - b),
            (simd.mul(va, vb), |a, b, _| a * b),
            (simd.mul_add(va, vb, vc), |a, b, c| a * b + c),
            (simd.mul_sub(va, vb, vc), |a, b, c| a * b - c),
            (simd.neg_mul_add(va, vb, vc), |a, b, c| c - a * b),
            (simd.max(va, simd.splat(9.0)), |a, _, _| a.max(9.0)),
        ];
        for (index, (value, expected)) in pairs.into_iter().enumerate() {
            let expected: Vec<f32> = (0..S::COUNT).map(|i| expected(a[i], b[i], c[i])).collect();
            assert_eq!(lanes_of(simd, value), expected, "operation {index}");
        }
    }

    fn check_functions<S: Lanes>(simd: S) {
        // Over the whole range of exponents in use, with mantissas that fall everywhere.
        // Miri takes a second for what the CPU does in a microsecond.
        let stride = if cfg!(miri) { 997 } else { 1 };
        for step in (0..20_000).step_by(stride) {
            let x = (1e-30f64 * 1.0077f64.powi(step % 19_000)) as f32;
            if x > 1e36 {
                continue;
            }
            let found = f64::from(lanes_of(simd, ln(simd, simd.splat(x)))[0]);
            let expected = f64::from(x).ln();
            let bound = 6e-8 + 6e-8 * expected.abs();
            assert!((found - expected).abs() <= bound, "ln({x}) = {found}, not {expected}");
            let found = f64::from(lanes_of(simd, simd.sqrt(simd.splat(x)))[0]);
            let expected = f64::from(x).sqrt();
            assert!((found / expected - 1.0).abs() <= 3e-7, "sqrt({x}) = {found}");
        }
        let zero = simd.splat(0.0);
        assert!(lanes_of(simd, magnitude(simd, [zero, zero]))[0] < 2e-15);
    }

    #[test]
    fn portable_lanes_compute_what_scalars_do() {
        check(portable::Portable);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx2_lanes_compute_what_scalars_do() {
        if let Some(simd) = avx2::Avx2::detect() {
            check(simd);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx512_lanes_compute_what_scalars_do() {
        match avx512::Avx512::detect() {
            // Miri has the loads, stores and moves of AVX-512, not its arithmetic.
            Some(simd) if cfg!(miri) => check_moves(simd),
            Some(simd) => check(simd),
            None => {}
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn neon_lanes_compute_what_scalars_do() {
        check(neon::Neon::detect().expect("every aarch64 CPU has NEON"));
    }
}
