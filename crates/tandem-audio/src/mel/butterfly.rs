//! The two building blocks of the 1024-point real transform, one frame per lane.
//!
//! A transform is the remainder of a polynomial: the 1024 samples are the coefficients, and bin `k` is
//! the value at `x = e^(-2 pi i k / 1024)`. Each step splits a remainder modulo
//! `x^M - c` into those modulo `x^(M/2) - s` and `x^(M/2) + s`, `s = sqrt(c)`: `low ± s * high`. The
//! factor is the same for the whole remainder, so it is a constant of the inner loop. With fused
//! multiply-add the multiplication is free: six instructions for `a ± s * b`.
//! (Bernstein's "twisted" view of Cooley-Tukey.)

use super::lanes::Lanes;
use std::f32::consts::FRAC_1_SQRT_2;

/// A complex number per lane: real, imaginary.
pub(super) type Complex<V> = [V; 2];

/// The four factors of three halvings: `s`, its root, the root of that, and that one times
/// `e^(-i pi / 4)`. All others are `-i` times one of these, which is free.
pub(super) type Factors = [[f32; 2]; 4];

/// cos(pi / 8) and sin(pi / 8).
const COS_8TH: f32 = 0.923_879_5;
const SIN_8TH: f32 = 0.382_683_43;

/// Three halvings of eight coefficients. Output `b` (bits `b2 b1 b0`) is the remainder that took
/// the minus sign in the step of each bit set, first step highest.
#[inline(always)]
pub(super) fn eighth<S: Lanes>(simd: S, x: &mut [Complex<S::V>; 8], factors: &Factors) {
    let [first, second, third, fourth] = factors;
    for k in 0..4 {
        (x[k], x[k + 4]) = halve(simd, x[k], x[k + 4], *first);
    }
    for k in 0..2 {
        (x[k], x[k + 2]) = halve(simd, x[k], x[k + 2], *second);
        (x[k + 4], x[k + 6]) = halve_turned(simd, x[k + 4], x[k + 6], *second);
    }
    (x[0], x[1]) = halve(simd, x[0], x[1], *third);
    (x[2], x[3]) = halve_turned(simd, x[2], x[3], *third);
    (x[4], x[5]) = halve(simd, x[4], x[5], *fourth);
    (x[6], x[7]) = halve_turned(simd, x[6], x[7], *fourth);
}

/// Half of the result of four halvings of sixteen real coefficients 64 apart, each multiplied by its
/// window value first: the remainders modulo `x^64 - e^(-2 pi i j / 16)` for `j` = 1, 9, 5, 13. Those
/// for 15, 7, 11, 3 are their conjugates.
///
/// As long as a remainder modulo `x^M + 1` is real, it is also one modulo `x^(M/2) + i`, with its
/// upper half as negative imaginary part: that step costs nothing.
#[inline(always)]
pub(super) fn odd_sixteenth<S: Lanes>(
    simd: S,
    x: &[S::V; 16],
    window: &[f32; 16],
) -> [Complex<S::V>; 4] {
    let mut odd = [[simd.splat(0.0); 2]; 4];
    for k in 0..8 {
        let low = simd.mul(x[k], simd.splat(window[k]));
        // The upper four should be negative: `halve_conjugate` takes that into account.
        odd[k % 4][k / 4] = simd.neg_mul_add(x[k + 8], simd.splat(window[k + 8]), low);
    }
    let (plus_0, minus_0) = halve_conjugate(simd, odd[0], odd[2]);
    let (plus_1, minus_1) = halve_conjugate(simd, odd[1], odd[3]);
    let (at_1, at_9) = halve(simd, plus_0, plus_1, [COS_8TH, -SIN_8TH]);
    let (at_5, at_13) = halve(simd, minus_0, minus_1, [-SIN_8TH, -COS_8TH]);
    [at_1, at_9, at_5, at_13]
}

/// The other half: the remainders for `j` = 2, 10, 4, and the one modulo `x^128 - 1`, still real, as
/// its coefficients `n` and `n + 64`.
#[inline(always)]
pub(super) fn even_sixteenth<S: Lanes>(
    simd: S,
    x: &[S::V; 16],
    window: &[f32; 16],
) -> ([Complex<S::V>; 3], [S::V; 2]) {
    let zero = simd.splat(0.0);
    let mut sum = [zero; 8];
    for k in 0..8 {
        let low = simd.mul(x[k], simd.splat(window[k]));
        sum[k] = simd.mul_add(x[k + 8], simd.splat(window[k + 8]), low);
    }
    let (mut half, mut even) = ([zero; 4], [[zero; 2]; 2]);
    for k in 0..4 {
        half[k] = simd.add(sum[k], sum[k + 4]);
        even[k % 2][k / 2] = simd.sub(sum[k], sum[k + 4]);
    }
    let (at_2, at_10) = halve_conjugate(simd, even[0], even[1]);
    let at_4 = [simd.sub(half[0], half[2]), simd.sub(half[3], half[1])];
    let real = [simd.add(half[0], half[2]), simd.add(half[1], half[3])];
    ([at_2, at_10, at_4], real)
}

/// `a + s b` and `a - s b`; the second as `2 a` minus the first.
#[inline(always)]
fn halve<S: Lanes>(
    simd: S,
    a: Complex<S::V>,
    b: Complex<S::V>,
    [re, im]: [f32; 2],
) -> (Complex<S::V>, Complex<S::V>) {
    let (re, im) = (simd.splat(re), simd.splat(im));
    let plus = [
        simd.mul_add(b[0], re, simd.neg_mul_add(b[1], im, a[0])),
        simd.mul_add(b[1], re, simd.mul_add(b[0], im, a[1])),
    ];
    (plus, mirrored(simd, a, plus))
}

/// The same with `-i s` for `s`.
#[inline(always)]
fn halve_turned<S: Lanes>(
    simd: S,
    a: Complex<S::V>,
    b: Complex<S::V>,
    [re, im]: [f32; 2],
) -> (Complex<S::V>, Complex<S::V>) {
    let (re, im) = (simd.splat(re), simd.splat(im));
    let plus = [
        simd.mul_add(b[1], re, simd.mul_add(b[0], im, a[0])),
        simd.neg_mul_add(b[0], re, simd.mul_add(b[1], im, a[1])),
    ];
    (plus, mirrored(simd, a, plus))
}

#[inline(always)]
fn mirrored<S: Lanes>(simd: S, a: Complex<S::V>, plus: Complex<S::V>) -> Complex<S::V> {
    let two = simd.splat(2.0);
    [simd.mul_sub(two, a[0], plus[0]), simd.mul_sub(two, a[1], plus[1])]
}

/// `a ± e^(-i pi / 4) b`, where `a` and `b` come with the wrong sign of their imaginary part.
#[inline(always)]
fn halve_conjugate<S: Lanes>(
    simd: S,
    a: Complex<S::V>,
    b: Complex<S::V>,
) -> (Complex<S::V>, Complex<S::V>) {
    // With b = br - i bi: e^(-i pi / 4) b = ((br - bi) - i (br + bi)) / sqrt(2).
    let root = simd.splat(FRAC_1_SQRT_2);
    let (re, im) = (simd.sub(b[0], b[1]), simd.add(b[0], b[1]));
    let minus_root = simd.splat(-FRAC_1_SQRT_2);
    let plus = [simd.mul_add(re, root, a[0]), simd.mul_sub(im, minus_root, a[1])];
    let minus = [simd.mul_add(re, minus_root, a[0]), simd.mul_sub(im, root, a[1])];
    (plus, minus)
}
