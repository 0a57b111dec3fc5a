//! Bits of a FLAC frame, most significant first, and Rice codes.
//!
//! In: bytes. Out: numbers. Reads past the end give zeros; [`Bits::overrun`] tells afterwards, so that no
//! read in between has to. Methods are inlined, to be compiled for the caller's instruction set.

#[derive(Clone, Copy)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// The byte that is loaded next.
    next: usize,
    /// The next bits, from the top.
    buffer: u64,
    /// How many of them were counted as loaded.
    held: u32,
}

/// Bits after a refill, at least.
const FILLED: u32 = 56;

impl<'a> Bits<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, next: 0, buffer: 0, held: 0 }
    }

    /// True if more bits were read than there are.
    pub fn overrun(&self) -> bool {
        self.byte() > self.bytes.len()
    }

    /// The byte with the next bit, or after the last complete one.
    pub fn byte(&self) -> usize {
        (self.next * 8 - self.held as usize).div_ceil(8)
    }

    #[inline(always)]
    fn refill(&mut self) {
        let word = match self.bytes.get(self.next..).and_then(<[u8]>::first_chunk) {
            Some(word) => u64::from_be_bytes(*word),
            None => last_word(self.bytes, self.next),
        };
        // The bits beyond `held` are the same as those of the next refill.
        self.buffer |= word >> self.held;
        self.next += (63 - self.held as usize) >> 3;
        self.held |= FILLED;
    }

    #[inline(always)]
    fn skip(&mut self, count: u32) {
        self.buffer <<= count;
        self.held -= count;
    }

    /// The next `count` bits, at most 32.
    #[inline(always)]
    pub fn read(&mut self, count: u32) -> u32 {
        self.refill();
        let value = (self.buffer >> 32) as u32;
        self.skip(count);
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
            self.refill();
            let here = self.buffer.leading_zeros();
            if here < self.held {
                self.skip(here + 1);
                return Some(zeros + here);
            }
            zeros += self.held;
            self.skip(self.held);
            if self.overrun() {
                return None;
            }
        }
    }

    /// Rice codes with this parameter, at most 30. `None` for a number that does not fit.
    pub fn rice(&mut self, parameter: u32, out: &mut [i32]) -> Option<()> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
        {
            // SAFETY: this CPU has all features of the function.
            return unsafe { self.rice_bmi(parameter, out) };
        }
        self.rice_plain(parameter, out)
    }

    /// A function of its own, so that its few variables stay in registers: part of a larger one, they were kept in
    /// memory, and a code took twice the time.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt")]
    #[inline(never)]
    fn rice_bmi(&mut self, parameter: u32, out: &mut [i32]) -> Option<()> {
        self.rice_plain(parameter, out)
    }

    #[inline(always)]
    fn rice_plain(&mut self, parameter: u32, out: &mut [i32]) -> Option<()> {
        match parameter {
            // Four codes of usual length fit one refill.
            0..=10 => self.rice_by::<4>(parameter, out),
            11..=24 => self.rice_by::<2>(parameter, out),
            _ => self.rice_long(parameter, out),
        }
    }

    #[inline(always)]
    fn rice_by<const CODES: usize>(&mut self, parameter: u32, out: &mut [i32]) -> Option<()> {
        let (groups, rest) = out.as_chunks_mut::<CODES>();
        // A copy that is not passed on, so that the compiler keeps it in registers.
        let mut bits = *self;
        // The one that ends the zeros is still part of `low`.
        let one = 1 << parameter;
        for group in groups {
            bits.refill();
            let mut done = 0;
            for value in group.iter_mut() {
                let zeros = bits.buffer.leading_zeros();
                let length = zeros + 1 + parameter;
                if length > bits.held {
                    break;
                }
                let low = ((bits.buffer << zeros) >> (63 - parameter)) as u32;
                bits.skip(length);
                *value = folded((zeros << parameter) + low - one);
                done += 1;
            }
            if done < CODES {
                *self = bits;
                self.rice_long(parameter, &mut group[done..])?;
                bits = *self;
            }
        }
        *self = bits;
        self.rice_long(parameter, rest)
    }

    #[inline(never)]
    fn rice_long(&mut self, parameter: u32, out: &mut [i32]) -> Option<()> {
        for value in out {
            let (zeros, low) = (self.unary()?, self.read(parameter));
            if zeros > u32::MAX >> parameter {
                return None;
            }
            *value = folded((zeros << parameter) | low);
        }
        Some(())
    }
}

/// The bytes from `next`, and zeros. Takes values and not the reader: a reader that is passed on is kept in memory.
#[cold]
#[inline(never)]
fn last_word(bytes: &[u8], next: usize) -> u64 {
    let rest = bytes.get(next..).unwrap_or(&[]);
    let mut word = [0; 8];
    word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(word)
}

/// 0, 1, 2, 3, 4 stand for 0, -1, 1, -2, 2.
#[inline(always)]
fn folded(code: u32) -> i32 {
    (code >> 1) as i32 ^ -((code & 1) as i32)
}
