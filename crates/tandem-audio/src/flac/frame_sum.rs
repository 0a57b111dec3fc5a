//! The checksum of a frame, CRC-16 with the polynomial x^16 + x^15 + x^2 + 1.
//!
//! In: bytes. Out: their sum. [`super::unit`] chooses the way; both give the same.

use crc::{CRC_16_UMTS, Crc, Table};

pub static FRAME_SUM: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_UMTS);

/// Carry-less products: 64 bytes at a time are replaced by a shorter text with the same sum.
#[cfg(target_arch = "x86_64")]
pub mod folded {
    use super::FRAME_SUM;
    use core::arch::x86_64::{
        __m128i, _mm_clmulepi64_si128, _mm_set_epi64x, _mm_setzero_si128, _mm_xor_si128,
    };

    /// The remainder of `x^power`.
    const fn power(power: u32) -> i64 {
        let (mut rest, mut done) = (1u32, 0);
        while done < power {
            rest <<= 1;
            if rest & 0x1_0000 != 0 {
                rest ^= 0x1_8005;
            }
            done += 1;
        }
        rest as i64
    }

    /// Fewer bytes are not worth it.
    const LEAST: usize = 128;

    #[target_feature(enable = "pclmulqdq,sse2")]
    pub fn checksum(bytes: &[u8]) -> u16 {
        let (blocks, rest) = bytes.as_chunks::<64>();
        let Some((first, blocks)) = blocks.split_first().filter(|_| bytes.len() >= LEAST) else {
            return FRAME_SUM.checksum(bytes);
        };
        let mut sums = load(first);
        for block in blocks {
            let next = load(block);
            for n in 0..4 {
                sums[n] = _mm_xor_si128(moved::<512>(sums[n]), next[n]);
            }
        }
        let [a, b, c, d] = sums;
        let sum = _mm_xor_si128(moved::<128>(a), b);
        let sum = _mm_xor_si128(moved::<128>(sum), c);
        let sum = _mm_xor_si128(moved::<128>(sum), d);
        let mut digest = FRAME_SUM.digest();
        digest.update(&to_bytes(sum));
        digest.update(rest);
        digest.finalize()
    }

    /// The remainder of a text that is followed by so many zero bits, in 80 bits.
    #[target_feature(enable = "pclmulqdq,sse2")]
    #[inline]
    fn moved<const BITS: u32>(text: __m128i) -> __m128i {
        let by = const { [power(BITS), power(BITS + 64)] };
        let by = _mm_set_epi64x(by[1], by[0]);
        let low = _mm_clmulepi64_si128::<0x00>(text, by);
        let high = _mm_clmulepi64_si128::<0x11>(text, by);
        _mm_xor_si128(low, high)
    }

    /// The first bit of the text is the highest.
    #[target_feature(enable = "sse2")]
    #[inline]
    fn load(block: &[u8; 64]) -> [__m128i; 4] {
        let (parts, _) = block.as_chunks::<16>();
        let mut out = [_mm_setzero_si128(); 4];
        for n in 0..4 {
            let part = u128::from_be_bytes(parts[n]);
            out[n] = _mm_set_epi64x((part >> 64) as i64, part as i64);
        }
        out
    }

    #[target_feature(enable = "sse2")]
    #[inline]
    fn to_bytes(text: __m128i) -> [u8; 16] {
        // SAFETY: any bits are a number; both have 16 bytes.
        let text: u128 = unsafe { core::mem::transmute(text) };
        text.to_be_bytes()
    }
}
