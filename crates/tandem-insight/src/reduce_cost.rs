//! What a sum of gradients over several ranks costs, by its size.
//!
//! In: what `tandem bench reduce` measured. Out: seconds for gradients of any size. The trainer sums them in
//! buckets, so the cost is that of the buckets one after the other. Next: [`crate::plan`].

use serde::{Deserialize, Serialize};

/// Bytes of a bucket of the trainer.
const BUCKET: f64 = (4 << 20) as f64;

/// The answer of `tandem bench reduce`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReduceCost {
    pub ranks: usize,
    /// By rank.
    pub hosts: Vec<String>,
    /// Median time of the smallest sum.
    pub latency_seconds: f64,
    /// From the smallest to the largest.
    pub sizes: Vec<SizeCost>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeCost {
    pub bytes: u64,
    /// Median.
    pub seconds: f64,
    pub bytes_per_second: f64,
}

impl ReduceCost {
    /// Two devices with a link of a known bandwidth: each sends its gradients and gets the other's.
    pub fn of_link(bytes_per_second: f64) -> ReduceCost {
        let size =
            SizeCost { bytes: BUCKET as u64, seconds: BUCKET / bytes_per_second, bytes_per_second };
        ReduceCost { ranks: 2, hosts: Vec::new(), latency_seconds: 0.0, sizes: vec![size] }
    }

    /// Whether there is a figure of every kind that a prediction needs.
    pub fn is_usable(&self) -> bool {
        let ascending = self.sizes.windows(2).all(|pair| pair[0].bytes < pair[1].bytes);
        let positive = |size: &SizeCost| size.bytes > 0 && size.seconds > 0.0;
        self.ranks > 1 && !self.sizes.is_empty() && ascending && self.sizes.iter().all(positive)
    }

    /// Seconds to sum the gradients of a model with so many parameters.
    pub fn of_model(&self, parameters: u64) -> f64 {
        let bytes = 4.0 * parameters as f64;
        let buckets = (bytes / BUCKET).floor();
        let rest = bytes - buckets * BUCKET;
        let last = if rest > 0.0 { self.of_sum(rest) } else { 0.0 };
        buckets * self.of_sum(BUCKET) + last
    }

    /// Seconds of one sum: between two measured sizes on the line between them, beyond the largest by its
    /// bandwidth.
    fn of_sum(&self, bytes: f64) -> f64 {
        let mut before =
            SizeCost { bytes: 0, seconds: self.latency_seconds, bytes_per_second: 0.0 };
        for size in &self.sizes {
            if bytes <= size.bytes as f64 {
                let share = (bytes - before.bytes as f64) / (size.bytes - before.bytes) as f64;
                return before.seconds + share * (size.seconds - before.seconds);
            }
            before = *size;
        }
        before.seconds * bytes / (before.bytes.max(1)) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> ReduceCost {
        let size = |bytes: u64, seconds: f64| SizeCost {
            bytes,
            seconds,
            bytes_per_second: bytes as f64 / seconds,
        };
        let mib = 1 << 20;
        ReduceCost {
            ranks: 2,
            hosts: vec!["a".into(), "a".into()],
            latency_seconds: 1e-4,
            sizes: vec![size(4, 1e-4), size(mib, 1e-3), size(3 * mib, 5e-3)],
        }
    }

    #[track_caller]
    fn check(parameters: u64, expected: f64) {
        let found = measured().of_model(parameters);
        assert!((found - expected).abs() < 1e-9 + 1e-3 * expected, "{found} and not {expected}");
    }

    #[test]
    fn sizes_between_two_measurements_are_interpolated() {
        check(1, 1e-4);
        check(1 << 18, 1e-3);
        check(2 << 18, 3e-3);
    }

    #[test]
    fn larger_gradients_travel_in_buckets() {
        // Beyond the largest size: 4 MiB at the bandwidth of 3 MiB.
        let bucket = 5e-3 * 4.0 / 3.0;
        check(1 << 20, bucket);
        check(3 << 20, 3.0 * bucket);
        check((3 << 20) + (1 << 18), 3.0 * bucket + 1e-3);
    }

    #[test]
    fn a_link_has_only_a_bandwidth() {
        let link = ReduceCost::of_link(8e6);
        assert!((link.of_model(2_000_000) - 1.0).abs() < 1e-9);
        assert!(link.is_usable() && measured().is_usable());
        assert!(!ReduceCost { sizes: Vec::new(), ..measured() }.is_usable());
        assert!(!ReduceCost { ranks: 1, ..measured() }.is_usable());
    }
}
