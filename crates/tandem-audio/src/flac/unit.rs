//! The inner loops of the decoder, for one set of instructions each.
//!
//! [`Plain`] runs everywhere. A value of [`Avx2`] proves that this CPU has the instructions, because only its `detect`
//! creates it. Both give the same numbers.

use super::frame_sum::FRAME_SUM;
use super::rice::{Run, read_run, read_two_runs};

pub const SIDE: usize = 8;
pub type Lanes = [i32; SIDE];
/// Eight rows of eight numbers.
pub type Square = [Lanes; SIDE];

/// The methods are inlined, or functions of their own where that is faster.
pub trait Unit: Copy {
    /// See [`read_run`].
    fn read_run(self, run: Run<'_, '_>) -> bool;
    /// See [`read_two_runs`].
    fn read_two_runs(self, runs: [Run<'_, '_>; 2]) -> usize;
    fn transpose(self, square: &mut Square);
    /// Adds the products of pairs of 16 bits to `sum`, both of a lane.
    fn add_products(self, sum: Lanes, a: &Lanes, b: &Lanes) -> Lanes;
    /// The checksum of a frame.
    fn frame_sum(self, bytes: &[u8]) -> u16;
}

#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Unit for Plain {
    fn read_run(self, run: Run<'_, '_>) -> bool {
        read_run(run)
    }

    fn read_two_runs(self, runs: [Run<'_, '_>; 2]) -> usize {
        read_two_runs(runs)
    }

    #[inline(always)]
    fn transpose(self, square: &mut Square) {
        let rows = *square;
        for (n, column) in square.iter_mut().enumerate() {
            column.iter_mut().zip(&rows).for_each(|(to, row)| *to = row[n]);
        }
    }

    #[inline(always)]
    fn add_products(self, mut sum: Lanes, a: &Lanes, b: &Lanes) -> Lanes {
        for lane in 0..SIDE {
            let (a, b) = (a[lane], b[lane]);
            let low = i32::from(a as i16).wrapping_mul(i32::from(b as i16));
            let high = (a >> 16).wrapping_mul(b >> 16);
            sum[lane] = sum[lane].wrapping_add(low.wrapping_add(high));
        }
        sum
    }

    fn frame_sum(self, bytes: &[u8]) -> u16 {
        FRAME_SUM.checksum(bytes)
    }
}

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::super::frame_sum::folded;
    use super::{Lanes, Run, Square, Unit, read_run, read_two_runs};
    use core::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16,
        _mm256_permute2x128_si256, _mm256_storeu_si256, _mm256_unpackhi_epi32,
        _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
    };

    /// Proof that the CPU has all instructions that [`Avx2::detect`] names.
    #[derive(Clone, Copy, Debug)]
    pub struct Avx2(());

    impl Avx2 {
        pub fn detect() -> Option<Self> {
            let has = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("pclmulqdq");
            has.then_some(Self(()))
        }
    }

    impl Unit for Avx2 {
        #[inline(always)]
        fn read_run(self, run: Run<'_, '_>) -> bool {
            // SAFETY: a value of `Avx2` proves the instructions.
            unsafe { read_run_bmi(run) }
        }

        #[inline(always)]
        fn read_two_runs(self, runs: [Run<'_, '_>; 2]) -> usize {
            // SAFETY: as above.
            unsafe { read_two_runs_bmi(runs) }
        }

        #[inline(always)]
        fn transpose(self, square: &mut Square) {
            // SAFETY: as above.
            unsafe { transpose(square) }
        }

        #[inline(always)]
        fn add_products(self, sum: Lanes, a: &Lanes, b: &Lanes) -> Lanes {
            // SAFETY: as above.
            unsafe { add_products(sum, a, b) }
        }

        #[inline(always)]
        fn frame_sum(self, bytes: &[u8]) -> u16 {
            // SAFETY: as above.
            unsafe { folded::checksum(bytes) }
        }
    }

    /// A function of its own, so that its few variables stay in registers: part of a larger one, they were kept in
    /// memory, and a code took twice the time.
    #[target_feature(enable = "bmi1,bmi2,lzcnt")]
    #[inline(never)]
    fn read_two_runs_bmi(runs: [Run<'_, '_>; 2]) -> usize {
        read_two_runs(runs)
    }

    #[target_feature(enable = "bmi1,bmi2,lzcnt")]
    #[inline(never)]
    fn read_run_bmi(run: Run<'_, '_>) -> bool {
        read_run(run)
    }

    /// Written without closures, which would be functions of their own.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn transpose(square: &mut Square) {
        let [a, b, c, d, e, f, g, h] = square;
        let (ab, cd, ef, gh) = (pair(a, b), pair(c, d), pair(e, f), pair(g, h));
        let (upper, lower) = (four(ab, cd), four(ef, gh));
        for n in 0..4 {
            store(_mm256_permute2x128_si256::<0x20>(upper[n], lower[n]), &mut square[n]);
            store(_mm256_permute2x128_si256::<0x31>(upper[n], lower[n]), &mut square[n + 4]);
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add_products(mut sum: Lanes, a: &Lanes, b: &Lanes) -> Lanes {
        let products = _mm256_madd_epi16(load(a), load(b));
        store(_mm256_add_epi32(load(&sum), products), &mut sum);
        sum
    }

    /// Two rows, their numbers in turns.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn pair(a: &Lanes, b: &Lanes) -> [__m256i; 2] {
        let (a, b) = (load(a), load(b));
        [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)]
    }

    /// Four rows, columns `n` and `n + 4` in each result.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn four(ab: [__m256i; 2], cd: [__m256i; 2]) -> [__m256i; 4] {
        [
            _mm256_unpacklo_epi64(ab[0], cd[0]),
            _mm256_unpackhi_epi64(ab[0], cd[0]),
            _mm256_unpacklo_epi64(ab[1], cd[1]),
            _mm256_unpackhi_epi64(ab[1], cd[1]),
        ]
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load(row: &Lanes) -> __m256i {
        // SAFETY: a row has 32 readable bytes; unaligned is allowed.
        unsafe { _mm256_loadu_si256(row.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn store(value: __m256i, row: &mut Lanes) {
        // SAFETY: a row has 32 writable bytes; unaligned is allowed.
        unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), value) }
    }
}
