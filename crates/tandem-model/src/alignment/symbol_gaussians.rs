//! A Gaussian for each symbol, without context: what its frames look like.
//!
//! In: frames whose symbols are known. Out: [`SymbolGaussians`], which scores any frames. Runs on the calling thread. Next:
//! [`crate::alignment::flat_start`].

use crate::alignment::distance::{Precision, SymbolFrames};
use std::collections::BTreeMap;

/// Scale of the log-likelihood, since the bands are far from independent.
const LIKELIHOOD_SCALE: f32 = 0.2;
/// Prior variance, and the number of frames it counts for.
const PRIOR_VARIANCE: (f64, f64) = (0.3, 5.0);

/// Language and symbol.
pub type SymbolKey = (i32, i32);

/// Frames and their symbols. Shapes: `[symbols]`, `[symbols]`, `[frames, bands]`.
#[derive(Clone, Copy, Debug)]
pub struct AlignedFrames<'a> {
    pub language: i32,
    pub symbols: &'a [i32],
    /// Frames of each symbol.
    pub durations: &'a [u32],
    pub mel: &'a [f32],
}

/// A Gaussian for each symbol of each language.
#[derive(Clone, Debug)]
pub struct SymbolGaussians {
    bands: usize,
    symbols: BTreeMap<SymbolKey, Gaussian>,
    /// For symbols that had no frames.
    unseen: Gaussian,
}

/// Mean and precision (inverse variance) of the frames of a symbol.
#[derive(Clone, Debug)]
struct Gaussian {
    mean: Vec<f32>,
    precision: Vec<f32>,
    log_variance: f32,
}

/// Sums over the frames of a symbol.
#[derive(Clone)]
struct Moments {
    count: f64,
    sum: Vec<f64>,
    squares: Vec<f64>,
}

impl SymbolGaussians {
    /// None without any frame.
    pub fn estimate<'a>(
        rows: impl IntoIterator<Item = AlignedFrames<'a>>,
        bands: usize,
    ) -> Option<SymbolGaussians> {
        let mut moments: BTreeMap<SymbolKey, Moments> = BTreeMap::new();
        for row in rows {
            let mut frames = row.mel.chunks_exact(bands);
            for (symbol, &count) in row.symbols.iter().zip(row.durations) {
                let key = (row.language, *symbol);
                let sums = moments.entry(key).or_insert_with(|| Moments::new(bands));
                frames.by_ref().take(count as usize).for_each(|frame| sums.add(frame));
            }
        }
        let mut all = Moments::new(bands);
        moments.values().for_each(|sums| all.merge(sums));
        let symbols = moments.iter().map(|(key, sums)| (*key, sums.gaussian())).collect();
        (all.count > 0.0).then(|| SymbolGaussians { bands, symbols, unseen: all.gaussian() })
    }

    pub fn bands(&self) -> usize {
        self.bands
    }

    /// Scaled log-likelihoods up to a constant: `[frames, kinds]`, frame by frame.
    pub fn scores(&self, kinds: &[SymbolKey], mel: &[f32]) -> Vec<f32> {
        let gaussians: Vec<&Gaussian> =
            kinds.iter().map(|kind| self.symbols.get(kind).unwrap_or(&self.unseen)).collect();
        let pairs = gaussians.iter().map(|one| (&one.mean[..], Precision::Each(&one.precision)));
        let mut scores = SymbolFrames::new(pairs, self.bands).distances(mel);
        for frame in scores.chunks_exact_mut(kinds.len()) {
            for (score, gaussian) in frame.iter_mut().zip(&gaussians) {
                *score = -0.5 * LIKELIHOOD_SCALE * (*score + gaussian.log_variance);
            }
        }
        scores
    }
}

impl Moments {
    fn new(bands: usize) -> Moments {
        Moments { count: 0.0, sum: vec![0.0; bands], squares: vec![0.0; bands] }
    }

    fn add(&mut self, frame: &[f32]) {
        self.count += 1.0;
        for ((sum, square), &x) in self.sum.iter_mut().zip(&mut self.squares).zip(frame) {
            *sum += f64::from(x);
            *square += f64::from(x) * f64::from(x);
        }
    }

    fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.sum.iter_mut().zip(&other.sum).for_each(|(sum, more)| *sum += more);
        self.squares.iter_mut().zip(&other.squares).for_each(|(sum, more)| *sum += more);
    }

    fn gaussian(&self) -> Gaussian {
        let count = self.count.max(1.0);
        let (prior, weight) = PRIOR_VARIANCE;
        let mean: Vec<f64> = self.sum.iter().map(|sum| sum / count).collect();
        let variance = |(mean, squares): (&f64, &f64)| {
            let own = (squares / count - mean * mean).max(0.0) * count;
            (own + prior * weight) / (count + weight)
        };
        let variances: Vec<f64> = mean.iter().zip(&self.squares).map(variance).collect();
        Gaussian {
            log_variance: variances.iter().map(|variance| variance.ln()).sum::<f64>() as f32,
            precision: variances.iter().map(|variance| (1.0 / variance) as f32).collect(),
            mean: mean.iter().map(|mean| *mean as f32).collect(),
        }
    }
}
