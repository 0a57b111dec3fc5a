//! Predictions against runs: errors, and whether the configuration ranked first was the fastest.
//!
//! In: [`Tried`], a prediction and what the same configuration measured. Out: [`CheckSummary`].

use serde::{Deserialize, Serialize};
use tandem_units::median;

/// One configuration, predicted and run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    pub what: String,
    /// Configurations of one group are ranked against each other.
    pub group: String,
    /// Seconds of a step, predicted.
    pub predicted: f64,
    /// The same, measured.
    pub measured: f64,
    /// Repetitions because other programs used the machine meanwhile.
    #[serde(default)]
    pub again: u32,
}

impl Tried {
    /// Predicted over measured, less one.
    pub fn error(&self) -> f64 {
        self.predicted / self.measured.max(1e-12) - 1.0
    }

    /// For the user, while the check runs.
    pub fn line(&self) -> String {
        format!(
            "{}: predicted {:.1} ms, measured {:.1} ms, {:+.1} %; repeated {} times",
            self.what,
            1e3 * self.predicted,
            1e3 * self.measured,
            100.0 * self.error(),
            self.again
        )
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckSummary {
    pub count: usize,
    /// Runs repeated because other programs used the machine meanwhile.
    pub repeated: u32,
    /// Median absolute error.
    pub median: f64,
    /// 95th percentile of the absolute errors.
    pub p95: f64,
    /// Groups whose runs differ by over a tenth.
    pub groups: usize,
    /// Of these, groups whose first by prediction was the fastest, to a tenth.
    pub right: usize,
    /// Pairs of a group whose runs differ by over a tenth.
    pub pairs: usize,
    /// Of these, pairs in the right order.
    pub in_order: usize,
}

/// Runs that differ by less count as equal.
const APART: f64 = 1.10;

impl CheckSummary {
    /// Limit of the median error.
    pub const MEDIAN: f64 = 0.05;
    /// Limit of the 95th percentile.
    pub const P95: f64 = 0.15;
    /// Share of groups that must be ranked correctly.
    pub const RANKED: f64 = 0.95;

    /// Sums up; none of nothing.
    pub fn of(tried: &[Tried]) -> Option<CheckSummary> {
        let mut errors: Vec<f64> = tried.iter().map(|one| one.error().abs()).collect();
        let median = median(&mut errors)?;
        errors.sort_by(f64::total_cmp);
        let at =
            |share: f64| errors.get(((errors.len() as f64 * share).ceil() as usize).max(1) - 1);
        let mut found = CheckSummary {
            count: tried.len(),
            repeated: tried.iter().map(|one| one.again).sum(),
            median,
            p95: *at(0.95)?,
            groups: 0,
            right: 0,
            pairs: 0,
            in_order: 0,
        };
        let mut names: Vec<&str> = tried.iter().map(|one| one.group.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let group: Vec<&Tried> = tried.iter().filter(|one| one.group == name).collect();
            found.rank(&group);
        }
        Some(found)
    }

    fn rank(&mut self, group: &[&Tried]) {
        let fastest = group.iter().map(|one| one.measured).fold(f64::MAX, f64::min);
        let slowest = group.iter().map(|one| one.measured).fold(0.0, f64::max);
        let first = group.iter().min_by(|a, b| a.predicted.total_cmp(&b.predicted));
        if let (true, Some(first)) = (slowest > APART * fastest, first) {
            self.groups += 1;
            self.right += usize::from(first.measured <= APART * fastest);
        }
        for (n, one) in group.iter().enumerate() {
            for other in &group[n + 1..] {
                let (low, high) = match one.measured < other.measured {
                    true => (one, other),
                    false => (other, one),
                };
                if high.measured > APART * low.measured {
                    self.pairs += 1;
                    self.in_order += usize::from(low.predicted < high.predicted);
                }
            }
        }
    }

    /// Whether all limits are met.
    pub fn is_good(&self) -> bool {
        let ranked = self.right as f64 >= Self::RANKED * self.groups as f64;
        self.median <= Self::MEDIAN && self.p95 <= Self::P95 && ranked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(group: &str, predicted: f64, measured: f64) -> Tried {
        Tried { what: String::new(), group: group.into(), predicted, measured, again: 0 }
    }

    #[test]
    fn errors_and_ranks_are_counted() {
        let list = [
            tried("a", 1.02, 1.0),
            tried("a", 2.1, 2.0),
            tried("b", 1.0, 1.3),
            tried("b", 1.1, 1.0),
            // As good as each other: no rank.
            tried("c", 1.0, 1.05),
            tried("c", 1.1, 1.0),
        ];
        let found = CheckSummary::of(&list).unwrap();
        assert_eq!((found.count, found.groups, found.right), (6, 2, 1));
        assert_eq!((found.pairs, found.in_order), (2, 1));
        assert!((found.median - 0.075).abs() < 1e-9 && (found.p95 - 0.3 / 1.3).abs() < 1e-9);
        assert!(!found.is_good());
        assert!(CheckSummary::of(&list[..1]).unwrap().is_good());
        assert_eq!(CheckSummary::of(&[]), None);
    }
}
