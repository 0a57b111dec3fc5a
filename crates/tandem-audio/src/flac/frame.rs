//! FLAC frames of a mono stream: their headers, predictors and first samples.
//!
//! In: the bytes of a stream. Out: where frames begin, and what [`super::residual`] and [`mod@super::restore`] need. Checks the
//! sum of a header. `None` for everything that is not exactly as expected.

use super::bits::Bits;
use super::residual::Residual;
use crc::{CRC_8_SMBUS, Crc};
use memchr::memmem;

pub const HEADER_SUM: Crc<u8> = Crc::<u8>::new(&CRC_8_SMBUS);

/// The highest order of a predictor.
pub const MAX_ORDER: usize = 32;

/// What STREAMINFO says.
#[derive(Clone, Copy, Debug)]
pub struct StreamInfo {
    pub rate: u32,
    /// Bits of a sample, from 4 to 16.
    pub bits: u32,
    /// Samples of the stream, if known.
    pub samples: Option<u64>,
    /// Samples of a frame, at most.
    block: usize,
}

impl StreamInfo {
    /// `None` for more than one channel or more than 16 bits.
    pub fn parse(block: &[u8]) -> Option<StreamInfo> {
        let [
            _,
            _,
            high,
            low,
            _,
            _,
            _,
            _,
            _,
            _,
            packed @ ..,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
        ] = *<&[u8; 34]>::try_from(block).ok()?;
        // 20 bits of rate, 3 of channels less one, 5 of bits less one, 36 of length.
        let packed = u64::from_be_bytes(packed);
        let (channels, bits) = ((packed >> 41 & 7) + 1, (packed >> 36 & 31) as u32 + 1);
        let samples = packed & ((1 << 36) - 1);
        (channels == 1 && (4..=16).contains(&bits)).then_some(StreamInfo {
            rate: (packed >> 44) as u32,
            bits,
            samples: (samples > 0).then_some(samples),
            block: usize::from(u16::from_be_bytes([high, low])),
        })
    }
}

/// How a sample follows from those before it: `residual + (sum of coefficient * sample >> shift)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Predictor {
    pub order: usize,
    /// The first belongs to the latest sample.
    pub coefficients: [i32; MAX_ORDER],
    pub shift: u32,
    /// Zero bits that end each sample and were left out.
    pub wasted: u32,
}

/// A frame whose header was read.
#[derive(Clone, Copy, Debug)]
pub struct FrameStart {
    /// Its first byte in the stream.
    pub at: usize,
    /// The byte after its header.
    pub body: usize,
    /// Its samples.
    pub length: usize,
}

/// Places that look like a frame, at most, before a frame counts as not found: in a stream of nothing else, the time for a
/// frame stays small.
const MOST_TRIES: usize = 16;

impl FrameStart {
    /// The frame at a byte, after `before` samples.
    pub fn read(bytes: &[u8], at: usize, info: &StreamInfo, before: usize) -> Option<FrameStart> {
        let header = bytes.get(at..)?;
        let mut bits = Bits::new(header, 0);
        let length = read_header(&mut bits, header, info, before)?;
        Some(FrameStart { at, body: at + bits.byte(), length })
    }

    /// The frame that seems to follow, `before` samples after the stream's start. It does if this one ends there: the same
    /// bytes can be part of this frame.
    pub fn find_next(&self, bytes: &[u8], info: &StreamInfo, before: usize) -> Option<FrameStart> {
        // No encoder writes a frame that is longer than its samples as they are.
        let most = self.length * 2 + 64;
        let area = bytes.get(self.body..)?;
        let area = &area[..area.len().min(most)];
        let sync = bytes.get(self.at..self.at + 2)?;
        let places = memmem::find_iter(area, sync).take(MOST_TRIES);
        places.map(|place| self.body + place).find_map(|at| Self::read(bytes, at, info, before))
    }
}

/// True if the bytes begin with a sync code.
pub fn is_frame_start(bytes: &[u8]) -> bool {
    matches!(bytes, [0xFF, 0xF8 | 0xF9, ..])
}

/// Samples in the frame.
fn read_header(
    bits: &mut Bits<'_>,
    bytes: &[u8],
    info: &StreamInfo,
    before: usize,
) -> Option<usize> {
    // Fourteen bits of sync code and a reserved one.
    let sync = bits.read(15);
    let variable = bits.read(1) == 1;
    let (block_code, rate_code) = (bits.read(4), bits.read(4));
    let (channels, size_code, reserved) = (bits.read(4), bits.read(3), bits.read(1));
    if sync != 0x7FFC || channels != 0 || reserved != 0 {
        return None;
    }
    let number = read_number(bits)?;
    let block = match block_code {
        1 => 192,
        2..=5 => 144 << block_code,
        6 => bits.read(8) + 1,
        7 => bits.read(16) + 1,
        8..=15 => 1 << block_code,
        _ => return None,
    };
    let rate = match rate_code {
        0 => info.rate,
        1..=11 => RATES[rate_code as usize - 1],
        12 => bits.read(8) * 1000,
        13 => bits.read(16),
        14 => bits.read(16) * 10,
        _ => return None,
    };
    let size = match size_code {
        0 => info.bits,
        1 => 8,
        2 => 12,
        4 => 16,
        _ => return None,
    };
    // Frames are numbered if all but the last have the same length, otherwise their first sample is.
    let expected = if variable { before } else { before.checked_div(info.block)? };
    let sum = HEADER_SUM.checksum(bytes.get(..bits.byte())?);
    let whole = bits.read(8) == u32::from(sum) && !bits.overrun();
    (whole && rate == info.rate && size == info.bits && number == expected as u64)
        .then_some(block as usize)
}

const RATES: [u32; 11] =
    [88200, 176_400, 192_000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000];

/// A frame or sample number, in an extension of UTF-8 to seven bytes.
fn read_number(bits: &mut Bits<'_>) -> Option<u64> {
    let first = bits.read(8) as u8;
    let (more, mut number) = match first.leading_ones() {
        0 => return Some(u64::from(first)),
        ones @ 2..=7 => (ones - 1, u64::from(first) & (0x7F >> ones)),
        _ => return None,
    };
    for _ in 0..more {
        let byte = bits.read(8);
        if byte >> 6 != 0b10 {
            return None;
        }
        number = number << 6 | u64::from(byte & 0x3F);
    }
    Some(number)
}

/// Reads a frame after its header: its predictor, its first samples, and where its residual begins. A frame without residual
/// is complete.
#[inline(always)]
pub fn read_subframe(
    bits: &mut Bits<'_>,
    size: u32,
    out: &mut [i32],
) -> Option<(Predictor, Residual)> {
    let (reserved, kind, has_wasted) = (bits.read(1), bits.read(6), bits.read(1));
    let wasted = if has_wasted == 1 { bits.unary()? + 1 } else { 0 };
    if reserved != 0 || wasted >= size {
        return None;
    }
    let size = size - wasted;
    let mut predictor = Predictor { wasted, ..Predictor::default() };
    match kind {
        0 => out.fill(bits.read_signed(size)),
        1 => read_plain(bits, size, out),
        8..=12 => {
            predictor.order = kind as usize - 8;
            let fixed: [&[i32]; 5] = [&[], &[1], &[2, -1], &[3, -3, 1], &[4, -6, 4, -1]];
            predictor.coefficients[..predictor.order].copy_from_slice(fixed[predictor.order]);
            read_plain(bits, size, out.get_mut(..predictor.order)?);
        }
        32..=63 => {
            predictor.order = kind as usize - 31;
            read_plain(bits, size, out.get_mut(..predictor.order)?);
            let precision = bits.read(4) + 1;
            // A negative shift is not allowed.
            predictor.shift = u32::try_from(bits.read_signed(5)).ok().filter(|_| precision < 16)?;
            read_plain(bits, precision, &mut predictor.coefficients[..predictor.order]);
        }
        _ => return None,
    }
    let residual = match kind {
        0 | 1 => Residual::none(out.len()),
        _ => Residual::begin(bits, predictor.order, out.len())?,
    };
    Some((predictor, residual))
}

/// Numbers of one size.
#[inline(always)]
pub fn read_plain(bits: &mut Bits<'_>, size: u32, out: &mut [i32]) {
    out.iter_mut().for_each(|value| *value = bits.read_signed(size));
}
