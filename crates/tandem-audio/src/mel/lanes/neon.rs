//! Four lanes with NEON. Knows registers, nothing about audio.

use super::{Lanes, MOST_LANES, SQRT_HALF_BITS};
use core::arch::aarch64::{
    float32x4_t, vaddq_f32, vaddq_s32, vandq_s32, vcvtq_f32_s32, vdupq_n_f32, vdupq_n_s32,
    vextq_f32, vfmaq_f32, vfmsq_f32, vld1q_f32, vld1q_s16, vmaxq_f32, vmulq_f32, vnegq_f32,
    vreinterpretq_f32_f64, vreinterpretq_f32_s16, vreinterpretq_f32_s32, vreinterpretq_f64_f32,
    vreinterpretq_s32_f32, vshlq_n_s32, vshrq_n_s32, vsqrtq_f32, vst1q_f32, vsubq_f32, vsubq_s32,
    vtrn1q_f32, vtrn1q_f64, vtrn2q_f32, vtrn2q_f64,
};
use std::arch::is_aarch64_feature_detected;

/// Proof that the CPU has NEON.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Neon(());

impl Neon {
    pub(in super::super) fn detect() -> Option<Self> {
        is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

/// Instructions that work on registers only.
macro_rules! in_registers {
    ($operation:expr) => {{
        // SAFETY: needs NEON only, which a value of `Neon` proves.
        #[allow(unused_unsafe, reason = "some of these are safe where NEON is always there")]
        unsafe {
            $operation
        }
    }};
}

impl Lanes for Neon {
    type V = float32x4_t;
    const COUNT: usize = 4;

    #[inline(always)]
    fn splat(self, value: f32) -> float32x4_t {
        in_registers!(vdupq_n_f32(value))
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> float32x4_t {
        let from = &from[..4];
        // SAFETY: 4 floats are readable; `self` proves NEON.
        unsafe { vld1q_f32(from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, value: float32x4_t, to: &mut [f32]) {
        let to = &mut to[..4];
        // SAFETY: 4 floats are writable; `self` proves NEON.
        unsafe { vst1q_f32(to.as_mut_ptr(), value) }
    }

    #[inline(always)]
    fn load_pairs(self, from: &[i16]) -> float32x4_t {
        let from = &from[..8];
        // SAFETY: 8 shorts are readable; `self` proves NEON.
        unsafe { vreinterpretq_f32_s16(vld1q_s16(from.as_ptr())) }
    }

    #[inline(always)]
    fn split_pairs(self, pairs: float32x4_t) -> (float32x4_t, float32x4_t) {
        in_registers!({
            let bits = vreinterpretq_s32_f32(pairs);
            let even = vshrq_n_s32::<16>(vshlq_n_s32::<16>(bits));
            let odd = vshrq_n_s32::<16>(bits);
            (vcvtq_f32_s32(even), vcvtq_f32_s32(odd))
        })
    }

    #[inline(always)]
    fn last_four(self, row: float32x4_t) -> [f32; 4] {
        let mut out = [0.0; 4];
        self.store(row, &mut out);
        out
    }

    #[inline(always)]
    fn overlapped(self, before: &[f32; 4], row: float32x4_t) -> [float32x4_t; 4] {
        let before = self.load(before);
        in_registers!([
            vextq_f32::<1>(before, row),
            vextq_f32::<2>(before, row),
            vextq_f32::<3>(before, row),
            row,
        ])
    }

    #[inline(always)]
    fn transpose(self, rows: &mut [float32x4_t; MOST_LANES]) {
        in_registers!({
            let [a, b, c, d] = [rows[0], rows[1], rows[2], rows[3]];
            let even_ab = vreinterpretq_f64_f32(vtrn1q_f32(a, b));
            let odd_ab = vreinterpretq_f64_f32(vtrn2q_f32(a, b));
            let even_cd = vreinterpretq_f64_f32(vtrn1q_f32(c, d));
            let odd_cd = vreinterpretq_f64_f32(vtrn2q_f32(c, d));
            rows[0] = vreinterpretq_f32_f64(vtrn1q_f64(even_ab, even_cd));
            rows[1] = vreinterpretq_f32_f64(vtrn1q_f64(odd_ab, odd_cd));
            rows[2] = vreinterpretq_f32_f64(vtrn2q_f64(even_ab, even_cd));
            rows[3] = vreinterpretq_f32_f64(vtrn2q_f64(odd_ab, odd_cd));
        })
    }

    #[inline(always)]
    fn add(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        in_registers!(vaddq_f32(a, b))
    }

    #[inline(always)]
    fn sub(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        in_registers!(vsubq_f32(a, b))
    }

    #[inline(always)]
    fn mul(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        in_registers!(vmulq_f32(a, b))
    }

    #[inline(always)]
    fn mul_add(self, a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        in_registers!(vfmaq_f32(c, a, b))
    }

    #[inline(always)]
    fn mul_sub(self, a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        in_registers!(vfmaq_f32(vnegq_f32(c), a, b))
    }

    #[inline(always)]
    fn neg_mul_add(self, a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        in_registers!(vfmsq_f32(c, a, b))
    }

    #[inline(always)]
    fn max(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        in_registers!(vmaxq_f32(a, b))
    }

    #[inline(always)]
    fn sqrt(self, value: float32x4_t) -> float32x4_t {
        in_registers!(vsqrtq_f32(value))
    }

    #[inline(always)]
    fn split_exponent(self, value: float32x4_t) -> (float32x4_t, float32x4_t) {
        in_registers!({
            let start = vdupq_n_s32(SQRT_HALF_BITS);
            let offset = vsubq_s32(vreinterpretq_s32_f32(value), start);
            let exponent = vcvtq_f32_s32(vshrq_n_s32::<23>(offset));
            let fraction = vandq_s32(offset, vdupq_n_s32(0x007F_FFFF));
            (exponent, vreinterpretq_f32_s32(vaddq_s32(fraction, start)))
        })
    }
}
