//! The residuals of several frames, side by side.
//!
//! In: frames after their predictors. Out: their residuals. A residual has parts, each with its own Rice parameter; most
//! encoders give all frames of a stream the same number of them, so that the parts of several frames begin and end together.

use super::bits::Bits;
use super::frame::{FrameStart, MAX_ORDER, Predictor, read_plain, read_subframe};
use super::rice::{Run, unfold};
use super::unit::Unit;

/// What is left of a frame's residual.
#[derive(Clone, Copy, Debug, Default)]
pub struct Residual {
    /// The next sample.
    at: usize,
    /// Where its part ends; the Rice parameter of the rest of it.
    end: usize,
    parameter: u32,
    /// Samples of a part.
    part: usize,
    parameter_bits: u32,
}

/// A frame that is read.
#[derive(Debug, Default)]
pub struct OpenFrame<'a> {
    pub predictor: Predictor,
    bits: Bits<'a>,
    residual: Residual,
    /// Its first samples, then its residual.
    out: &'a mut [i32],
}

impl Residual {
    /// Of a frame that is complete without one.
    pub fn none(length: usize) -> Residual {
        Residual { at: length, end: length, parameter: 0, part: length, parameter_bits: 0 }
    }

    /// Reads how the residual after the first `order` samples is stored.
    pub fn begin(bits: &mut Bits<'_>, order: usize, length: usize) -> Option<Residual> {
        let parameter_bits = match bits.read(2) {
            0 => 4,
            1 => 5,
            _ => return None,
        };
        let parts = 1usize << bits.read(4);
        let part = length / parts;
        if part * parts != length || part < order {
            return None;
        }
        Some(Residual { at: order, end: 0, parameter: 0, part, parameter_bits })
    }
}

impl<'a> OpenFrame<'a> {
    /// Reads a frame up to its residual. `bytes` are those that its start was found in, `out` has its length.
    #[inline(always)]
    pub fn read(
        bytes: &'a [u8],
        start: &FrameStart,
        sample_bits: u32,
        out: &'a mut [i32],
    ) -> Option<OpenFrame<'a>> {
        let mut bits = Bits::new(bytes, start.body);
        let (predictor, residual) = read_subframe(&mut bits, sample_bits, out)?;
        Some(OpenFrame { predictor, bits, residual, out })
    }

    /// Reads the rest of the frame. Returns its size in bytes; `None` if it is broken.
    #[inline(always)]
    pub fn finish(&mut self, unit: impl Unit, start: &FrameStart) -> Option<usize> {
        self.read_rest(unit)?;
        let (bytes, end) = (self.bits.bytes, self.bits.byte());
        // Neither the padding to a whole byte nor the sum itself may be missing.
        let (frame, sum) = (bytes.get(start.at..end)?, bytes.get(end..end + 2)?);
        let is_right = unit.frame_sum(frame) == u16::from_be_bytes([sum[0], sum[1]]);
        is_right.then_some(end + 2 - start.at)
    }

    /// Goes to the next Rice codes; a part of plain numbers is read. Returns how many codes follow, zero at the frame's end.
    #[inline(always)]
    fn advance(&mut self) -> usize {
        let Residual { at, end, parameter, part, parameter_bits } = &mut self.residual;
        // The first part is empty if the predictor has as many first samples.
        while *at >= *end && *end < self.out.len() {
            *end += *part;
            *parameter = self.bits.read(*parameter_bits);
            if *parameter == (1 << *parameter_bits) - 1 {
                let size = self.bits.read(5);
                read_plain(&mut self.bits, size, &mut self.out[*at..*end]);
                *at = *end;
            }
        }
        *end - *at
    }

    #[inline(always)]
    fn run(&mut self, count: usize) -> Run<'_, 'a> {
        let Residual { at, parameter, .. } = self.residual;
        Run { bits: &mut self.bits, parameter, out: &mut self.out[at..at + count] }
    }

    /// After a run was read.
    #[inline(always)]
    fn end_run(&mut self, count: usize) {
        let Residual { at, parameter, .. } = &mut self.residual;
        unfold(*parameter, &mut self.out[*at..*at + count]);
        *at += count;
    }

    /// Reads codes of this frame alone. `None` for a number that does not fit.
    #[inline(always)]
    fn read_alone(&mut self, unit: impl Unit, count: usize) -> Option<()> {
        let whole = unit.read_run(self.run(count));
        self.end_run(count);
        whole.then_some(())
    }

    /// Reads the rest of the residual. `None` for a number that does not fit.
    #[inline(always)]
    fn read_rest(&mut self, unit: impl Unit) -> Option<()> {
        loop {
            match self.advance() {
                0 => return Some(()),
                count => self.read_alone(unit, count)?,
            }
        }
    }
}

/// Reads the residuals of two frames as far as both have parts at the same place; [`OpenFrame::finish`] reads the rest.
/// Returns how many of the first frames can be read further.
#[inline(always)]
pub fn read_side_by_side<'a>(unit: impl Unit, [a, b]: &mut [OpenFrame<'a>; 2]) -> usize {
    // The first parts differ by the orders of the predictors. Afterwards both end together.
    let (left, right) = (a.advance(), b.advance());
    if (1..MAX_ORDER).contains(&left.abs_diff(right)) {
        let (frame, number) = if left > right { (&mut *a, 0) } else { (&mut *b, 1) };
        if frame.read_alone(unit, left.abs_diff(right)).is_none() {
            return number;
        }
    }
    loop {
        let count = a.advance().min(b.advance());
        if count == 0 {
            return 2;
        }
        let whole = unit.read_two_runs([a.run(count), b.run(count)]);
        a.end_run(count);
        b.end_run(count);
        if whole < 2 {
            return whole;
        }
    }
}
