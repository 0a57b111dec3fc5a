//! Bits of a FLAC frame, most significant first.
//!
//! In: bytes. Out: numbers. Reads past the end give zeros; [`Bits::overrun`] tells afterwards, so that no
//! read in between has to. Methods are inlined, to be compiled for the caller's instruction set.

#[derive(Clone, Copy, Debug, Default)]
pub struct Bits<'a> {
    pub bytes: &'a [u8],
    /// The next bit.
    pub at: usize,
}

/// Bits that [`Bits::word`] has, at least.
pub const IN_WORD: u32 = 57;

impl<'a> Bits<'a> {
    /// Begins at a byte.
    pub fn new(bytes: &'a [u8], byte: usize) -> Self {
        Self { bytes, at: byte * 8 }
    }

    /// True if more bits were read than there are.
    pub fn overrun(&self) -> bool {
        self.byte() > self.bytes.len()
    }

    /// The byte with the next bit, or after the last complete one.
    pub fn byte(&self) -> usize {
        self.at.div_ceil(8)
    }

    /// The next bits, from the top: [`IN_WORD`] at least, then zeros.
    #[inline(always)]
    pub fn word(&self) -> u64 {
        whole_word(self.bytes, self.at).unwrap_or_else(|| last_word(self.bytes, self.at))
    }

    /// The next `count` bits, at most 32.
    #[inline(always)]
    pub fn read(&mut self, count: u32) -> u32 {
        let value = (self.word() >> 32) as u32;
        self.at += count as usize;
        if count == 0 { 0 } else { value >> (32 - count) }
    }

    /// The next `count` bits, at most 32, as a signed number.
    #[inline(always)]
    pub fn read_signed(&mut self, count: u32) -> i32 {
        let unused = 32 - count.max(1);
        ((self.read(count) << unused) as i32) >> unused
    }

    /// Zeros before the next one, which is skipped, too. `None` at the end.
    pub fn unary(&mut self) -> Option<u32> {
        let mut zeros = 0;
        loop {
            let here = self.word().leading_zeros();
            if here < IN_WORD {
                self.at += here as usize + 1;
                return Some(zeros + here);
            }
            zeros += IN_WORD;
            self.at += IN_WORD as usize;
            if self.overrun() {
                return None;
            }
        }
    }
}

/// As [`Bits::word`]; `None` if fewer than eight bytes are left.
#[inline(always)]
pub fn whole_word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at / 8..)?.first_chunk()?;
    Some(u64::from_be_bytes(*word) << (at % 8))
}

#[cold]
#[inline(never)]
fn last_word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at / 8..).unwrap_or(&[]);
    let mut word = [0; 8];
    word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(word) << (at % 8)
}
