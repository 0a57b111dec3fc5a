//! Samples from predictors and residuals, sixteen frames at a time.
//!
//! A sample depends on those just before it, so one frame alone leaves a vector unit idle. Frames do not depend on each
//! other: one lane each. Frames whose sums need more than 32 bits are restored one by one.

use super::frame::{MAX_ORDER, Predictor};
use super::unit::{SIDE, Unit};

pub const LANES: usize = 16;
/// Steps between two transpositions; their samples stay in the first-level cache.
const STEPS: usize = 64;

/// Added to a sample of 16 bits, it leaves the bits above them zero.
const HALF: i32 = 1 << 15;

/// One number of each lane.
type Row = [[i32; SIDE]; LANES / SIDE];
/// The steps of one lane.
type Lane = [[i32; SIDE]; STEPS / SIDE];
/// The samples of one lane, two in a number.
type LaneSamples = [[i32; SIDE]; STEPS / SIDE / 2];
/// Of each step, each lane's sample and the one before it, as two numbers of 16 bits; those before the steps, then the steps.
type Pairs = [Row; MAX_ORDER + STEPS];

/// A frame whose residual begins at `start`.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub start: usize,
    pub length: usize,
    pub predictor: Predictor,
}

/// Appends the samples of all frames to `out`; `residual` holds nothing else. `None` if a sample has more than `bits`.
#[inline(always)]
pub fn restore(
    unit: impl Unit,
    frames: &mut [Waiting],
    residual: &mut [i32],
    bits: u32,
    out: &mut Vec<i16>,
) -> Option<()> {
    for frame in &mut *frames {
        if !fits_32_bits(&frame.predictor, bits) {
            let samples = &mut residual[frame.start..][..frame.length];
            restore_until(frame.length, &frame.predictor, samples);
            let wasted = frame.predictor.wasted;
            frame.predictor = Predictor { wasted, ..Predictor::default() };
        }
    }
    let first = out.len();
    out.resize(first + residual.len(), 0);
    let out = &mut out[first..];
    let lost = match frames.iter().map(|frame| frame.predictor.order).max()? {
        0..=4 => restore_lanes::<4>(unit, frames, residual, bits, out),
        5..=8 => restore_lanes::<8>(unit, frames, residual, bits, out),
        9..=12 => restore_lanes::<12>(unit, frames, residual, bits, out),
        _ => restore_lanes::<MAX_ORDER>(unit, frames, residual, bits, out),
    };
    (lost == 0).then_some(())
}

/// True if no sum can overflow as long as the samples before it fit.
fn fits_32_bits(predictor: &Predictor, bits: u32) -> bool {
    let largest = 1i64 << (bits - 1);
    let sum: i64 =
        predictor.coefficients[..predictor.order].iter().map(|&c| i64::from(c).abs()).sum();
    sum * largest <= i64::from(i32::MAX)
}

/// Restores the samples before `end`, one after the other.
fn restore_until(end: usize, predictor: &Predictor, samples: &mut [i32]) {
    let order = predictor.order;
    for now in order..end.min(samples.len()) {
        let before = samples[now - order..now].iter().rev();
        let sum: i64 = before
            .zip(&predictor.coefficients)
            .map(|(&sample, &coefficient)| i64::from(sample) * i64::from(coefficient))
            .fold(0, i64::wrapping_add);
        samples[now] = samples[now].wrapping_add((sum >> predictor.shift) as i32);
    }
}

/// Restores all frames, in one lane each, to `out`. Coefficients beyond a frame's own order are zero. The result has a bit set
/// if a sample did not fit.
#[inline(always)]
fn restore_lanes<const ORDER: usize>(
    unit: impl Unit,
    frames: &[Waiting],
    residual: &mut [i32],
    bits: u32,
    out: &mut [i16],
) -> i32 {
    let mut coefficients = [Row::default(); MAX_ORDER / 2];
    let (mut shifts, mut scales) = (Row::default(), [0; LANES]);
    let mut rows = [Row::default(); STEPS];
    let mut pairs: Pairs = [Row::default(); MAX_ORDER + STEPS];
    let mut lost = 0;
    for (lane, frame) in frames.iter().enumerate() {
        let predictor = &frame.predictor;
        let samples = &mut residual[frame.start..][..frame.length];
        // An order below `ORDER` ends its first samples earlier.
        restore_until(ORDER, predictor, samples);
        let own = predictor.coefficients.as_chunks::<2>().0;
        coefficients.iter_mut().zip(own).for_each(|(row, &[a, b])| *at(row, lane) = pair(a, b));
        *at(&mut shifts, lane) = predictor.shift as i32;
        // Full scale is that of 16 bits.
        scales[lane] = predictor.wasted + 16 - bits;
        let first_samples = &samples[..ORDER.min(frame.length)];
        let first_pairs = pairs[MAX_ORDER - ORDER + 1..MAX_ORDER].iter_mut();
        let two = first_samples.windows(2);
        first_pairs.zip(two).for_each(|(row, two)| *at(row, lane) = pair(two[1], two[0]));
        let mut levels = [0; ORDER];
        for (level, &sample) in levels.iter_mut().zip(first_samples) {
            *level = sample as i16;
            lost |= sample.wrapping_add(HALF) >> 16;
        }
        lost |= scale(&levels[..first_samples.len()], scales[lane], &mut out[frame.start..]);
    }
    let longest = frames.iter().map(|frame| frame.length).max().unwrap_or(0);
    // The steps of each lane, where they are not whole in `residual`.
    let mut steps = [Lane::default(); LANES];
    let mut samples = [LaneSamples::default(); LANES];
    for first in (ORDER..longest).step_by(STEPS) {
        let part = |frame: &Waiting| {
            let end = frame.length.min(first + STEPS);
            frame.start + first.min(end)..frame.start + end
        };
        for (lane, frame) in frames.iter().enumerate() {
            let part = &residual[part(frame)];
            if part.len() < STEPS {
                steps[lane].as_flattened_mut()[..part.len()].copy_from_slice(part);
            }
        }
        let mut lanes = steps.each_ref();
        for (lane, frame) in frames.iter().enumerate() {
            if let Some(whole) = residual[part(frame)].as_chunks().0.first_chunk() {
                lanes[lane] = whole;
            }
        }
        spread(unit, &lanes, &mut rows);
        let mut wide = run_steps::<ORDER>(unit, &coefficients, &shifts, &mut rows, &mut pairs);
        collect(unit, &pairs, &mut samples);
        for (lane, frame) in frames.iter().enumerate() {
            let part = part(frame);
            // What follows the end of a frame may be anything.
            let wide = match part.len() < STEPS {
                true => rows[..part.len()]
                    .iter_mut()
                    .fold(0, |all, row| all | at(row, lane).wrapping_add(HALF)),
                false => *at(&mut wide, lane),
            };
            let levels = bytemuck::cast_slice::<i32, i16>(samples[lane].as_flattened());
            lost |= wide >> 16;
            lost |= scale(&levels[..part.len()], scales[lane], &mut out[part.start..]);
        }
        pairs.copy_within(STEPS.., 0);
    }
    lost
}

/// Writes samples of full scale. The result has a bit set if one did not fit.
#[inline(always)]
fn scale(levels: &[i16], up: u32, out: &mut [i16]) -> i32 {
    let out = &mut out[..levels.len()];
    if up == 0 {
        match (out.first_chunk_mut::<STEPS>(), levels.first_chunk()) {
            // A known length, which needs no call.
            (Some(whole), Some(levels)) => *whole = *levels,
            _ => out.copy_from_slice(levels),
        }
        return 0;
    }
    let mut lost = 0;
    for (sample, &level) in out.iter_mut().zip(levels) {
        *sample = level.wrapping_shl(up);
        lost |= i32::from(sample.wrapping_shr(up) ^ level);
    }
    lost
}

/// From a lane after the other to a step after the other.
#[inline(always)]
fn spread(unit: impl Unit, lanes: &[&Lane; LANES], rows: &mut [Row; STEPS]) {
    for group in 0..STEPS / SIDE {
        for half in 0..LANES / SIDE {
            let mut square = [[0; SIDE]; SIDE];
            for n in 0..SIDE {
                square[n] = lanes[half * SIDE + n][group];
            }
            unit.transpose(&mut square);
            for n in 0..SIDE {
                rows[group * SIDE + n][half] = square[n];
            }
        }
    }
}

/// The reverse of [`spread`], from the pairs of every second step: half as many numbers.
#[inline(always)]
fn collect(unit: impl Unit, pairs: &Pairs, lanes: &mut [LaneSamples; LANES]) {
    for group in 0..STEPS / SIDE / 2 {
        for half in 0..LANES / SIDE {
            let mut square = [[0; SIDE]; SIDE];
            for n in 0..SIDE {
                square[n] = pairs[MAX_ORDER + 2 * (group * SIDE + n) + 1][half];
            }
            unit.transpose(&mut square);
            for n in 0..SIDE {
                // Loops, because closures would be functions of their own.
                for pair in &mut square[n] {
                    *pair = in_order(*pair);
                }
                lanes[half * SIDE + n][group] = square[n];
            }
        }
    }
}

/// The older sample of a pair at the lower address.
#[inline(always)]
fn in_order(pair: i32) -> i32 {
    if cfg!(target_endian = "little") { pair.rotate_left(16) } else { pair }
}

fn at(row: &mut Row, lane: usize) -> &mut i32 {
    &mut row[lane / SIDE][lane % SIDE]
}

/// Two numbers of 16 bits.
fn pair(low: i32, high: i32) -> i32 {
    low & 0xFFFF | high << 16
}

/// Replaces residuals by samples, also in `pairs`. Products of pairs: a sample that needs more than 16 bits is wrong anyway,
/// and so is the stream. The result has a bit above the lowest 16 in the lanes that have such a sample.
#[inline(always)]
fn run_steps<const ORDER: usize>(
    unit: impl Unit,
    coefficients: &[Row; MAX_ORDER / 2],
    shifts: &Row,
    rows: &mut [Row; STEPS],
    pairs: &mut Pairs,
) -> Row {
    let mut wide = Row::default();
    // Kept here: from memory, the last pair would come too late.
    let mut last = pairs[MAX_ORDER - 1];
    for step in 0..STEPS {
        for half in 0..LANES / SIDE {
            let mut sum = [0; SIDE];
            for back in (1..ORDER / 2).rev() {
                let before = &pairs[MAX_ORDER + step - 1 - 2 * back][half];
                sum = unit.add_products(sum, before, &coefficients[back][half]);
            }
            sum = unit.add_products(sum, &last[half], &coefficients[0][half]);
            for lane in 0..SIDE {
                // A shift is below 16.
                let predicted = sum[lane] >> (shifts[half][lane] & 31);
                let sample = rows[step][half][lane].wrapping_add(predicted);
                rows[step][half][lane] = sample;
                wide[half][lane] |= sample.wrapping_add(HALF);
                last[half][lane] = pair(sample, last[half][lane]);
            }
            pairs[MAX_ORDER + step][half] = last[half];
        }
    }
    wide
}
