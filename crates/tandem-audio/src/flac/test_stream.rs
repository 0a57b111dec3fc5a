//! Writes FLAC streams of every shape that the format allows for one channel, for tests: encoders use few of them.

use super::frame::HEADER_SUM;
use super::frame_sum::FRAME_SUM;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// A stream and the samples in it, at their own number of bits.
#[derive(Debug)]
pub struct TestStream {
    pub bytes: Vec<u8>,
    pub bits: u32,
    pub samples: Vec<i32>,
}

/// A random number below `end`.
pub fn below(rng: &mut ChaCha8Rng, end: u32) -> u32 {
    rng.next_u32() % end
}

/// Three frames; the first one's samples are the bytes of the second.
pub fn stream_with_a_frame_inside(rng: &mut ChaCha8Rng) -> TestStream {
    let (bits, block) = (16, 700);
    let mut sounds = [0; 3].map(|_| random_sound(rng, bits, block));
    let mut frames = [0, 1, 2].map(|n| frame(rng, bits, false, n as u64, &sounds[n]));
    let mut inside = [&frames[1][..], &[0]].concat();
    inside.truncate(inside.len().min(block * 2 - 2) / 2 * 2);
    let pairs = inside.as_chunks::<2>().0;
    pairs.iter().zip(&mut sounds[0]).for_each(|(&pair, to)| *to = i16::from_be_bytes(pair).into());
    // Zero bits that end all samples would be left out.
    sounds[0][block - 1] = 1;
    // One in four times the samples are stored as they are.
    while !frames[0].windows(inside.len()).any(|part| part == inside) {
        frames[0] = frame(rng, bits, false, 0, &sounds[0]);
    }
    let (samples, body) = (sounds.concat(), frames.concat());
    let bytes =
        [stream_head(bits, (block as u16, block as u16), samples.len() as u64), body].concat();
    TestStream { bytes, bits, samples }
}

/// A random stream: one to 40 frames of 1 to 700 samples.
pub fn random_stream(rng: &mut ChaCha8Rng) -> TestStream {
    let bits = [4, 8, 12, 15, 16, 16, 16][below(rng, 7) as usize];
    let variable = below(rng, 2) == 1;
    let (frames, block) = (1 + below(rng, 40), 16 + below(rng, 684));
    let (mut samples, mut body) = (Vec::new(), Vec::new());
    for number in 0..frames {
        let last = number + 1 == frames;
        let length = if variable || last { 1 + below(rng, block) } else { block };
        let place = if variable { samples.len() as u64 } else { u64::from(number) };
        let sound = random_sound(rng, bits, length as usize);
        body.extend(frame(rng, bits, variable, place, &sound));
        samples.extend(sound);
    }
    let blocks = if variable { (1, 700) } else { (block as u16, block as u16) };
    let known = if below(rng, 4) > 0 { samples.len() as u64 } else { 0 };
    let bytes = [stream_head(bits, blocks, known), body].concat();
    TestStream { bytes, bits, samples }
}

/// The description of a stream, and a second block of metadata, which the decoder has to skip.
fn stream_head(bits: u32, (least, most): (u16, u16), known: u64) -> Vec<u8> {
    let mut bytes = b"fLaC".to_vec();
    bytes.extend([0, 0, 0, 34]);
    bytes.extend(least.to_be_bytes());
    bytes.extend(most.to_be_bytes());
    bytes.extend([0; 6]);
    bytes.extend((22050 << 44 | u64::from(bits - 1) << 36 | known).to_be_bytes());
    bytes.extend([0; 16]);
    bytes.extend([0x81, 0, 0, 5, 1, 2, 3, 4, 5]);
    bytes
}

/// A slow wave with noise, a constant, or noise alone.
fn random_sound(rng: &mut ChaCha8Rng, bits: u32, length: usize) -> Vec<i32> {
    let full = (1i32 << (bits - 1)) - 1;
    let wasted = if below(rng, 4) == 0 { below(rng, bits - 1) } else { 0 };
    let (wave, noise, offset) =
        (below(rng, 3), 1 + below(rng, 1 << (bits - 1)) as i32, below(rng, 999));
    let level = |index: usize, rng: &mut ChaCha8Rng| match wave {
        0 => offset as i32 - 500,
        1 => (below(rng, noise as u32 * 2) as i32) - noise,
        _ => {
            let turn = (index as f32 + offset as f32) * 0.05;
            (turn.sin() * 0.7 * full as f32) as i32 + below(rng, 1 + noise as u32 / 64) as i32
        }
    };
    (0..length).map(|i| level(i, rng).clamp(-full - 1, full) >> wasted << wasted).collect()
}

fn frame(rng: &mut ChaCha8Rng, bits: u32, variable: bool, place: u64, sound: &[i32]) -> Vec<u8> {
    let mut out = BitWriter::default();
    out.put(0x7FFC, 15);
    out.put(variable.into(), 1);
    let size_code = match bits {
        8 => 1,
        12 => 2,
        16 => 4,
        _ => 0,
    };
    let (block_code, rate_code) =
        (if sound.len() <= 256 { 6 } else { 7 }, [0, 6, 13, 14][below(rng, 4) as usize]);
    for (value, count) in [(block_code, 4), (rate_code, 4), (0, 4), (size_code, 3), (0, 1)] {
        out.put(value, count);
    }
    out.put_number(place);
    out.put(sound.len() as u64 - 1, if block_code == 6 { 8 } else { 16 });
    match rate_code {
        13 => out.put(22050, 16),
        14 => out.put(2205, 16),
        _ => {}
    }
    let sum = HEADER_SUM.checksum(&out.bytes);
    out.put(sum.into(), 8);
    subframe(rng, &mut out, bits, sound);
    out.used = 0;
    let sum = FRAME_SUM.checksum(&out.bytes);
    out.put(sum.into(), 16);
    out.bytes
}

fn subframe(rng: &mut ChaCha8Rng, out: &mut BitWriter, bits: u32, sound: &[i32]) {
    let all = sound.iter().fold(0, |all, sample| all | sample);
    let wasted = if all == 0 { 0 } else { all.trailing_zeros() };
    let levels: Vec<i32> = sound.iter().map(|sample| sample >> wasted).collect();
    let size = bits - wasted;
    let constant = levels.iter().all(|level| *level == levels[0]);
    let most = levels.len().min(32) as u32;
    let (kind, order) = match below(rng, 4) {
        0 if constant => (0, 0),
        0 => (1, 0),
        1 => {
            let order = below(rng, most.min(4) + 1);
            (8 + order, order)
        }
        _ => {
            let order = 1 + below(rng, most);
            (31 + order, order)
        }
    };
    out.put(kind.into(), 7);
    out.put((wasted > 0).into(), 1);
    if wasted > 0 {
        out.put(1, wasted);
    }
    let first = if kind == 1 { levels.len() } else { (order as usize).max((kind == 0).into()) };
    levels[..first].iter().for_each(|level| out.put_signed(*level, size));
    if kind < 8 {
        return;
    }
    let (coefficients, shift) = match kind {
        8..=12 => {
            ([&[][..], &[1], &[2, -1], &[3, -3, 1], &[4, -6, 4, -1]][order as usize].to_vec(), 0)
        }
        _ => {
            let precision = 1 + below(rng, 15);
            let half = 1i32 << (precision - 1);
            let coefficients =
                (0..order).map(|_| below(rng, 2 * half as u32) as i32 - half).collect::<Vec<_>>();
            // A prediction must fit 32 bits, as a residual must: with the largest sums only if they are shifted.
            let shift = below(rng, 8) + if precision > 10 { 8 } else { 0 };
            out.put(u64::from(precision) - 1, 4);
            out.put(shift.into(), 5);
            coefficients.iter().for_each(|&value| out.put_signed(value, precision));
            (coefficients, shift)
        }
    };
    let predicted = |now: usize| -> i64 {
        let before = levels[now - order as usize..now].iter().rev();
        let sum: i64 = before.zip(&coefficients).map(|(&l, &c)| i64::from(l) * i64::from(c)).sum();
        sum >> shift
    };
    let residual: Vec<i32> = (order as usize..levels.len())
        .map(|now| i32::try_from(i64::from(levels[now]) - predicted(now)).unwrap())
        .collect();
    put_residual(rng, out, order as usize, levels.len(), &residual);
}

fn put_residual(
    rng: &mut ChaCha8Rng,
    out: &mut BitWriter,
    order: usize,
    length: usize,
    residual: &[i32],
) {
    let possible =
        |power: &u32| length.is_multiple_of(1 << power) && length >> power >= order.max(1);
    let powers: Vec<u32> = (0..6).filter(possible).collect();
    let power = powers[below(rng, powers.len() as u32) as usize];
    // With five bits, a Rice parameter is at most 30, and 31 is the escape.
    let parameter_bits = 4 + below(rng, 2);
    out.put(u64::from(parameter_bits) - 4, 2);
    out.put(power.into(), 4);
    let part = length >> power;
    for number in 0..1usize << power {
        let range = (number * part).saturating_sub(order)..(number + 1) * part - order;
        let largest = residual[range.clone()].iter().map(|&value| folded(value)).max().unwrap_or(0);
        let size = 32 - largest.leading_zeros();
        // Up to a hundred zeros in a row.
        let parameter = size.saturating_sub(below(rng, 7));
        let escape = (1 << parameter_bits) - 1;
        if parameter >= escape || below(rng, 5) == 0 {
            out.put(escape.into(), parameter_bits);
            out.put(size.into(), 5);
            residual[range].iter().for_each(|&value| out.put_signed(value, size));
            continue;
        }
        out.put(parameter.into(), parameter_bits);
        for &value in &residual[range] {
            let code = folded(value);
            (0..code >> parameter).for_each(|_| out.put(0, 1));
            out.put(1, 1);
            out.put(u64::from(code) & ((1 << parameter) - 1), parameter);
        }
    }
}

/// 0, -1, 1, -2, 2 become 0, 1, 2, 3, 4.
fn folded(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    /// Bits of the last byte that are set.
    used: u32,
}

impl BitWriter {
    fn put(&mut self, value: u64, count: u32) {
        for place in (0..count).rev() {
            if self.used == 0 {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().unwrap() |= ((value >> place & 1) as u8) << (7 - self.used);
            self.used = (self.used + 1) % 8;
        }
    }

    fn put_signed(&mut self, value: i32, count: u32) {
        self.put(value as i64 as u64, count);
    }

    /// In the extension of UTF-8.
    fn put_number(&mut self, number: u64) {
        if number < 0x80 {
            return self.put(number, 8);
        }
        let more = (1..7).find(|more| number < 1 << (6 * more + 6 - more)).unwrap();
        // One more than that in ones, and a zero.
        self.put((2 << (more + 1)) - 2, more + 2);
        self.put(number >> (6 * more), 6 - more);
        for part in (0..more).rev() {
            self.put(0b10, 2);
            self.put(number >> (6 * part) & 0x3F, 6);
        }
    }
}
