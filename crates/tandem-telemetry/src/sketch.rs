//! Percentiles of a stream in little memory.
//!
//! In: positive numbers. Out: any percentile to within half a percent of its value. Buckets grow
//! by a constant ratio, so the error is relative and two sketches merge without loss: the
//! idea of DDSketch (Masson, Rim and Lee 2019). Between 1e-9 and 1e12 in at most 4840 buckets.

/// Counts of values in buckets whose bounds grow by about one percent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sketch {
    // Bucket number of the first count.
    first: i32,
    counts: Vec<u64>,
    // Values too small for a bucket; they count as zero.
    zeros: u64,
    total: u64,
}

impl Sketch {
    /// The largest relative error of a percentile.
    pub const ERROR: f64 = 0.005;
    const RATIO: f64 = (1.0 + Self::ERROR) / (1.0 - Self::ERROR);
    const SMALLEST: f64 = 1e-9;
    const LARGEST: f64 = 1e12;

    /// Counts a value. Values over the range count as its end.
    pub fn add(&mut self, value: f64) {
        self.total += 1;
        if value < Self::SMALLEST {
            self.zeros += 1;
            return;
        }
        let bucket = bucket(value.min(Self::LARGEST));
        self.reach(bucket);
        self.counts[(bucket - self.first) as usize] += 1;
    }

    /// Takes over the counts of another sketch.
    pub fn merge(&mut self, other: &Sketch) {
        self.total += other.total;
        self.zeros += other.zeros;
        if let Some(last) = other.counts.len().checked_sub(1) {
            self.reach(other.first);
            self.reach(other.first + last as i32);
            let shift = (other.first - self.first) as usize;
            for (count, more) in self.counts[shift..].iter_mut().zip(&other.counts) {
                *count += more;
            }
        }
    }

    /// The value below which the given share of all values lies, by nearest rank; `None` of
    /// nothing.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let rank = ((share.clamp(0.0, 1.0) * self.total as f64).ceil() as u64).max(1);
        if self.total == 0 {
            return None;
        }
        let mut seen = self.zeros;
        if seen >= rank {
            return Some(0.0);
        }
        let place = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        // The middle of the bucket, so that both ends are equally far in proportion.
        let upper = Self::RATIO.powi(self.first + place as i32);
        Some(2.0 * upper / (Self::RATIO + 1.0))
    }

    /// Widens the range of buckets to hold the given one.
    fn reach(&mut self, bucket: i32) {
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let missing = (self.first - bucket) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = bucket;
        }
        let needed = (bucket - self.first) as usize + 1;
        self.counts.resize(self.counts.len().max(needed), 0);
    }
}

/// The bucket whose upper bound is the first power of the ratio not below the value.
fn bucket(value: f64) -> i32 {
    (value.ln() / Sketch::RATIO.ln()).ceil() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sketch(values: &[f64]) -> Sketch {
        let mut sketch = Sketch::default();
        values.iter().for_each(|&value| sketch.add(value));
        sketch
    }

    /// The definition, on sorted values.
    fn nearest_rank(values: &[f64], share: f64) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[((share * values.len() as f64).ceil() as usize).max(1) - 1]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_percentile_is_within_the_stated_error(
            values in prop::collection::vec(1e-7..1e4f64, 1..300),
            share in 0.0..=1.0f64,
        ) {
            let truth = nearest_rank(&values, share);
            let guess = sketch(&values).percentile(share).unwrap();
            prop_assert!((guess - truth).abs() <= truth * Sketch::ERROR * 1.001, "{guess} {truth}");
        }

        #[test]
        fn merged_sketches_equal_one_sketch_of_all(
            left in prop::collection::vec(0.0..1e4f64, 0..50),
            right in prop::collection::vec(0.0..1e4f64, 0..50),
        ) {
            let mut merged = sketch(&left);
            merged.merge(&sketch(&right));
            let whole = sketch(&[left, right].concat());
            for share in [0.0, 0.5, 0.95, 1.0] {
                prop_assert_eq!(merged.percentile(share), whole.percentile(share));
            }
        }
    }

    #[test]
    fn extremes_stay_in_range() {
        let sketch = sketch(&[0.0, f64::MIN_POSITIVE, f64::MAX]);
        assert_eq!(sketch.percentile(0.5), Some(0.0));
        assert!(sketch.percentile(1.0).unwrap() <= Sketch::LARGEST * 1.01);
        assert_eq!(Sketch::default().percentile(0.5), None);
    }
}
