//! Eight lanes with AVX2 and FMA. Knows registers, nothing about audio.

use super::{Lanes, MOST_LANES, SQRT_HALF_BITS};
use core::arch::x86_64::{
    __m256, _mm_loadu_ps, _mm_storeu_ps, _mm256_add_epi32, _mm256_add_ps, _mm256_alignr_epi8,
    _mm256_and_si256, _mm256_castpd_ps, _mm256_castps_pd, _mm256_castps_si256,
    _mm256_castps128_ps256, _mm256_castsi256_ps, _mm256_cvtepi32_ps, _mm256_extractf128_ps,
    _mm256_fmadd_ps, _mm256_fmsub_ps, _mm256_fnmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256,
    _mm256_max_ps, _mm256_mul_ps, _mm256_permute2f128_ps, _mm256_rsqrt_ps, _mm256_set1_epi32,
    _mm256_set1_ps, _mm256_slli_epi32, _mm256_srai_epi32, _mm256_storeu_ps, _mm256_sub_epi32,
    _mm256_sub_ps, _mm256_unpackhi_pd, _mm256_unpackhi_ps, _mm256_unpacklo_pd, _mm256_unpacklo_ps,
};

/// Proof that the CPU has AVX2 and FMA.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Avx2(());

impl Avx2 {
    pub(in super::super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Self(()))
    }
}

/// Instructions that work on registers only.
macro_rules! in_registers {
    ($operation:expr) => {{
        // SAFETY: needs AVX2 and FMA only, which a value of `Avx2` proves.
        unsafe { $operation }
    }};
}

impl Lanes for Avx2 {
    type V = __m256;
    const COUNT: usize = 8;

    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        in_registers!(_mm256_set1_ps(value))
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> __m256 {
        let from = &from[..8];
        // SAFETY: 8 floats are readable; unaligned is allowed; `self` proves AVX2.
        unsafe { _mm256_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, value: __m256, to: &mut [f32]) {
        let to = &mut to[..8];
        // SAFETY: 8 floats are writable; unaligned is allowed; `self` proves AVX2.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), value) }
    }

    #[inline(always)]
    fn load_pairs(self, from: &[i16]) -> __m256 {
        let from = &from[..16];
        // SAFETY: 16 shorts are 32 readable bytes; unaligned is allowed; `self` proves AVX2.
        unsafe { _mm256_castsi256_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn split_pairs(self, pairs: __m256) -> (__m256, __m256) {
        in_registers!({
            let bits = _mm256_castps_si256(pairs);
            let even = _mm256_srai_epi32::<16>(_mm256_slli_epi32::<16>(bits));
            let odd = _mm256_srai_epi32::<16>(bits);
            (_mm256_cvtepi32_ps(even), _mm256_cvtepi32_ps(odd))
        })
    }

    #[inline(always)]
    fn last_four(self, row: __m256) -> [f32; 4] {
        let mut out = [0.0; 4];
        // SAFETY: 4 floats are writable; unaligned is allowed; `self` proves AVX2.
        unsafe { _mm_storeu_ps(out.as_mut_ptr(), _mm256_extractf128_ps::<1>(row)) }
        out
    }

    #[inline(always)]
    fn overlapped(self, before: &[f32; 4], row: __m256) -> [__m256; 4] {
        // SAFETY: 4 floats are readable; unaligned is allowed; `self` proves AVX2.
        let before = unsafe { _mm256_castps128_ps256(_mm_loadu_ps(before.as_ptr())) };
        in_registers!({
            // Lower halves of both; then each half is shifted within its neighbours.
            let low = _mm256_castps_si256(_mm256_permute2f128_ps::<0x20>(before, row));
            let high = _mm256_castps_si256(row);
            [
                _mm256_castsi256_ps(_mm256_alignr_epi8::<4>(high, low)),
                _mm256_castsi256_ps(_mm256_alignr_epi8::<8>(high, low)),
                _mm256_castsi256_ps(_mm256_alignr_epi8::<12>(high, low)),
                row,
            ]
        })
    }

    #[inline(always)]
    fn transpose(self, rows: &mut [__m256; MOST_LANES]) {
        in_registers!({
            // 4 x 4 within each half, then the halves between two registers.
            for i in [0, 4] {
                let [a, b, c, d] = [rows[i], rows[i + 1], rows[i + 2], rows[i + 3]];
                let low_ab = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
                let low_cd = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
                let high_ab = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
                let high_cd = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
                rows[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(low_ab, low_cd));
                rows[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low_ab, low_cd));
                rows[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high_ab, high_cd));
                rows[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high_ab, high_cd));
            }
            for i in 0..4 {
                let (a, b) = (rows[i], rows[i + 4]);
                rows[i] = _mm256_permute2f128_ps::<0x20>(a, b);
                rows[i + 4] = _mm256_permute2f128_ps::<0x31>(a, b);
            }
        })
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        in_registers!(_mm256_add_ps(a, b))
    }

    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        in_registers!(_mm256_sub_ps(a, b))
    }

    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        in_registers!(_mm256_mul_ps(a, b))
    }

    #[inline(always)]
    fn mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        in_registers!(_mm256_fmadd_ps(a, b, c))
    }

    #[inline(always)]
    fn mul_sub(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        in_registers!(_mm256_fmsub_ps(a, b, c))
    }

    #[inline(always)]
    fn neg_mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        in_registers!(_mm256_fnmadd_ps(a, b, c))
    }

    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        in_registers!(_mm256_max_ps(a, b))
    }

    #[inline(always)]
    fn sqrt(self, value: __m256) -> __m256 {
        // An estimate of 12 bits and one Newton step: the root instruction is slower.
        in_registers!({
            let estimate = _mm256_rsqrt_ps(value);
            let root = _mm256_mul_ps(value, estimate);
            let half = _mm256_mul_ps(estimate, _mm256_set1_ps(0.5));
            let error = _mm256_fnmadd_ps(root, half, _mm256_set1_ps(0.5));
            _mm256_fmadd_ps(root, error, root)
        })
    }

    #[inline(always)]
    fn split_exponent(self, value: __m256) -> (__m256, __m256) {
        in_registers!({
            let start = _mm256_set1_epi32(SQRT_HALF_BITS);
            let offset = _mm256_sub_epi32(_mm256_castps_si256(value), start);
            let exponent = _mm256_cvtepi32_ps(_mm256_srai_epi32::<23>(offset));
            let fraction = _mm256_and_si256(offset, _mm256_set1_epi32(0x007F_FFFF));
            (exponent, _mm256_castsi256_ps(_mm256_add_epi32(fraction, start)))
        })
    }
}
