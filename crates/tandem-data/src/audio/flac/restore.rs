//! Samples from predictors and residuals, sixteen frames at a time.
//!
//! A sample depends on those just before it, so one frame alone leaves a vector unit idle. Frames do not depend on each
//! other: one lane each. Frames whose sums need more than 32 bits are restored one by one.

use super::frame::{MAX_ORDER, Predictor};

pub const LANES: usize = 16;
/// Steps between two transpositions; their samples stay in the first-level cache.
const STEPS: usize = 64;

type Row = [i32; LANES];

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
    frames: &mut [Waiting],
    residual: &mut [i32],
    bits: u32,
    out: &mut Vec<i16>,
) -> Option<()> {
    for frame in &mut *frames {
        if !fits_32_bits(&frame.predictor, bits) {
            let samples = &mut residual[frame.start..][..frame.length];
            restore_until(frame.length, &frame.predictor, samples);
            frame.predictor.order = 0;
        }
    }
    match frames.iter().map(|frame| frame.predictor.order).max()? {
        0 => {}
        1..=4 => restore_lanes::<4>(frames, residual),
        5..=8 => restore_lanes::<8>(frames, residual),
        9..=12 => restore_lanes::<12>(frames, residual),
        _ => restore_lanes::<MAX_ORDER>(frames, residual),
    }
    let first = out.len();
    out.resize(first + residual.len(), 0);
    let mut lost = 0;
    for frame in frames {
        // Full scale is that of 16 bits.
        let up = frame.predictor.wasted + 16 - bits;
        let levels = &residual[frame.start..][..frame.length];
        for (sample, &level) in out[first + frame.start..].iter_mut().zip(levels) {
            *sample = (level << up) as i16;
            lost |= (i32::from(*sample) >> up) ^ level;
        }
    }
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

/// Restores all frames, in one lane each. Coefficients beyond a frame's own order are zero.
#[inline(always)]
fn restore_lanes<const ORDER: usize>(frames: &[Waiting], residual: &mut [i32]) {
    let mut coefficients = [[0; LANES]; ORDER];
    let mut shifts: Row = [0; LANES];
    // The samples before the steps, then the steps.
    let mut rows = [[0; LANES]; MAX_ORDER + STEPS];
    for (lane, frame) in frames.iter().enumerate() {
        let predictor = &frame.predictor;
        let samples = &mut residual[frame.start..][..frame.length];
        // An order below `ORDER` ends its first samples earlier.
        restore_until(ORDER, predictor, samples);
        let own = &predictor.coefficients[..predictor.order];
        coefficients.iter_mut().zip(own).for_each(|(row, &own)| row[lane] = own);
        shifts[lane] = predictor.shift as i32;
        let first_rows = rows[MAX_ORDER - ORDER..MAX_ORDER].iter_mut();
        first_rows.zip(&*samples).for_each(|(row, &sample)| row[lane] = sample);
    }
    let longest = frames.iter().map(|frame| frame.length).max().unwrap_or(0);
    for first in (ORDER..longest).step_by(STEPS) {
        let part = |frame: &Waiting| {
            let end = frame.length.min(first + STEPS);
            frame.start + first.min(end)..frame.start + end
        };
        for (lane, frame) in frames.iter().enumerate() {
            let steps = rows[MAX_ORDER..].iter_mut();
            steps.zip(&residual[part(frame)]).for_each(|(row, &value)| row[lane] = value);
        }
        run_steps(&coefficients, &shifts, &mut rows);
        for (lane, frame) in frames.iter().enumerate() {
            let values = residual[part(frame)].iter_mut();
            values.zip(&rows[MAX_ORDER..]).for_each(|(value, row)| *value = row[lane]);
        }
        rows.copy_within(STEPS.., 0);
    }
}

#[inline(always)]
fn run_steps<const ORDER: usize>(
    coefficients: &[Row; ORDER],
    shifts: &Row,
    rows: &mut [Row; MAX_ORDER + STEPS],
) {
    for step in MAX_ORDER..MAX_ORDER + STEPS {
        let mut sum: Row = [0; LANES];
        // The latest sample last: it is the one to wait for.
        for back in (0..ORDER).rev() {
            let (row, coefficients) = (&rows[step - 1 - back], &coefficients[back]);
            for lane in 0..LANES {
                sum[lane] = sum[lane].wrapping_add(row[lane].wrapping_mul(coefficients[lane]));
            }
        }
        for (lane, value) in rows[step].iter_mut().enumerate() {
            // A shift is below 16.
            *value = value.wrapping_add(sum[lane] >> (shifts[lane] & 31));
        }
    }
}
