//! Vector arithmetic of the fused kernels.
//!
//! In and out: slices. Every function is inlined into a kernel that [`run`] executes with the widest instruction set of
//! the machine. Reductions use [`LANES`] partial sums in a fixed order, so that results depend neither on the width of
//! the registers nor on the number of threads.

#[cfg(target_arch = "x86_64")]
use pulp::Simd;
use pulp::{Arch, WithSimd};

/// Partial sums of a reduction, and the padding of packed buffers: the width of the widest register.
pub(crate) const LANES: usize = 16;

/// Runs a kernel with the widest instruction set of this machine.
pub(crate) fn run<K: WithSimd>(kernel: K) -> K::Output {
    // Dispatched by hand: the pulp feature that adds AVX2 to `Arch` would rebuild all of Burn.
    #[cfg(target_arch = "x86_64")]
    match (pulp::x86::V4::try_new(), pulp::x86::V3::try_new()) {
        (Some(simd), _) => return Simd::vectorize(simd, kernel),
        (None, Some(simd)) => return Simd::vectorize(simd, kernel),
        (None, None) => {}
    }
    Arch::new().dispatch(kernel)
}

/// The next multiple of [`LANES`].
pub(super) fn padded(length: usize) -> usize {
    length.next_multiple_of(LANES)
}

/// `e` to the `x`, to the last bit or two; exactly zero below -87, `NaN` for `NaN`.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Adding this leaves the nearest whole number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first exact in few bits; coefficients from Cephes' expf.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    const FIRST: f32 = 1.987_569_1e-4;
    const REST: [f32; 5] = [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
    let bounded = if x > 88.0 { 88.0 } else { x };
    let rounded = bounded.mul_add(std::f32::consts::LOG2_E, ROUND);
    let whole = rounded - ROUND;
    let rest = whole.mul_add(-LN_2[1], whole.mul_add(-LN_2[0], bounded));
    let mut series = FIRST;
    for coefficient in REST {
        series = series.mul_add(rest, coefficient);
    }
    let fraction = series.mul_add(rest * rest, rest) + 1.0;
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(0x3f80_0000));
    if x < -87.0 { 0.0 } else { fraction * power }
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Adds partial sums in a fixed order.
#[inline(always)]
pub(super) fn total(mut partial: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            partial[lane] += partial[lane + half];
        }
        half /= 2;
    }
    partial[0]
}

/// The sum of `term` over pairs of elements.
#[inline(always)]
pub(super) fn sum_pairs(left: &[f32], right: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut partial = [0.0; LANES];
    let (left, left_rest) = left.as_chunks::<LANES>();
    let (right, right_rest) = right.as_chunks::<LANES>();
    for (left, right) in left.iter().zip(right) {
        for lane in 0..LANES {
            partial[lane] += term(left[lane], right[lane]);
        }
    }
    for ((partial, &left), &right) in partial.iter_mut().zip(left_rest).zip(right_rest) {
        *partial += term(left, right);
    }
    total(partial)
}

/// The sum of `term` over elements.
#[inline(always)]
pub(super) fn sum_of(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    sum_pairs(values, values, |value, _| term(value))
}

/// The largest element; `-inf` for an empty slice. `NaN` is ignored.
#[inline(always)]
pub(super) fn largest(values: &[f32]) -> f32 {
    let mut most = [f32::NEG_INFINITY; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for chunk in whole {
        for (most, &value) in most.iter_mut().zip(chunk) {
            *most = if value > *most { value } else { *most };
        }
    }
    for (most, &value) in most.iter_mut().zip(rest) {
        *most = if value > *most { value } else { *most };
    }
    most.into_iter().fold(f32::NEG_INFINITY, |most, value| if value > most { value } else { most })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Exp<'a>(&'a mut [f32]);

    impl WithSimd for Exp<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _simd: S) {
            for value in self.0 {
                *value = exp(*value);
            }
        }
    }

    #[test]
    fn exp_is_right_to_the_last_bits_over_its_whole_range() {
        let points: Vec<f32> = (-8700..=8800).map(|hundredth| hundredth as f32 * 0.01).collect();
        let mut found = points.clone();
        run(Exp(&mut found));
        for (x, found) in points.into_iter().zip(found) {
            let truth = f64::from(x).exp();
            let error = (f64::from(found) - truth).abs() / truth;
            assert!(error < 2e-7, "exp({x}) is off by {error:e}");
        }
    }

    #[test]
    fn exp_of_nan_and_of_extreme_values() {
        let mut values = [f32::NAN, f32::NEG_INFINITY, -1e30, -87.5, 1e30];
        run(Exp(&mut values));
        assert!(values[0].is_nan());
        assert_eq!(values[1..4], [0.0; 3]);
        assert!(values[4] > 1e38);
    }

    #[test]
    fn sums_and_maxima_take_every_element_once() {
        for length in [0, 1, 15, 16, 17, 47, 192] {
            let values: Vec<f32> = (0..length).map(|index| index as f32 - 3.0).collect();
            assert_eq!(sum_of(&values, |value| value), values.iter().sum::<f32>());
            let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(largest(&values), most);
        }
    }
}
