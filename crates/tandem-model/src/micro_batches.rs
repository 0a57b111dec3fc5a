//! The gradients of a batch. On the CPU, two micro-batches are computed side by side.
//!
//! In: a voice and a [`DeviceBatch`]. Out: one [`GradientSum`]. A step is a chain of a few hundred small operations,
//! and many of them use one thread only. Two chains keep two threads busy without waiting for each other after every
//! operation; further threads share the work within operations. Where a batch is cut follows from its lengths, never
//! from the number of threads, and the sums are added in order, so the result has the same bits on any number of
//! threads. Other devices compute the batch as a whole. Next: [`crate::optimizer`].

use crate::gradients::GradientSum;
use crate::host_tensor::ints;
use crate::loss_scale::LossFactor;
use crate::network::ops::{Lengths, on_cpu};
use crate::network::voice::Voice;
use crate::train_batch::DeviceBatch;
use crate::weights::{weights_of, with_weights};
use burn::tensor::{Int, Tensor};
use std::ops::Range;

/// The gradients and losses of a batch. The losses are multiplied with `factor` before the backward pass.
pub fn batch_gradients(
    voice: &Voice,
    batch: &DeviceBatch,
    factor: impl Into<LossFactor>,
) -> GradientSum {
    let factor = factor.into();
    if !on_cpu(&batch.mel) {
        return gradients(voice, batch, factor);
    }
    match cut(batch.positions.real()) {
        None => gradients(voice, batch, factor),
        Some((first, second)) => {
            let micro = |rows: Range<usize>| {
                let (voice, batch) = (with_own_graph(voice), batch.rows(rows));
                let factor = factor.clone();
                move || gradients(&voice, &batch, factor)
            };
            let (mut first, second) = rayon::join(micro(first), micro(second));
            first.merge(second);
            first
        }
    }
}

fn gradients(voice: &Voice, batch: &DeviceBatch, factor: LossFactor) -> GradientSum {
    let losses = voice.losses(batch);
    let gradients = factor.times(losses.total()).backward();
    let mut sum = GradientSum::default();
    sum.add(voice, gradients, batch.utterances);
    sum.add_losses(losses.inner());
    sum
}

/// The same weights as leaves of another autodiff graph. Burn keeps computations that share a leaf in one graph, and
/// locks it for the whole of a backward pass.
fn with_own_graph(voice: &Voice) -> Voice {
    let weights = weights_of(voice).into_iter().map(|weight| weight.values).collect();
    with_weights(voice.clone(), weights)
}

/// The rows of two micro-batches that take about the same time; none if there are not two rows. Empty rows at the end
/// are left out: they have no loss.
fn cut(real: &[usize]) -> Option<(Range<usize>, Range<usize>)> {
    let rows = real.iter().rposition(|&length| length > 0)? + 1;
    let padded = |rows: Range<usize>| rows.len() * real[rows].iter().max().unwrap_or(&0);
    let longer = |at: &usize| padded(0..*at).max(padded(*at..rows));
    let at = (1..rows).min_by_key(longer)?;
    Some((0..at, at..rows))
}

impl DeviceBatch {
    /// Some of its rows, padded to the longest of them.
    fn rows(&self, rows: Range<usize>) -> DeviceBatch {
        let device = self.mel.device();
        let longest = |lengths: &Lengths| *lengths.real()[rows.clone()].iter().max().unwrap_or(&1);
        let [all_rows, all_frames, bands] = self.mel.dims();
        let (all_symbols, all_positions) = (self.symbols.dims()[1], self.positions.positions());
        let (symbols, positions) = (longest(&self.text).max(1), longest(&self.positions).max(1));
        let frames = positions * (all_frames / all_positions);

        // Indices of symbols count from the first row of the batch.
        let moved =
            rows.clone().map(|row| (row * all_symbols - (row - rows.start) * symbols) as i32);
        let moved = ints(moved.collect(), [rows.len(), 1], &device);
        let indices = |all: &Tensor<1, Int>, all_places: usize, places: usize| {
            let all = all.clone().reshape([all_rows, all_places]);
            let some = all.slice([rows.clone(), 0..places]) - moved.clone();
            some.reshape([rows.len() * places])
        };
        let lengths =
            |all: &Lengths, places| Lengths::new(&all.real()[rows.clone()], places, &device);
        let whole = |all: &Tensor<3>| {
            let [_, places, width] = all.dims();
            all.clone().slice([rows.clone(), 0..places, 0..width])
        };
        let by_symbol = |all: &Tensor<2>| all.clone().slice([rows.clone(), 0..symbols]);
        let by_frame =
            |all: &Tensor<3>, width| all.clone().slice([rows.clone(), 0..frames, 0..width]);
        DeviceBatch {
            symbols: self.symbols.clone().slice([rows.clone(), 0..symbols]),
            languages: self.languages.clone().slice([rows.clone(), 0..1]),
            text: lengths(&self.text, symbols),
            positions: lengths(&self.positions, positions),
            log_durations: by_symbol(&self.log_durations),
            symbol_weight: by_symbol(&self.symbol_weight),
            frame_symbols: indices(&self.frame_symbols, all_frames, frames),
            position_symbols: indices(&self.position_symbols, all_positions, positions),
            mel: by_frame(&self.mel, bands),
            frame_weight: by_frame(&self.frame_weight, 1),
            reference: whole(&self.reference),
            reference_mask: self.reference_mask.clone().slice([rows.clone()]),
            noise: by_frame(&self.noise, bands),
            times: whole(&self.times),
            time_features: self.time_features.clone().slice([rows.clone()]),
            utterances: self.text.real()[rows].iter().filter(|&&count| count > 0).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_batch_is_cut_where_both_halves_take_as_long() {
        assert_eq!(cut(&[9; 8]), Some((0..4, 4..8)));
        assert_eq!(cut(&[9, 3, 3, 3]), Some((0..1, 1..4)));
        assert_eq!(cut(&[1, 1, 1, 8]), Some((0..3, 3..4)));
    }

    #[test]
    fn empty_rows_at_the_end_are_left_out() {
        assert_eq!(cut(&[5, 5, 0, 0]), Some((0..1, 1..2)));
        assert_eq!(cut(&[0, 5, 0]), Some((0..1, 1..2)));
    }

    #[test]
    fn one_row_is_not_cut() {
        assert_eq!(cut(&[7]), None);
        assert_eq!(cut(&[7, 0]), None);
        assert_eq!(cut(&[0, 0]), None);
        assert_eq!(cut(&[]), None);
    }

    proptest! {
        #[test]
        fn every_row_with_a_length_is_in_one_half(real in prop::collection::vec(0usize..50, 0..20)) {
            let Some((first, second)) = cut(&real) else { return Ok(()) };
            prop_assert_eq!(first.start, 0);
            prop_assert_eq!(first.end, second.start);
            prop_assert!(!first.is_empty() && !second.is_empty());
            prop_assert!(real[second.end..].iter().all(|&length| length == 0));
        }
    }
}
