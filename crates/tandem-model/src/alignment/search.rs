//! Monotonic alignment search: the most likely monotonic path of frames through symbols.
//!
//! In: a score for each frame and symbol. Out: frames per symbol, at least one each, in order, with
//! every frame used. Runs on the host; the search takes a few hundred nanoseconds per frame. The diagonal prior is the beta-binomial one of Badlani et al. 2021. Next:
//! [`crate::train_batch`].

use crate::alignment::distance::{Precision, SymbolFrames};
use crate::network::ops::lanes;
use pulp::WithSimd;

/// Reusable memory for searches.
#[derive(Debug, Default)]
pub struct Aligner {
    /// The best sum up to each symbol, with an entry before the first.
    best: Vec<f32>,
    /// `best` one frame earlier.
    before: Vec<f32>,
    came_from_before: Vec<bool>,
    log_factorials: Vec<f64>,
    log_ways: Vec<f64>,
}

impl Aligner {
    /// Frames of each symbol on the path with the largest sum of scores. `scores` is
    /// `[frames, symbols]`, frame by frame. `None` if there is no path: more symbols than frames, or
    /// no symbol.
    pub fn search(&mut self, scores: &[f32], symbols: usize) -> Option<Vec<u32>> {
        if symbols == 0 || scores.len() < symbols * symbols {
            return None;
        }
        let frames = scores.len() / symbols;
        for best in [&mut self.best, &mut self.before] {
            best.clear();
            best.resize(symbols + 1, f32::NEG_INFINITY);
        }
        self.came_from_before.clear();
        self.came_from_before.resize(frames * symbols, false);
        lanes::run(Walk { aligner: self, scores, symbols });
        Some(self.walk_back(frames, symbols))
    }

    fn walk_back(&self, frames: usize, symbols: usize) -> Vec<u32> {
        let mut durations = vec![0; symbols];
        let mut symbol = symbols - 1;
        for frame in (0..frames).rev() {
            durations[symbol] += 1;
            // As many frames as symbols are left, so every step must go back, whatever the scores are.
            let must = frame == symbol;
            if symbol > 0 && (must || self.came_from_before[frame * symbols + symbol]) {
                symbol -= 1;
            }
        }
        durations
    }

    /// Adds the logarithm of the beta-binomial prior, which favours an even speaking rate. `scores` is `[frames, symbols]`.
    pub fn add_diagonal_prior(&mut self, scores: &mut [f32], symbols: usize, strength: f32) {
        if symbols == 0 {
            return;
        }
        self.extend_factorials(scores.len() / symbols + symbols + 1);
        let (table, last) = (&self.log_factorials, symbols - 1);
        self.log_ways.clear();
        let ways = |symbol| table[last] - table[symbol] - table[last - symbol];
        self.log_ways.extend((0..symbols).map(ways));
        let (log_factorials, log_ways) = (&self.log_factorials[..], &self.log_ways[..]);
        lanes::run(DiagonalPrior { log_factorials, log_ways, scores, strength });
    }

    fn extend_factorials(&mut self, up_to: usize) {
        let table = &mut self.log_factorials;
        if table.is_empty() {
            table.push(0.0);
        }
        while table.len() <= up_to {
            table.push(table[table.len() - 1] + (table.len() as f64).ln());
        }
    }
}

/// The forward pass: the best sum up to each symbol at each frame, and where it came from.
struct Walk<'a> {
    aligner: &'a mut Aligner,
    scores: &'a [f32],
    symbols: usize,
}

impl WithSimd for Walk<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        let Aligner { best, before, came_from_before, .. } = self.aligner;
        let frames = self.scores.chunks_exact(self.symbols);
        // A path starts at the first symbol in the first frame.
        before[0] = 0.0;
        for (scores, from) in frames.zip(came_from_before.chunks_exact_mut(self.symbols)) {
            let (come, stay) = (&before[..self.symbols], &before[1..=self.symbols]);
            let best_here = &mut best[1..=self.symbols];
            for symbol in 0..self.symbols {
                from[symbol] = come[symbol] > stay[symbol];
                best_here[symbol] = stay[symbol].max(come[symbol]) + scores[symbol];
            }
            std::mem::swap(best, before);
            before[0] = f32::NEG_INFINITY;
        }
    }
}

/// Adds the prior to scores, from logarithms of factorials and binomial coefficients.
struct DiagonalPrior<'a> {
    log_factorials: &'a [f64],
    log_ways: &'a [f64],
    scores: &'a mut [f32],
    strength: f32,
}

impl WithSimd for DiagonalPrior<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        let (table, symbols) = (self.log_factorials, self.log_ways.len());
        let frames = self.scores.len() / symbols;
        let whole = table[symbols - 1 + frames];
        for (frame, scores) in self.scores.chunks_exact_mut(symbols).enumerate() {
            // The beta functions of the distribution, as factorials.
            let behind = &table[frame..][..symbols];
            let ahead = &table[frames - 1 - frame..][..symbols];
            let pace = table[frame] + table[frames - 1 - frame] - table[frames];
            for symbol in 0..symbols {
                let both = behind[symbol] + ahead[symbols - 1 - symbol] - whole;
                let chance = self.log_ways[symbol] + both - pace;
                scores[symbol] += self.strength * chance as f32;
            }
        }
    }
}

/// Log-likelihoods of frames under unit Gaussians at the symbols' mean frames, up to a constant:
/// `[frames, symbols]` of `-|frame - prior|^2 / 2`. Shapes: `[frames, bands]`, `[symbols, bands]`.
pub fn log_likelihoods(mel: &[f32], prior: &[f32], bands: usize) -> Vec<f32> {
    let means = prior.chunks_exact(bands).map(|mean| (mean, Precision::One));
    let mut scores = SymbolFrames::new(means, bands).distances(mel);
    scores.iter_mut().for_each(|score| *score *= -0.5);
    scores
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All paths that give each symbol at least one frame.
    fn all_paths(symbols: usize, frames: usize) -> Vec<Vec<u32>> {
        if symbols == 1 {
            return vec![vec![frames as u32]];
        }
        let mut paths = Vec::new();
        for first in 1..=frames - (symbols - 1) {
            for rest in all_paths(symbols - 1, frames - first) {
                paths.push(std::iter::once(first as u32).chain(rest).collect());
            }
        }
        paths
    }

    fn value(scores: &[f32], durations: &[u32]) -> f32 {
        let symbol_of = durations.iter().enumerate();
        let symbol_of = symbol_of.flat_map(|(symbol, &n)| std::iter::repeat_n(symbol, n as usize));
        symbol_of.enumerate().map(|(t, symbol)| scores[t * durations.len() + symbol]).sum()
    }

    proptest! {
        #[test]
        fn no_other_path_is_better(
            (symbols, scores) in (1usize..5, 0usize..5).prop_flat_map(|(symbols, more)| {
                let count = symbols * (symbols + more);
                (Just(symbols), prop::collection::vec(-5f32..5.0, count))
            })
        ) {
            let found = Aligner::default().search(&scores, symbols).unwrap();
            prop_assert!(found.iter().all(|&frames| frames > 0));
            let frames = scores.len() / symbols;
            prop_assert_eq!(found.iter().sum::<u32>() as usize, frames);
            let best = all_paths(symbols, frames).iter().map(|p| value(&scores, p)).fold(f32::MIN, f32::max);
            prop_assert!((value(&scores, &found) - best).abs() < 1e-4);
        }
    }

    #[test]
    fn more_symbols_than_frames_have_no_path() {
        assert_eq!(Aligner::default().search(&[0.0; 6], 3), None);
        assert_eq!(Aligner::default().search(&[], 0), None);
        assert_eq!(Aligner::default().search(&[0.0; 9], 3), Some(vec![1, 1, 1]));
    }

    #[test]
    fn nan_scores_still_give_a_complete_path() {
        let found = Aligner::default().search(&[f32::NAN; 12], 3).unwrap();
        assert_eq!(found.iter().sum::<u32>(), 4);
        assert!(found.iter().all(|&frames| frames > 0));
    }

    #[test]
    fn the_diagonal_prior_is_a_distribution_over_symbols() {
        let (symbols, frames) = (7, 20);
        let mut scores = vec![0.0; symbols * frames];
        Aligner::default().add_diagonal_prior(&mut scores, symbols, 1.0);
        for frame in scores.chunks_exact(symbols) {
            let sum: f32 = frame.iter().map(|score| score.exp()).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        }
        let mut aligner = Aligner::default();
        let even = aligner.search(&scores, symbols).unwrap();
        assert!(even.iter().all(|&n| (2..=4).contains(&n)), "{even:?}");
    }

    #[test]
    fn likelihoods_are_half_squared_distances() {
        let scores = log_likelihoods(&[0.0, 0.0, 3.0, 4.0], &[0.0, 0.0, 0.0, 1.0], 2);
        assert_eq!(scores, [0.0, -0.5, -12.5, -9.0]);
    }
}
