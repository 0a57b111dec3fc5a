//! Health of an alignment of text and speech, as metrics with limits and advice.
//!
//! In: frames per symbol, the symbol of each frame, or a soft alignment. Out: [`AlignmentHealth`]. A
//! voice with a bad alignment is not intelligible, whatever its loss is.

use super::MetricError;
use serde::Serialize;

/// Metrics of an alignment. 1 is best, except for `entropy`, where 0 is best.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AlignmentHealth {
    /// Fraction of the symbols that have at least one frame and not too many.
    pub coverage: f64,
    /// Fraction of the steps from frame to frame that stay or advance to the next symbol.
    pub monotonic: f64,
    /// Evenness of the speaking rate: 1 minus twice the mean distance to the diagonal, at least 0.
    pub diagonality: f64,
    /// Normalised entropy of the symbols of a frame: 0 is certain, 1 is uniform. `None` if unknown.
    pub entropy: Option<f64>,
}

/// Limits of a healthy alignment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HealthLimits {
    /// The most frames of a symbol; about 0.7 s at the default hop.
    pub most_frames: usize,
    pub coverage: f64,
    pub monotonic: f64,
    pub diagonality: f64,
    /// The largest entropy; the other limits are minima.
    pub entropy: f64,
}

impl HealthLimits {
    /// For speech at 22 kHz and a hop of 256. Measured with a voice of 400 steps on all training rows of
    /// the demo corpus: no symbol above 60 frames, diagonality 0.86 to 0.98 (median 0.96), entropy 0.24
    /// to 0.50 (median 0.40). A letter occurs several times in a text, so frames with a certain letter
    /// may still have an uncertain position. The limits are a little outside of these ranges.
    pub const SPEECH: HealthLimits = HealthLimits {
        most_frames: 60,
        coverage: 0.95,
        monotonic: 1.0,
        diagonality: 0.85,
        entropy: 0.55,
    };
}

impl Default for HealthLimits {
    fn default() -> Self {
        Self::SPEECH
    }
}

/// A metric out of its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub fact: String,
    pub advice: &'static str,
}

impl AlignmentHealth {
    /// From frames per symbol.
    pub fn of_durations(durations: &[usize], limits: &HealthLimits) -> Result<Self, MetricError> {
        let path: Vec<usize> = durations
            .iter()
            .enumerate()
            .flat_map(|(symbol, frames)| std::iter::repeat_n(symbol, *frames))
            .collect();
        Self::of_path(&path, durations.len(), limits)
    }

    /// From the symbol of each frame, in any order.
    pub fn of_path(
        path: &[usize],
        symbols: usize,
        limits: &HealthLimits,
    ) -> Result<Self, MetricError> {
        if path.is_empty() || symbols == 0 {
            return Err(MetricError::Empty { what: "alignment" });
        }
        if let Some(index) = path.iter().position(|symbol| *symbol >= symbols) {
            let (what, value) = ("alignment", path[index] as f64);
            let expected = "a symbol of the text";
            return Err(MetricError::Value { what, index, value, expected });
        }
        let mut frames = vec![0usize; symbols];
        path.iter().for_each(|symbol| frames[*symbol] += 1);
        let fine = frames.iter().filter(|count| (1..=limits.most_frames).contains(*count)).count();
        Ok(Self {
            coverage: fine as f64 / symbols as f64,
            monotonic: steps_in_order(path, symbols),
            diagonality: diagonality(path, &frames),
            entropy: None,
        })
    }

    /// From a soft alignment whose rows add up to one. The path is the most likely symbol of each frame.
    /// Shape: `[frames, symbols]`.
    pub fn of_soft(
        weights: &[f32],
        symbols: usize,
        limits: &HealthLimits,
    ) -> Result<Self, MetricError> {
        let entropy = entropy(weights, symbols)?;
        let likeliest = |row: &[f32]| {
            let better = |best: usize, at: usize| if row[at] > row[best] { at } else { best };
            (1..row.len()).fold(0, better)
        };
        let path: Vec<usize> = weights.chunks_exact(symbols).map(likeliest).collect();
        let health = Self::of_path(&path, symbols, limits)?;
        Ok(Self { entropy: Some(entropy), ..health })
    }

    /// The metrics that are out of their limits, most serious first.
    pub fn findings(&self, limits: &HealthLimits) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut finding = |fact: String, advice| found.push(Finding { fact, advice });
        if self.monotonic < limits.monotonic {
            let share = 100.0 * (1.0 - self.monotonic);
            finding(
                format!("{share:.1} % of the steps skip symbols or go back"),
                "check that the transcript matches the recording word for word",
            );
        }
        if self.coverage < limits.coverage {
            let share = 100.0 * (1.0 - self.coverage);
            finding(
                format!("{share:.1} % of the symbols have no frame, or far too many"),
                "train longer; if it persists, check for text that is not spoken and for long silence at the ends",
            );
        }
        if self.diagonality < limits.diagonality {
            finding(
                format!("the speaking rate is uneven: {:.2}, where 1 is even", self.diagonality),
                "check the recording for silence or words that are not in the transcript",
            );
        }
        if let Some(entropy) = self.entropy.filter(|entropy| *entropy > limits.entropy) {
            finding(
                format!("the symbols of frames are uncertain: {entropy:.2}, where 0 is certain"),
                "train longer; if it persists, lower the learning rate or check the transcripts",
            );
        }
        found
    }

    /// Ranks transcripts by how likely they are wrong, from 0: the sum of how far each metric is out of
    /// its limit, relative to the limit.
    pub fn suspicion(&self, limits: &HealthLimits) -> f64 {
        let below = |value: f64, least: f64| ((least - value) / least).max(0.0);
        let excess = self.entropy.map_or(0.0, |entropy| (entropy - limits.entropy).max(0.0));
        below(self.coverage, limits.coverage)
            + below(self.monotonic, limits.monotonic)
            + below(self.diagonality, limits.diagonality)
            + excess / limits.entropy
    }
}

/// Fraction of the steps that stay or advance by one. Starting at the first symbol and ending at the
/// last count as a step each.
fn steps_in_order(path: &[usize], symbols: usize) -> f64 {
    let inside = path.windows(2).filter(|pair| matches!(pair[1].checked_sub(pair[0]), Some(0 | 1)));
    let begins = path.first() == Some(&0);
    let ends = path.last() == Some(&(symbols - 1));
    let fine = inside.count() + usize::from(begins) + usize::from(ends);
    fine as f64 / (path.len() + 1) as f64
}

/// 1 for an even speaking rate, 0 for a path that stays on one symbol.
fn diagonality(path: &[usize], frames: &[usize]) -> f64 {
    let symbols = frames.len() as f64;
    let mut seen = vec![0usize; frames.len()];
    let apart = |(frame, &symbol): (usize, &usize)| {
        // The position of this frame within its symbol.
        let inside = (seen[symbol] as f64 + 0.5) / frames[symbol] as f64;
        seen[symbol] += 1;
        let in_time = (frame as f64 + 0.5) / path.len() as f64;
        (in_time - (symbol as f64 + inside) / symbols).abs()
    };
    let mean = path.iter().enumerate().map(apart).sum::<f64>() / path.len() as f64;
    (1.0 - 2.0 * mean).max(0.0)
}

/// Mean entropy of the rows divided by that of a uniform row. Shape: `[frames, symbols]`.
fn entropy(weights: &[f32], symbols: usize) -> Result<f64, MetricError> {
    if weights.is_empty() || symbols == 0 {
        return Err(MetricError::Empty { what: "alignment" });
    }
    if !weights.len().is_multiple_of(symbols) {
        let (found, expected) = (weights.len(), weights.len() / symbols * symbols);
        return Err(MetricError::Size { what: "weights of whole frames", found, expected });
    }
    let mut total = 0.0;
    for (frame, row) in weights.chunks_exact(symbols).enumerate() {
        let sum: f64 = row.iter().map(|weight| f64::from(*weight)).sum();
        let negative = row.iter().any(|weight| *weight < 0.0);
        // Half precision rounds sums by up to a percent. NaN is in no range.
        if negative || !(0.98..=1.02).contains(&sum) {
            let (what, expected) = ("alignment", "weights from 0 up that add up to 1");
            return Err(MetricError::Value { what, index: frame, value: sum, expected });
        }
        let doubt = |weight: &f32| {
            let share = f64::from(*weight) / sum;
            if share > 0.0 { -share * share.ln() } else { 0.0 }
        };
        total += row.iter().map(doubt).sum::<f64>();
    }
    let frames = (weights.len() / symbols) as f64;
    let most = (symbols as f64).ln();
    Ok(if most > 0.0 { total / frames / most } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HealthLimits = HealthLimits::SPEECH;

    fn of(durations: &[usize]) -> AlignmentHealth {
        AlignmentHealth::of_durations(durations, &LIMITS).unwrap()
    }

    #[test]
    fn an_even_path_is_healthy() {
        let health = of(&[4; 25]);
        assert_eq!((health.coverage, health.monotonic), (1.0, 1.0));
        assert!((health.diagonality - 1.0).abs() < 1e-12, "{health:?}");
        assert_eq!(health.findings(&LIMITS), []);
        assert_eq!(health.suspicion(&LIMITS), 0.0);
    }

    #[test]
    fn symbols_with_no_or_too_many_frames_are_not_covered() {
        // Ten symbols: two have no frame, one has a second.
        let health = of(&[5, 0, 5, 5, 86, 5, 5, 5, 5, 0]);
        assert_eq!(health.coverage, 0.7);
        // 121 frames: the jump over the second symbol, and the end before the last.
        assert_eq!(health.monotonic, 120.0 / 122.0);
        let facts = health.findings(&LIMITS);
        assert!(facts[1].fact.starts_with("30.0 % of the symbols"), "{facts:?}");
        assert!(health.suspicion(&LIMITS) > 0.2);
    }

    #[test]
    fn a_path_that_goes_back_is_not_monotonic() {
        let health = AlignmentHealth::of_path(&[0, 1, 2, 1, 2, 3], 4, &LIMITS).unwrap();
        assert_eq!(health.monotonic, 6.0 / 7.0);
        assert!(health.findings(&LIMITS)[0].advice.contains("word for word"));
    }

    #[test]
    fn all_frames_on_one_symbol_are_not_diagonal() {
        let mut durations = vec![0; 50];
        durations[0] = 200;
        let health = of(&durations);
        // Within symbol 0 of 50 places reach 1/50: mean distance 0.5 - 0.01.
        assert!((health.diagonality - 0.02).abs() < 1e-9, "{health:?}");
        // The first half of the text takes three quarters of the time: a quarter off at the bend.
        let bent: Vec<usize> = (0..40).map(|symbol| if symbol < 20 { 6 } else { 2 }).collect();
        assert!((of(&bent).diagonality - 0.75).abs() < 1e-9, "{:?}", of(&bent));
    }

    #[test]
    fn entropy_is_relative_to_a_uniform_row() {
        let sure = [1.0, 0.0, 0.0, 1.0];
        assert_eq!(AlignmentHealth::of_soft(&sure, 2, &LIMITS).unwrap().entropy, Some(0.0));
        let health = AlignmentHealth::of_soft(&[0.25; 8], 4, &LIMITS).unwrap();
        assert!((health.entropy.unwrap() - 1.0).abs() < 1e-12);
        assert!(health.findings(&LIMITS).iter().any(|found| found.fact.contains("uncertain")));
        // Two of four symbols: ln 2 over ln 4.
        let half = AlignmentHealth::of_soft(&[0.5, 0.5, 0.0, 0.0], 4, &LIMITS).unwrap();
        assert!((half.entropy.unwrap() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn an_invalid_alignment_is_an_error() {
        assert!(AlignmentHealth::of_durations(&[], &LIMITS).is_err());
        assert!(AlignmentHealth::of_durations(&[0, 0], &LIMITS).is_err());
        assert!(AlignmentHealth::of_path(&[0, 4], 4, &LIMITS).is_err());
        for bad in [&[0.5f32, 0.4][..], &[1.5, -0.5], &[f32::NAN, 1.0], &[1.0, 0.0, 1.0]] {
            assert!(AlignmentHealth::of_soft(bad, 2, &LIMITS).is_err(), "{bad:?}");
        }
    }
}
