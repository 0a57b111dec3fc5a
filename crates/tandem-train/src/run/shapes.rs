//! How many distinct shapes a run has, and what meeting each for the first time costs.
//!
//! In: the shape of each batch and how long its step took. Out: a count, and the time that first
//! meetings took over later ones: kernels compiled and tuned. Keeps no clock.

use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;
use tandem_data::batch::BatchShape;
use tandem_units::Seconds;

/// Counts shapes and the cost of meeting them.
#[derive(Clone, Debug, Default)]
pub struct ShapeLog {
    shapes: HashMap<BatchShape, Met>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Met {
    first: Duration,
    later: Duration,
    times: u32,
}

/// Whether a shape was met before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// Kernels are compiled and tuned now.
    First,
    /// They are there.
    Again,
}

/// What a run's shapes cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShapeReport {
    /// Distinct shapes.
    pub shapes: usize,
    /// All first meetings together.
    pub first: Seconds,
    /// What they took over an ordinary step: on a GPU, compiling and tuning. None until some shape was met
    /// a second time.
    pub tuning: Option<Seconds>,
    /// Mean of all later meetings.
    pub later: Option<Seconds>,
}

impl ShapeLog {
    /// Whether a shape is new, before its step.
    pub fn meeting(&self, shape: BatchShape) -> Meeting {
        if self.shapes.contains_key(&shape) { Meeting::Again } else { Meeting::First }
    }

    /// Enters a step on this shape.
    pub fn enter(&mut self, shape: BatchShape, took: Duration) -> Meeting {
        let meeting = self.meeting(shape);
        let met = self.shapes.entry(shape).or_default();
        match meeting {
            Meeting::First => met.first = took,
            Meeting::Again => {
                met.later += took;
                met.times += 1;
            }
        }
        meeting
    }

    /// Shapes met so far.
    pub fn distinct(&self) -> usize {
        self.shapes.len()
    }

    /// What is known so far. A shape that was met once is compared with the mean of the others,
    /// by its size.
    pub fn report(&self) -> ShapeReport {
        let first: Duration = self.shapes.values().map(|met| met.first).sum();
        let times: u32 = self.shapes.values().map(|met| met.times).sum();
        let later: Duration = self.shapes.values().map(|met| met.later).sum();
        let tuning = self.ordinary_cost().map(|ordinary| (first.as_secs_f64() - ordinary).max(0.0));
        ShapeReport {
            shapes: self.shapes.len(),
            first: Seconds(first.as_secs_f64()),
            tuning: tuning.map(Seconds),
            later: (times > 0).then(|| Seconds(later.as_secs_f64() / f64::from(times))),
        }
    }

    /// What one ordinary step on every shape would take.
    fn ordinary_cost(&self) -> Option<f64> {
        let again = || self.shapes.iter().filter(|(_, met)| met.times > 0);
        let mean = |met: &Met| met.later.as_secs_f64() / f64::from(met.times);
        let frames: f64 = again().map(|(shape, _)| size(shape)).sum();
        let seconds: f64 = again().map(|(_, met)| mean(met)).sum();
        let cost = |(shape, met): (&BatchShape, &Met)| match met.times {
            0 => seconds / frames * size(shape),
            _ => mean(met),
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
        write!(f, "{} distinct {plural}; first meetings took {}", self.shapes, self.first)?;
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
    fn the_first_meeting_of_a_shape_is_told_from_later_ones() {
        let mut log = ShapeLog::default();
        let ms = Duration::from_millis;
        assert_eq!(log.enter(shape(100), ms(1100)), Meeting::First);
        assert_eq!(log.enter(shape(100), ms(90)), Meeting::Again);
        assert_eq!(log.enter(shape(100), ms(110)), Meeting::Again);
        assert_eq!(log.enter(shape(300), ms(800)), Meeting::First);
        assert_eq!(
            (log.meeting(shape(300)), log.meeting(shape(7))),
            (Meeting::Again, Meeting::First)
        );
        let report = log.report();
        assert_eq!((report.shapes, report.first), (2, Seconds(1.9)));
        // 100 frames cost 0.1 s, so 300 cost 0.3 s: 1.9 - 0.4.
        assert!((report.tuning.unwrap().0 - 1.5).abs() < 1e-9, "{report:?}");
        let text = "2 distinct shapes; first meetings took 1.90 s, 1.50 s more than ordinary steps; \
                    later ones 100.00 ms each";
        assert_eq!(report.to_string(), text);
    }

    #[test]
    fn before_anything_is_met_twice_nothing_is_said_of_tuning() {
        let mut log = ShapeLog::default();
        assert_eq!(log.report().to_string(), "0 distinct shapes; first meetings took 0 s");
        log.enter(shape(5), Duration::from_secs(1));
        assert_eq!(log.report().to_string(), "1 distinct shape; first meetings took 1.00 s");
    }
}
