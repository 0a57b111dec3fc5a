//! Sixteen lanes with AVX-512F. Knows registers, nothing about audio.

use super::{Lanes, MOST_LANES, SQRT_HALF_BITS};
use core::arch::x86_64::{
    __m512, _mm_loadu_ps, _mm_storeu_ps, _mm512_add_epi32, _mm512_add_ps, _mm512_alignr_epi32,
    _mm512_and_epi32, _mm512_broadcast_f32x4, _mm512_castpd_ps, _mm512_castps_pd,
    _mm512_castps_si512, _mm512_castsi512_ps, _mm512_cvtepi32_ps, _mm512_extractf32x4_ps,
    _mm512_fmadd_ps, _mm512_fmsub_ps, _mm512_fnmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_max_ps, _mm512_mul_ps, _mm512_rsqrt14_ps, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_shuffle_f32x4, _mm512_slli_epi32, _mm512_srai_epi32, _mm512_storeu_ps, _mm512_sub_epi32,
    _mm512_sub_ps, _mm512_unpackhi_pd, _mm512_unpackhi_ps, _mm512_unpacklo_pd, _mm512_unpacklo_ps,
};

/// Proof that the CPU has AVX-512F.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Avx512(());

impl Avx512 {
    pub(in super::super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx512f").then_some(Self(()))
    }
}

/// Instructions that work on registers only.
macro_rules! in_registers {
    ($operation:expr) => {{
        // SAFETY: needs AVX-512F only, which a value of `Avx512` proves.
        unsafe { $operation }
    }};
}

impl Lanes for Avx512 {
    type V = __m512;
    const COUNT: usize = 16;

    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        in_registers!(_mm512_set1_ps(value))
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> __m512 {
        let from = &from[..16];
        // SAFETY: 16 floats are readable; unaligned is allowed; `self` proves AVX-512F.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, value: __m512, to: &mut [f32]) {
        let to = &mut to[..16];
        // SAFETY: 16 floats are writable; unaligned is allowed; `self` proves AVX-512F.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) }
    }

    #[inline(always)]
    fn load_pairs(self, from: &[i16]) -> __m512 {
        let from = &from[..32];
        // SAFETY: 32 shorts are 64 readable bytes; unaligned is allowed; `self` proves AVX-512F.
        unsafe { _mm512_castsi512_ps(_mm512_loadu_si512(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn split_pairs(self, pairs: __m512) -> (__m512, __m512) {
        in_registers!({
            let bits = _mm512_castps_si512(pairs);
            let even = _mm512_srai_epi32::<16>(_mm512_slli_epi32::<16>(bits));
            let odd = _mm512_srai_epi32::<16>(bits);
            (_mm512_cvtepi32_ps(even), _mm512_cvtepi32_ps(odd))
        })
    }

    #[inline(always)]
    fn last_four(self, row: __m512) -> [f32; 4] {
        let mut out = [0.0; 4];
        // SAFETY: 4 floats are writable; unaligned is allowed; `self` proves AVX-512F.
        unsafe { _mm_storeu_ps(out.as_mut_ptr(), _mm512_extractf32x4_ps::<3>(row)) }
        out
    }

    #[inline(always)]
    fn overlapped(self, before: &[f32; 4], row: __m512) -> [__m512; 4] {
        // SAFETY: 4 floats are readable; unaligned is allowed; `self` proves AVX-512F.
        let before = unsafe { _mm512_broadcast_f32x4(_mm_loadu_ps(before.as_ptr())) };
        in_registers!({
            let (high, low) = (_mm512_castps_si512(row), _mm512_castps_si512(before));
            [
                _mm512_castsi512_ps(_mm512_alignr_epi32::<13>(high, low)),
                _mm512_castsi512_ps(_mm512_alignr_epi32::<14>(high, low)),
                _mm512_castsi512_ps(_mm512_alignr_epi32::<15>(high, low)),
                row,
            ]
        })
    }

    #[inline(always)]
    fn transpose(self, rows: &mut [__m512; MOST_LANES]) {
        in_registers!({
            // 4 x 4 within each quarter, then the quarters among four registers each.
            for i in [0, 4, 8, 12] {
                let [a, b, c, d] = [rows[i], rows[i + 1], rows[i + 2], rows[i + 3]];
                let low_ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
                let low_cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
                let high_ab = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
                let high_cd = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
                rows[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(low_ab, low_cd));
                rows[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low_ab, low_cd));
                rows[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high_ab, high_cd));
                rows[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high_ab, high_cd));
            }
            for i in 0..4 {
                let [a, b, c, d] = [rows[i], rows[i + 4], rows[i + 8], rows[i + 12]];
                let even_ab = _mm512_shuffle_f32x4::<0x88>(a, b);
                let odd_ab = _mm512_shuffle_f32x4::<0xDD>(a, b);
                let even_cd = _mm512_shuffle_f32x4::<0x88>(c, d);
                let odd_cd = _mm512_shuffle_f32x4::<0xDD>(c, d);
                rows[i] = _mm512_shuffle_f32x4::<0x88>(even_ab, even_cd);
                rows[i + 4] = _mm512_shuffle_f32x4::<0x88>(odd_ab, odd_cd);
                rows[i + 8] = _mm512_shuffle_f32x4::<0xDD>(even_ab, even_cd);
                rows[i + 12] = _mm512_shuffle_f32x4::<0xDD>(odd_ab, odd_cd);
            }
        })
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        in_registers!(_mm512_add_ps(a, b))
    }

    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        in_registers!(_mm512_sub_ps(a, b))
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        in_registers!(_mm512_mul_ps(a, b))
    }

    #[inline(always)]
    fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        in_registers!(_mm512_fmadd_ps(a, b, c))
    }

    #[inline(always)]
    fn mul_sub(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        in_registers!(_mm512_fmsub_ps(a, b, c))
    }

    #[inline(always)]
    fn neg_mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        in_registers!(_mm512_fnmadd_ps(a, b, c))
    }

    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        in_registers!(_mm512_max_ps(a, b))
    }

    #[inline(always)]
    fn sqrt(self, value: __m512) -> __m512 {
        // The root instruction keeps the divider busy for 12 cycles; an estimate of 14 bits and
        // one Newton step take a third of that and give full single precision.
        in_registers!({
            let estimate = _mm512_rsqrt14_ps(value);
            let root = _mm512_mul_ps(value, estimate);
            let half = _mm512_mul_ps(estimate, _mm512_set1_ps(0.5));
            let error = _mm512_fnmadd_ps(root, half, _mm512_set1_ps(0.5));
            _mm512_fmadd_ps(root, error, root)
        })
    }

    #[inline(always)]
    fn split_exponent(self, value: __m512) -> (__m512, __m512) {
        in_registers!({
            let start = _mm512_set1_epi32(SQRT_HALF_BITS);
            let offset = _mm512_sub_epi32(_mm512_castps_si512(value), start);
            let exponent = _mm512_cvtepi32_ps(_mm512_srai_epi32::<23>(offset));
            let fraction = _mm512_and_epi32(offset, _mm512_set1_epi32(0x007F_FFFF));
            (exponent, _mm512_castsi512_ps(_mm512_add_epi32(fraction, start)))
        })
    }
}
