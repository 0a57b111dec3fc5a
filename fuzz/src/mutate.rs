//! Mutations of an input from a seed: the same seed gives the same bytes on every machine.

pub struct Mutations {
    state: u64,
}

/// Replacements for numbers in texts.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1e999",
    "nan",
    "inf",
    "18446744073709551615",
    "9223372036854775808",
    "4294967296",
    "0.0000001",
    "-0.0",
    "1e-400",
    "99999999999999999999999",
];

impl Mutations {
    pub fn new(seed: u64) -> Mutations {
        Mutations { state: seed }
    }

    /// A mutation of `input` that may contain parts of `other`.
    pub fn of(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, other);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let (from, to) = self.range(bytes.len());
        match self.below(8) {
            0 if !bytes.is_empty() => bytes[from.min(to - 1)] ^= 1 << self.below(8),
            1 if !bytes.is_empty() => bytes[from.min(to - 1)] = self.next() as u8,
            2 => drop(bytes.drain(from..to)),
            3 => {
                let copy = bytes[from..to].to_vec();
                bytes.splice(from..from, copy);
            }
            4 => {
                let (begin, end) = self.range(other.len());
                bytes.splice(from..to, other[begin..end].iter().copied());
            }
            5 => bytes.truncate(from),
            6 => drop(bytes.splice(from..from, [b'"', b'[', b'{', b'\n', b':', b'=', 0, 0xff])),
            _ => self.replace_number(bytes),
        }
    }

    /// Replaces one number of a text with an extreme value.
    fn replace_number(&mut self, bytes: &mut Vec<u8>) {
        let is_digit = |at: usize| bytes[at].is_ascii_digit();
        let starts = (0..bytes.len()).filter(|at| is_digit(*at) && (*at == 0 || !is_digit(at - 1)));
        let starts: Vec<usize> = starts.collect();
        if starts.is_empty() {
            return;
        }
        let from = starts[self.below(starts.len())];
        let to = (from..bytes.len()).find(|at| !is_digit(*at)).unwrap_or(bytes.len());
        let number = NUMBERS[self.below(NUMBERS.len())];
        bytes.splice(from..to, number.bytes());
    }

    /// A random range within `length` bytes; short ranges are more likely.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let from = self.below(length + 1);
        let longest = [1, 4, 16, 64, length][self.below(5)];
        (from, (from + self.below(longest + 1)).min(length))
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// SplitMix64, by Sebastiano Vigna.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
