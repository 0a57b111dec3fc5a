//! A curve of bounded length.
//!
//! In: points as they come. Out: [`Series`], at most [`Series::LIMIT`] points: when there are more,
//! neighbours are joined to their mean. Extremes and ends are stored exactly. NaN and infinite
//! values are counted and left out.

/// A curve over rising x.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    points: Vec<(f64, f64)>,
    // How many values each point stands for, and those that are not yet a point.
    each: usize,
    waiting: Vec<(f64, f64)>,
    /// What is known of all values; none before the first.
    pub extent: Option<Extent>,
    /// Values that were not finite.
    pub not_finite: u64,
}

/// The ends and the extremes of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    pub first: f64,
    pub last: f64,
    /// The smallest, and the x at which it came.
    pub least: (f64, f64),
    /// The largest, and the x at which it came.
    pub most: (f64, f64),
}

impl Series {
    /// The most points that are stored.
    pub const LIMIT: usize = 600;

    pub fn add(&mut self, x: f64, value: f64) {
        if !value.is_finite() || !x.is_finite() {
            self.not_finite += 1;
            return;
        }
        let extent = self.extent.get_or_insert(Extent {
            first: value,
            last: value,
            least: (value, x),
            most: (value, x),
        });
        extent.last = value;
        if value < extent.least.0 {
            extent.least = (value, x);
        }
        if value > extent.most.0 {
            extent.most = (value, x);
        }
        self.waiting.push((x, value));
        if self.waiting.len() >= self.each.max(1) {
            self.points.push(mean(&self.waiting));
            self.waiting.clear();
        }
        if self.points.len() > Series::LIMIT {
            self.points = self.points.chunks(2).map(mean).collect();
            self.each = self.each.max(1) * 2;
        }
    }

    /// The curve, up to the newest value.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let rest = (!self.waiting.is_empty()).then(|| mean(&self.waiting));
        self.points.iter().copied().chain(rest).collect()
    }

    /// Removes everything from this x on. Extremes are then those of the points left.
    pub fn cut_from(&mut self, x: f64) {
        if self.points.iter().chain(&self.waiting).all(|(place, _)| *place < x) {
            return;
        }
        let earlier: Vec<_> = self.points().into_iter().filter(|(place, _)| *place < x).collect();
        let (each, not_finite) = (self.each, self.not_finite);
        *self = Series { not_finite, ..Series::default() };
        earlier.into_iter().for_each(|(place, value)| self.add(place, value));
        self.each = each;
    }
}

/// Values without an order: every one, or every second, fourth, ... when there are too many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thinned {
    values: Vec<f32>,
    each: u64,
    seen: u64,
}

impl Thinned {
    const LIMIT: usize = 65_536;

    pub fn add(&mut self, value: f32) {
        if self.seen.is_multiple_of(self.each.max(1)) {
            self.values.push(value);
        }
        self.seen += 1;
        if self.values.len() >= Thinned::LIMIT {
            let mut place = 0;
            self.values.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.each = self.each.max(1) * 2;
        }
    }

    /// The stored values.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

fn mean(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len().max(1) as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    (x / count, y / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_keeps_its_shape_and_its_extremes() {
        let mut series = Series::default();
        for step in 0..100_000 {
            series.add(f64::from(step), if step == 77_777 { 1e6 } else { f64::from(step) });
        }
        let points = series.points();
        assert!(points.len() <= Series::LIMIT + 1, "{}", points.len());
        assert!(points.is_sorted_by(|left, right| left.0 < right.0));
        assert!((points[100].1 - points[100].0).abs() < 1e-6);
        let extent = series.extent.unwrap();
        assert_eq!((extent.first, extent.last, extent.most), (0.0, 99_999.0, (1e6, 77_777.0)));
    }

    #[test]
    fn a_non_finite_value_is_counted_and_left_out() {
        let mut series = Series::default();
        series.add(1.0, f64::NAN);
        series.add(2.0, 5.0);
        assert_eq!((series.points(), series.not_finite), (vec![(2.0, 5.0)], 1));
    }

    #[test]
    fn repeated_steps_replace_the_old_ones() {
        let mut series = Series::default();
        (1..=10).for_each(|step| series.add(f64::from(step), 10.0));
        series.cut_from(6.0);
        series.add(6.0, 3.0);
        let points = series.points();
        assert_eq!((points.len(), points[5]), (6, (6.0, 3.0)));
        series.cut_from(100.0);
        assert_eq!(series.points().len(), 6);
    }

    #[test]
    fn thinning_keeps_values_of_the_whole_run() {
        let mut thinned = Thinned::default();
        (0..300_000).for_each(|value| thinned.add(value as f32));
        let values = thinned.values();
        assert!(values.len() < Thinned::LIMIT && values.len() > Thinned::LIMIT / 4);
        assert!(*values.last().unwrap() > 299_000.0 && values[0] == 0.0);
    }
}
