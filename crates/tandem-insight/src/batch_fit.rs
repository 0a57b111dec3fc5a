//! What batches of another size cost, from batches of many sizes that were measured.
//!
//! In: measured batches with their padded frames, and the shapes that the corpus has at the other
//! batch size. Out: items for [`crate::predict`]. A stage's cost is a line over padded frames,
//! fitted by least squares; sizes far outside of what was measured are refused, not extrapolated.

use crate::measured::Measured;
use crate::plan_error::Missing;
use crate::predict::Item;
use crate::profile::ProfileAnswer;

/// How far beyond the measured batches a line is trusted.
const BEYOND: f64 = 0.25;
/// Items made at most.
const MOST: usize = 600;

/// Items of an epoch at another batch size. `items` are those of `run`, in its order.
pub(crate) fn items_of_batch(
    profile: &ProfileAnswer,
    run: &Measured,
    items: &[Item],
    batch_size: usize,
) -> Result<Vec<Item>, Missing> {
    let refused = |why: &str| Missing::batch(batch_size, why);
    let shapes = profile.shapes.iter().find(|shapes| shapes.batch_size == batch_size);
    let Some(shapes) = shapes else {
        return Err(refused("the corpus's shapes at that size are not in the profile"));
    };
    let known = run.batches.iter().zip(items);
    let points: Vec<(f64, Item)> =
        known.filter_map(|(batch, item)| Some((batch.padded? as f64, *item))).collect();
    let least = points.iter().map(|(padded, _)| *padded).fold(f64::MAX, f64::min);
    let most = points.iter().map(|(padded, _)| *padded).fold(0.0, f64::max);
    if points.len() < 8 || most < 1.5 * least {
        return Err(refused("the measured batches are too similar to estimate how costs grow"));
    }
    let padded = |shape: &[u32; 3]| f64::from(shape[0]) * f64::from(shape[2]);
    let count: f64 = shapes.shapes.iter().map(|(_, n)| f64::from(*n)).sum();
    let mean = shapes.shapes.iter().map(|(s, n)| padded(s) * f64::from(*n)).sum::<f64>() / count;
    if !((1.0 - BEYOND) * least..=(1.0 + BEYOND) * most).contains(&mean) {
        return Err(refused(&format!(
            "its batches have {mean:.0} padded frames in the mean, measured were {least:.0} to \
             {most:.0}"
        )));
    }
    let line = |cost: fn(&Item) -> f64| {
        Line::fit(&points.iter().map(|(x, item)| (*x, cost(item))).collect::<Vec<_>>())
    };
    let assemble = line(|item| item.assemble);
    let (align, transfer) = (line(|item| item.align), line(|item| item.transfer));
    let train = line(|item| item.train);
    let at = |x: f64, noise: usize| Item {
        assemble: assemble.at(x, noise),
        align: align.at(x, noise),
        transfer: transfer.at(x, noise),
        train: train.at(x, noise),
    };
    let stride = (count as usize).div_ceil(MOST).max(1);
    let all = shapes.shapes.iter().flat_map(|(s, n)| std::iter::repeat_n(padded(s), *n as usize));
    let mut sizes: Vec<f64> = all.step_by(stride).collect();
    interleave(&mut sizes);
    Ok(sizes.into_iter().enumerate().map(|(n, x)| at(x, n)).collect())
}

/// A straight line and the residuals of its points.
struct Line {
    at_zero: f64,
    slope: f64,
    /// Cost over the line's, point by point.
    left: Vec<f64>,
}

impl Line {
    fn fit(points: &[(f64, f64)]) -> Line {
        let count = points.len().max(1) as f64;
        let x = points.iter().map(|point| point.0).sum::<f64>() / count;
        let y = points.iter().map(|point| point.1).sum::<f64>() / count;
        let spread = points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>();
        let along = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
        // Larger batches are never cheaper; less than that is noise.
        let slope = if spread > 0.0 { (along / spread).max(0.0) } else { 0.0 };
        let at_zero = (y - slope * x).max(0.0);
        let line = Line { at_zero, slope, left: Vec::new() };
        let left = |(x, y): &(f64, f64)| y / line.plain(*x).max(1e-12);
        let left = points.iter().map(left).collect();
        Line { left, ..line }
    }

    fn plain(&self, x: f64) -> f64 {
        self.at_zero + self.slope * x
    }

    fn at(&self, x: f64, noise: usize) -> f64 {
        self.plain(x) * self.left.get(noise % self.left.len().max(1)).copied().unwrap_or(1.0)
    }
}

/// Small and large ones in turn, as a shuffled epoch has them.
fn interleave(sizes: &mut [f64]) {
    let sorted = sizes.to_vec();
    let half = sorted.len() / 2;
    for (n, place) in sizes.iter_mut().enumerate() {
        *place =
            if n % 2 == 0 { sorted[n / 2] } else { sorted[(half + n / 2).min(sorted.len() - 1)] };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_points_is_found() {
        let points: Vec<_> = (1..9).map(|x| (f64::from(x), 3.0 + 0.5 * f64::from(x))).collect();
        let line = Line::fit(&points);
        assert!((line.at(20.0, 0) - 13.0).abs() < 1e-9);
        let falling: Vec<_> = (1..9).map(|x| (f64::from(x), 9.0 - f64::from(x))).collect();
        assert!((Line::fit(&falling).plain(100.0) - 4.5).abs() < 1e-9, "noise has no slope");
    }
}
