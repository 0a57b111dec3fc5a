//! Computes the memory that a Vorbis header needs before the decoder allocates it.
//!
//! In: the bytes of an Ogg file. Out: nothing, or an error. A setup header has up to 256 codebooks, and
//! one of 24 bytes can expand to 16 MiB of vectors and 128 MiB of decoding tables: gigabytes from a
//! file of six kilobytes. The decoder limits each codebook, but not their sum. The layout is that of the Vorbis I specification, sections 3.2.1 and 4.2.4.

use super::AudioError;
use symphonia::core::io::{BitReaderRtl, ReadBitsRtl};

/// The most entries of all codebooks together. An entry costs the decoder up to a kibibyte. The
/// largest setup of libvorbis has 19413 entries and 85928 vector values (six channels, quality 10,
/// 44.1 kHz).
const MOST_ENTRIES: u64 = 48 << 10;
/// The most vector values of all codebooks together, four bytes each.
const MOST_NUMBERS: u64 = 4 << 20;
/// The identification header, which comes before the setup header.
const IDENTIFICATION: usize = 30;
/// The setup header's type and signature.
const SIGNATURE: usize = 7;

/// The memory demand of the codebooks so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Demand {
    entries: u64,
    numbers: u64,
}

impl Demand {
    fn is_too_much(self) -> bool {
        self.entries > MOST_ENTRIES || self.numbers > MOST_NUMBERS
    }
}

/// Refuses codebooks that are too large together. The decoder reports all other faults of the header:
/// it reads no further than this function.
pub(super) fn check_setup(headers: &[u8]) -> Result<(), AudioError> {
    if demand(headers.get(IDENTIFICATION + SIGNATURE..).unwrap_or(&[])).is_too_much() {
        let reason = "its Vorbis codebooks would fill the memory";
        return Err(AudioError::Malformed { reason });
    }
    Ok(())
}

/// The demand of all codebooks, up to the first that is invalid or too large.
fn demand(setup: &[u8]) -> Demand {
    let mut bits = BitReaderRtl::new(setup);
    let mut sum = Demand::default();
    let Ok(last) = bits.read_bits_leq32(8) else { return sum };
    for _ in 0..=last {
        if pass_codebook(&mut bits, &mut sum).is_none() {
            break;
        }
    }
    sum
}

/// Adds the demand of one codebook and moves to its end; `None` if it is invalid.
fn pass_codebook(bits: &mut BitReaderRtl<'_>, sum: &mut Demand) -> Option<()> {
    let _sync = bits.read_bits_leq32(24).ok()?;
    let dimensions = bits.read_bits_leq32(16).ok()?;
    let entries = bits.read_bits_leq32(24).ok()?;
    sum.entries += u64::from(entries);
    if sum.is_too_much() {
        return None;
    }
    pass_code_lengths(bits, entries)?;
    let lookup = bits.read_bits_leq32(4).ok()?;
    if lookup == 0 {
        return Some(());
    }
    sum.numbers += u64::from(entries) * u64::from(dimensions);
    if sum.is_too_much() {
        return None;
    }
    bits.ignore_bits(64).ok()?;
    let width = bits.read_bits_leq32(4).ok()? + 1;
    bits.ignore_bits(1).ok()?;
    let values = if lookup == 1 { root(entries, dimensions) } else { entries * dimensions };
    bits.ignore_bits(values.checked_mul(width)?).ok()
}

fn pass_code_lengths(bits: &mut BitReaderRtl<'_>, entries: u32) -> Option<()> {
    if bits.read_bool().ok()? {
        bits.ignore_bits(5).ok()?;
        let mut passed = 0;
        while passed < entries {
            let width = 32 - (entries - passed).leading_zeros();
            // An unused length adds nothing; each such step still consumes bits.
            passed += bits.read_bits_leq32(width).ok()?;
        }
        return Some(());
    }
    let sparse = bits.read_bool().ok()?;
    for _ in 0..entries {
        if !sparse || bits.read_bool().ok()? {
            bits.ignore_bits(5).ok()?;
        }
    }
    Some(())
}

/// The largest number whose power of `dimensions` is not above `entries`.
fn root(entries: u32, dimensions: u32) -> u32 {
    let fits = |value: u32| value.checked_pow(dimensions).is_some_and(|power| power <= entries);
    let guess = f64::from(entries).powf(1.0 / f64::from(dimensions.max(1))) as u32;
    (guess.saturating_sub(1)..=guess + 1).rev().find(|&value| fits(value)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_exact() {
        let found =
            [(6561, 8), (6560, 8), (131_072, 32), (625, 4), (1, 1)].map(|(e, d)| root(e, d));
        assert_eq!(found, [3, 2, 1, 5, 1]);
    }

    #[test]
    fn a_header_from_an_encoder_stays_far_below_the_limit() {
        let file = include_bytes!("../tests/audio/tone_44k.ogg");
        let at = file.windows(SIGNATURE).position(|bytes| bytes == b"\x05vorbis").unwrap();
        // The header is in one page, so its bits are contiguous. A separate program gave the same counts.
        let found = demand(&file[at + SIGNATURE..]);
        assert_eq!(found, Demand { entries: 4110, numbers: 7388 });
    }

    #[test]
    fn broken_headers_are_left_to_the_decoder() {
        for headers in [&[][..], &[0; 20], &[0xFF; 60], &[0; 400]] {
            let _ = check_setup(headers);
        }
    }
}
