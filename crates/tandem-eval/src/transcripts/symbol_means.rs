//! Mean frames of symbols in all other rows of a corpus.
//!
//! In: rows with their alignment. Out: for one row, the mean frame of each symbol in its context,
//! without the frames of that row. A voice may have memorized a wrong transcript; these means cannot.
//! The mean of each row is subtracted, so that speakers and microphones have little influence.

use std::collections::HashMap;

/// Weight of the language mean in the mean of a symbol, in frames.
const LANGUAGE_WEIGHT: f64 = 20.0;
/// Weight of the symbol mean in the mean of a symbol with its neighbour, in frames.
const SYMBOL_WEIGHT: f64 = 15.0;

/// A symbol, alone or with a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Context {
    Any,
    Of(i32),
    After(i32, Option<i32>),
    Before(i32, Option<i32>),
}

#[derive(Clone, Debug, Default)]
struct Sum {
    frames: f64,
    values: Vec<f64>,
}

/// Sums of frames by language and context.
#[derive(Debug)]
pub struct SymbolMeans {
    bands: usize,
    sums: HashMap<(usize, Context), Sum>,
}

/// The sums of one row.
#[derive(Debug)]
pub struct RowSums {
    language: usize,
    sums: HashMap<Context, Sum>,
}

impl SymbolMeans {
    pub fn new(bands: usize) -> SymbolMeans {
        SymbolMeans { bands, sums: HashMap::new() }
    }

    pub fn add(&mut self, row: &RowSums) {
        for (context, sum) in &row.sums {
            let total = self.sums.entry((row.language, *context)).or_default();
            total.frames += sum.frames;
            total.values.resize(self.bands, 0.0);
            total.values.iter_mut().zip(&sum.values).for_each(|(all, own)| *all += own);
        }
    }

    /// The expected frame of each symbol of a text, without this row. Shape: `[symbols, bands]`.
    pub fn without(&self, row: &RowSums, text: &[i32]) -> Vec<f32> {
        let none = vec![0.0; self.bands];
        let any = self.mean(row, Context::Any, &none, 0.0);
        let mut means = Vec::with_capacity(text.len() * self.bands);
        for at in 0..text.len() {
            let [_, symbol, after, before] = contexts(text, at);
            let symbol = self.mean(row, symbol, &any, LANGUAGE_WEIGHT);
            let after = self.mean(row, after, &symbol, SYMBOL_WEIGHT);
            let before = self.mean(row, before, &symbol, SYMBOL_WEIGHT);
            means.extend(after.iter().zip(before).map(|(a, b)| ((a + b) / 2.0) as f32));
        }
        means
    }

    /// The mean of a context without the row's own frames, smoothed towards another mean that counts as
    /// `weight` frames.
    fn mean(&self, row: &RowSums, context: Context, towards: &[f64], weight: f64) -> Vec<f64> {
        let all = self.sums.get(&(row.language, context));
        let own = row.sums.get(&context);
        let frames = all.map_or(0.0, |sum| sum.frames) - own.map_or(0.0, |sum| sum.frames);
        let value = |band: usize| {
            let of = |sum: Option<&Sum>| sum.map_or(0.0, |sum| sum.values[band]);
            of(all) - of(own)
        };
        let whole = (frames + weight).max(1.0);
        (0..self.bands).map(|band| (value(band) + weight * towards[band]) / whole).collect()
    }
}

impl RowSums {
    /// `frames` are centred, `[frames, bands]`; `durations` are frames per symbol.
    pub fn of(
        language: usize,
        text: &[i32],
        durations: &[u32],
        frames: &[f32],
        bands: usize,
    ) -> RowSums {
        let mut sums: HashMap<Context, Sum> = HashMap::new();
        let mut rest = frames.chunks_exact(bands);
        for (at, &count) in durations.iter().enumerate() {
            let mut symbol = vec![0.0; bands];
            for frame in rest.by_ref().take(count as usize) {
                symbol.iter_mut().zip(frame).for_each(|(sum, &value)| *sum += f64::from(value));
            }
            for context in contexts(text, at) {
                let sum = sums.entry(context).or_default();
                sum.frames += f64::from(count);
                sum.values.resize(bands, 0.0);
                sum.values.iter_mut().zip(&symbol).for_each(|(sum, value)| *sum += value);
            }
        }
        RowSums { language, sums }
    }
}

/// Subtracts the mean frame.
pub fn centred(frames: &[f32], bands: usize) -> Vec<f32> {
    let count = (frames.len() / bands).max(1) as f32;
    let mut mean = vec![0.0f32; bands];
    for frame in frames.chunks_exact(bands) {
        mean.iter_mut().zip(frame).for_each(|(sum, value)| *sum += value / count);
    }
    let less = frames.chunks_exact(bands).flat_map(|frame| frame.iter().zip(&mean));
    less.map(|(value, mean)| value - mean).collect()
}

/// The contexts that the frames of a symbol count for.
fn contexts(text: &[i32], at: usize) -> [Context; 4] {
    let (symbol, after) = (text[at], text.get(at + 1).copied());
    let before = at.checked_sub(1).map(|at| text[at]);
    [
        Context::Any,
        Context::Of(symbol),
        Context::After(symbol, before),
        Context::Before(symbol, after),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rows_own_frames_do_not_count_in_its_means() {
        // In the first row symbol 1 is at 5 and 2 at -5; in the second row it is the opposite.
        let right = RowSums::of(0, &[1, 2], &[40, 40], &[[5.0; 40], [-5.0; 40]].concat(), 1);
        let wrong = RowSums::of(0, &[1, 2], &[40, 40], &[[-5.0; 40], [5.0; 40]].concat(), 1);
        let other = RowSums::of(0, &[1, 2], &[40, 40], &[[5.0; 40], [-5.0; 40]].concat(), 1);
        let alone = RowSums::of(1, &[1], &[2], &[3.0, 3.0], 1);
        let mut symbol_means = SymbolMeans::new(1);
        [&right, &wrong, &other, &alone].into_iter().for_each(|row| symbol_means.add(row));
        let means = symbol_means.without(&wrong, &[1, 2]);
        // 80 frames of the two others at 5, 20 of the language's mean at 0; then 15 of that.
        let symbol = 80.0 * 5.0 / 100.0;
        let smoothed = (80.0 * 5.0 + 15.0 * symbol) / 95.0;
        assert!((f64::from(means[0]) - smoothed).abs() < 1e-5, "{means:?}");
        assert!((f64::from(means[1]) + smoothed).abs() < 1e-5, "{means:?}");
        // There are no other rows of this language.
        assert_eq!(symbol_means.without(&alone, &[1]), [0.0]);
    }

    #[test]
    fn frames_are_centred_band_by_band() {
        assert_eq!(centred(&[1.0, 10.0, 3.0, 20.0], 2), [-1.0, -5.0, 1.0, 5.0]);
    }
}
