//! How many distinct shapes a run has, and what the first use of each costs.
//!
//! In: the shape of each batch and how long its step took. Out: a count, and how much longer the
//! first use took than later ones: the time to compile and tune kernels. Measures no time itself.

use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;
use tandem_data::batch::BatchShape;
use tandem_units::Seconds;

/// Counts shapes and the time of their steps.
#[derive(Clone, Debug, Default)]
pub struct ShapeLog {
    shapes: HashMap<BatchShape, ShapeTimes>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ShapeTimes {
    first: Duration,
    later: Duration,
    repeats: u32,
}

/// Whether a shape was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeUse {
    /// Kernels are compiled and tuned in this step.
    First,
    Repeated,
}

/// What a run's shapes cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShapeReport {
    /// Distinct shapes.
    pub shapes: usize,
    /// Total time of the first uses.
    pub first: Seconds,
    /// How much longer than ordinary steps they took: on a GPU, compiling and tuning. None until a shape
    /// is used a second time.
    pub tuning: Option<Seconds>,
    /// Mean time of later uses.
    pub later: Option<Seconds>,
}

impl ShapeLog {
    /// The kind of the next use of a shape.
    pub fn next_use(&self, shape: BatchShape) -> ShapeUse {
        if self.shapes.contains_key(&shape) { ShapeUse::Repeated } else { ShapeUse::First }
    }

    /// Adds a step on this shape.
    pub fn add(&mut self, shape: BatchShape, took: Duration) -> ShapeUse {
        let this_use = self.next_use(shape);
        let times = self.shapes.entry(shape).or_default();
        match this_use {
            ShapeUse::First => times.first = took,
            ShapeUse::Repeated => {
                times.later += took;
                times.repeats += 1;
            }
        }
        this_use
    }

    /// Shapes used so far.
    pub fn distinct(&self) -> usize {
        self.shapes.len()
    }

    /// The report so far. The ordinary time of a shape that was used once is estimated from the other
    /// shapes, in proportion to its size.
    pub fn report(&self) -> ShapeReport {
        let first: Duration = self.shapes.values().map(|times| times.first).sum();
        let repeats: u32 = self.shapes.values().map(|times| times.repeats).sum();
        let later: Duration = self.shapes.values().map(|times| times.later).sum();
        let tuning = self.ordinary_cost().map(|ordinary| (first.as_secs_f64() - ordinary).max(0.0));
        ShapeReport {
            shapes: self.shapes.len(),
            first: Seconds(first.as_secs_f64()),
            tuning: tuning.map(Seconds),
            later: (repeats > 0).then(|| Seconds(later.as_secs_f64() / f64::from(repeats))),
        }
    }

    /// Seconds that one ordinary step on every shape takes.
    fn ordinary_cost(&self) -> Option<f64> {
        let again = || self.shapes.iter().filter(|(_, times)| times.repeats > 0);
        let mean = |times: &ShapeTimes| times.later.as_secs_f64() / f64::from(times.repeats);
        let frames: f64 = again().map(|(shape, _)| size(shape)).sum();
        let seconds: f64 = again().map(|(_, times)| mean(times)).sum();
        let cost = |(shape, times): (&BatchShape, &ShapeTimes)| match times.repeats {
            0 => seconds / frames * size(shape),
            _ => mean(times),
        };
        (frames > 0.0).then(|| self.shapes.iter().map(cost).sum())
    }
}

fn size(shape: &BatchShape) -> f64 {
    (shape.rows * shape.frames).max(1) as f64
}

impl fmt::Display for ShapeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.shapes == 1 { "shape" } else { "shapes" };
        write!(f, "{} distinct {plural}; first uses took {}", self.shapes, self.first)?;
        match (self.tuning, self.later) {
            (Some(tuning), Some(later)) => {
                write!(f, ", {tuning} more than ordinary steps; later ones {later} each")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(frames: usize) -> BatchShape {
        BatchShape { rows: 2, frames, symbols: 10 }
    }

    #[test]
    fn the_first_use_of_a_shape_is_timed_separately() {
        let mut log = ShapeLog::default();
        let ms = Duration::from_millis;
        assert_eq!(log.add(shape(100), ms(1100)), ShapeUse::First);
        assert_eq!(log.add(shape(100), ms(90)), ShapeUse::Repeated);
        assert_eq!(log.add(shape(100), ms(110)), ShapeUse::Repeated);
        assert_eq!(log.add(shape(300), ms(800)), ShapeUse::First);
        assert_eq!(
            (log.next_use(shape(300)), log.next_use(shape(7))),
            (ShapeUse::Repeated, ShapeUse::First)
        );
        let report = log.report();
        assert_eq!((report.shapes, report.first), (2, Seconds(1.9)));
        // 100 frames cost 0.1 s, so 300 cost 0.3 s: 1.9 - 0.4.
        assert!((report.tuning.unwrap().0 - 1.5).abs() < 1e-9, "{report:?}");
        let text = "2 distinct shapes; first uses took 1.90 s, 1.50 s more than ordinary steps; \
                    later ones 100.00 ms each";
        assert_eq!(report.to_string(), text);
    }

    #[test]
    fn tuning_is_unknown_until_a_shape_is_used_twice() {
        let mut log = ShapeLog::default();
        assert_eq!(log.report().to_string(), "0 distinct shapes; first uses took 0 s");
        log.add(shape(5), Duration::from_secs(1));
        assert_eq!(log.report().to_string(), "1 distinct shape; first uses took 1.00 s");
    }
}
