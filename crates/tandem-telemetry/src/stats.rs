//! Statistics of a stream: one pass, constant memory, mergeable.
//!
//! In: finite values, usually seconds. Out: [`Figures`]: count, mean, standard deviation,
//! extremes, median, 95th percentile and variation. Mean and deviation follow Welford (1962),
//! merging follows Chan, Golub and LeVeque (1979); percentiles are those of [`Sketch`].

use crate::sketch::Sketch;
use serde::{Deserialize, Serialize};

/// A running summary of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    count: u64,
    mean: f64,
    // Sum of squared distances from the mean.
    spread: f64,
    min: f64,
    max: f64,
    sketch: Sketch,
}

/// What is known about a stream of numbers, ready to print.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub count: u64,
    pub mean: f64,
    /// Standard deviation of these numbers (divided by the count, not by one less).
    pub std: f64,
    pub min: f64,
    pub max: f64,
    /// Half are below; to half a percent.
    pub p50: f64,
    /// 95 of 100 are below; to half a percent.
    pub p95: f64,
    /// Standard deviation over mean; zero where the mean is zero.
    pub variation: f64,
}

impl Stats {
    /// Adds a value. NaN and infinite values are ignored: a single NaN would hide all others.
    pub fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = if self.count == 0 { value } else { self.max.max(value) };
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.spread += before * (value - self.mean);
        self.sketch.add(value);
    }

    /// Adds all values of another summary.
    pub fn merge(&mut self, other: &Stats) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        let (mine, theirs) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        self.mean += apart * theirs / (mine + theirs);
        self.spread += other.spread + apart * apart * mine * theirs / (mine + theirs);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sketch.merge(&other.sketch);
    }

    /// How many numbers were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All figures, or `None` of nothing.
    pub fn figures(&self) -> Option<Figures> {
        let percentile = |share| Some(self.sketch.percentile(share)?.clamp(self.min, self.max));
        let std = (self.spread / self.count as f64).max(0.0).sqrt();
        Some(Figures {
            count: self.count,
            mean: self.mean,
            std,
            min: self.min,
            max: self.max,
            p50: percentile(0.5)?,
            p95: percentile(0.95)?,
            variation: if self.mean == 0.0 { 0.0 } else { std / self.mean },
        })
    }
}

impl FromIterator<f64> for Stats {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Stats {
        let mut stats = Stats::default();
        values.into_iter().for_each(|value| stats.add(value));
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stats(values: &[f64]) -> Stats {
        values.iter().copied().collect()
    }

    fn close(left: f64, right: f64, scale: f64) -> bool {
        (left - right).abs() <= 1e-9 * scale.abs().max(1e-9)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn one_pass_agrees_with_two(values in prop::collection::vec(1e-6..1e3f64, 1..400)) {
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let std = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count).sqrt();
            let figures = stats(&values).figures().unwrap();
            prop_assert!(close(figures.mean, mean, mean));
            prop_assert!(close(figures.std, std, mean));
            prop_assert!(close(figures.variation, std / mean, 1.0));
            prop_assert_eq!(figures.min, values.iter().copied().fold(f64::MAX, f64::min));
            prop_assert_eq!(figures.max, values.iter().copied().fold(0.0, f64::max));
        }

        #[test]
        fn merging_parts_equals_counting_the_whole(
            values in prop::collection::vec(1e-6..1e3f64, 0..200),
            cut in 0usize..200,
        ) {
            let (left, right) = values.split_at(cut.min(values.len()));
            let mut merged = stats(left);
            merged.merge(&stats(right));
            match (merged.figures(), stats(&values).figures()) {
                (Some(merged), Some(whole)) => {
                    prop_assert!(close(merged.mean, whole.mean, whole.mean));
                    prop_assert!(close(merged.std, whole.std, whole.mean));
                    prop_assert_eq!(
                        (merged.count, merged.min, merged.max, merged.p50, merged.p95),
                        (whole.count, whole.min, whole.max, whole.p50, whole.p95)
                    );
                }
                (merged, whole) => prop_assert_eq!(merged, whole),
            }
        }
    }

    #[test]
    fn known_numbers_give_known_figures() {
        // numpy: mean 5.0, std 2.0 of the textbook eight.
        let figures = stats(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).figures().unwrap();
        assert_eq!((figures.mean, figures.std, figures.variation), (5.0, 2.0, 0.4));
        assert!((figures.p50 - 4.0).abs() < 0.03 && (figures.p95 - 9.0).abs() < 0.05);
    }

    #[test]
    fn a_large_offset_does_not_lose_the_deviation() {
        // The sum-of-squares formula gives nonsense here.
        let figures = stats(&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0]).figures().unwrap();
        assert!((figures.std - (2.0f64 / 3.0).sqrt()).abs() < 1e-6);
    }

    #[test]
    fn no_values_give_no_figures_and_non_finite_values_are_ignored() {
        assert_eq!(Stats::default().figures(), None);
        assert_eq!(stats(&[f64::NAN, 3.0, f64::INFINITY]).count(), 1);
    }
}
