//! The data of plots, before rendering.
//!
//! In: points, counts, intervals. Out: [`Plot`] for pages and pictures. Axes are those of
//! [`crate::axis`]. Values that are not finite are never among the points.

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Curves over a common x.
    Lines(Lines),
    /// A histogram.
    Histogram(Histogram),
    /// Rows of shares over time, stacked.
    Strips(Strips),
    /// Rows of spans over time.
    Lanes(Lanes),
}

/// Curves over a common x.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// The curves, in the order of their colours.
    pub curves: Vec<Curve>,
    pub x: Measure,
    pub y: Measure,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    pub name: String,
    /// Its points, x rising.
    pub points: Vec<(f64, f64)>,
    /// Whether few points are marked one by one.
    pub marks: Marks,
}

/// How the points of a curve are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marks {
    /// The line alone.
    #[default]
    None,
    /// A dot at each point: there are few of them.
    Dots,
}

/// What an axis counts, which decides its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Steps, items: whole numbers.
    Count,
    /// Plain numbers; the axis begins at zero where that is near.
    Number,
    /// Positive numbers on a logarithmic axis; on a plain one where some are not, or all are close together.
    Logarithm,
    /// Shares of 0 to 1, as percent, always from 0 to 100.
    Share,
    /// Seconds; labels choose the unit.
    Seconds,
    /// Bytes; labels choose the unit, and the axis begins at zero.
    Bytes,
}

/// A histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Where the first bin begins.
    pub from: f64,
    /// The width of a bin.
    pub width: f64,
    /// How many came in each.
    pub counts: Vec<u64>,
    pub x: Measure,
}

/// Rows of shares over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Strips {
    /// What the parts are, from the bottom up; at most three.
    pub parts: Vec<String>,
    /// The rows, from the top down.
    pub rows: Vec<Strip>,
    /// Seconds at both ends.
    pub span: (f64, f64),
}

/// One row: a column of shares per interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    pub name: String,
    /// Begin, end, and the share of each part.
    pub columns: Vec<(f64, f64, [f64; 3])>,
}

/// Rows of spans over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lanes {
    /// What the states are; at most three.
    pub states: Vec<String>,
    /// The rows, from the top down.
    pub rows: Vec<Lane>,
    /// Seconds at both ends.
    pub span: (f64, f64),
}

/// One row: what it was in, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    pub name: String,
    /// Begin, end, and which state.
    pub spans: Vec<(f64, f64, usize)>,
}

impl Curve {
    /// A line through these points.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Curve {
        Curve { name: name.into(), points, marks: Marks::None }
    }

    /// A line with a dot at each point.
    pub fn dotted(name: impl Into<String>, points: Vec<(f64, f64)>) -> Curve {
        Curve { marks: Marks::Dots, ..Curve::line(name, points) }
    }
}

impl Histogram {
    /// Sorts values into about thirty bins. The few above the 99th percentile share the last one
    /// where they would otherwise squeeze all others into the first.
    pub fn of(values: &[f32], x: Measure) -> Option<Histogram> {
        const BINS: usize = 30;
        let mut sorted: Vec<f64> = values
            .iter()
            .map(|value| f64::from(*value))
            .filter(|value| value.is_finite())
            .collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let high = sorted[(sorted.len() - 1) * 99 / 100];
        let top = if most - least > 3.0 * (high - least) && high > least { high } else { most };
        let bins = BINS.min(sorted.len().max(5));
        let width = if top > least { (top - least) / bins as f64 } else { least.abs().max(1e-9) };
        let mut counts = vec![0; if top > least { bins } else { 1 }];
        let last = counts.len() - 1;
        for value in sorted {
            counts[(((value - least) / width) as usize).min(last)] += 1;
        }
        Some(Histogram { from: least, width, counts, x })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_bin() {
        let values: Vec<f32> = (0..1000).map(|i| (i % 37) as f32).collect();
        let histogram = Histogram::of(&values, Measure::Number).unwrap();
        assert_eq!(histogram.counts.iter().sum::<u64>(), 1000);
        assert_eq!((histogram.from, histogram.counts.len()), (0.0, 30));
    }

    #[test]
    fn one_far_value_does_not_hide_the_shape() {
        let mut values: Vec<f32> = (0..999).map(|i| 1.0 + (i % 10) as f32 / 10.0).collect();
        values.push(5000.0);
        let histogram = Histogram::of(&values, Measure::Seconds).unwrap();
        assert!(histogram.width < 0.1, "{histogram:?}");
        assert_eq!(histogram.counts.iter().sum::<u64>(), 1000);
    }

    #[test]
    fn equal_values_make_one_bin_and_none_makes_none() {
        assert_eq!(Histogram::of(&[2.0; 9], Measure::Number).unwrap().counts, [9]);
        assert_eq!(Histogram::of(&[], Measure::Number), None);
        assert_eq!(Histogram::of(&[f32::NAN], Measure::Number), None);
    }
}
