//! The time that a step of a given size usually takes, learned from the steps themselves.
//!
//! In: values and the sizes they belong to. Out: the expected value of each. A size that was seen
//! often is expected to take its median. The others follow one curve through all steps: a constant,
//! a part for each padded frame and a part for each pair of frames in a row, fitted to the least
//! absolute error, so that slow steps do not bend it, nor slow ones of a size of their own. Pure.

use crate::step_sample::StepSize;
use std::collections::HashMap;
use tandem_units::median;

/// From this many steps of one size on, their median is the expected value.
pub(crate) const OFTEN: usize = 8;
/// Steps that a curve through several sizes needs.
pub(crate) const ENOUGH: usize = 12;

/// Expected values, and how they were found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expected {
    pub(crate) values: Vec<f64>,
    /// Distinct sizes.
    pub(crate) sizes: usize,
    /// Values that follow the curve.
    pub(crate) on_curve: usize,
}

/// The expected value of each. `None` where there are several sizes and too few values to learn
/// what they cost.
pub(crate) fn expected(values: &[f64], sizes: &[Option<StepSize>]) -> Option<Expected> {
    let mut groups: HashMap<Key, Vec<usize>> = HashMap::new();
    for (place, size) in sizes.iter().enumerate() {
        groups.entry(key(*size)).or_default().push(place);
    }
    let mut found = vec![0.0; values.len()];
    let distinct = groups.len();
    let rare = |group: &&Vec<usize>| distinct > 1 && group.len() < OFTEN;
    let on_curve: usize = groups.values().filter(rare).map(Vec::len).sum();
    let curve = if on_curve == 0 { None } else { Some(Curve::fit(values, sizes)?) };
    for group in groups.values() {
        let usual = median(&mut group.iter().map(|&place| values[place]).collect::<Vec<_>>())?;
        for &place in group {
            found[place] = match (&curve, sizes[place]) {
                (Some(curve), Some(size)) if rare(&group) => curve.at(size),
                _ => usual,
            };
        }
    }
    Some(Expected { values: found, sizes: distinct, on_curve })
}

type Key = Option<(u64, u64, u64)>;

fn key(size: Option<StepSize>) -> Key {
    size.map(|size| (size.symbols, size.frames, size.squared.to_bits()))
}

/// Cost by size: `at_zero + per_frame * frames + per_pair * squared`.
struct Curve {
    factors: [f64; 3],
    /// Sizes are divided by these, so that all columns are of the same order.
    scale: [f64; 3],
}

impl Curve {
    fn fit(values: &[f64], sizes: &[Option<StepSize>]) -> Option<Curve> {
        let known: Vec<([f64; 3], f64)> = sizes
            .iter()
            .zip(values)
            .filter_map(|(size, value)| Some((columns((*size)?), *value)))
            .collect();
        if known.len() < ENOUGH {
            return None;
        }
        let most = |column: usize| known.iter().map(|row| row.0[column]).fold(0.0, f64::max);
        let scale = [0, 1, 2].map(|column| most(column).max(f64::MIN_POSITIVE));
        let rows: Vec<([f64; 3], f64)> = known
            .iter()
            .map(|(row, value)| ([0, 1, 2].map(|n| row[n] / scale[n]), *value))
            .collect();
        let usual = median(&mut known.iter().map(|row| row.1).collect::<Vec<_>>())?;
        let mut factors = [usual, 0.0, 0.0];
        // Weights of one over the distance turn least squares into least absolute error.
        let floor = (1e-3 * usual).max(f64::MIN_POSITIVE);
        // A step far from the others in size could draw the curve to itself alone, so it counts less.
        let matrix = normal_matrix(&rows, &vec![1.0; rows.len()]);
        let leverage = |row: &[f64; 3]| dot(&solve(matrix, *row), row).max(LEAST_LEVERAGE);
        let shares: Vec<f64> = rows.iter().map(|(row, _)| 1.0 / leverage(row)).collect();
        let mut weights = shares.clone();
        for _ in 0..ROUNDS {
            factors = weighted_fit(&rows, &weights);
            for ((weight, share), (row, value)) in weights.iter_mut().zip(&shares).zip(&rows) {
                *weight = share * floor / (value - dot(&factors, row)).abs().max(floor);
            }
        }
        Some(Curve { factors, scale })
    }

    fn at(&self, size: StepSize) -> f64 {
        let row = columns(size);
        dot(&self.factors, &[0, 1, 2].map(|n| row[n] / self.scale[n])).max(0.0)
    }
}

const ROUNDS: usize = 20;
/// The leverages of all steps add up to 3.
const LEAST_LEVERAGE: f64 = 1e-6;

fn columns(size: StepSize) -> [f64; 3] {
    [1.0, size.frames as f64, size.squared]
}

fn dot(factors: &[f64; 3], row: &[f64; 3]) -> f64 {
    (0..3).map(|n| factors[n] * row[n]).sum()
}

/// Least squares with weights.
fn weighted_fit(rows: &[([f64; 3], f64)], weights: &[f64]) -> [f64; 3] {
    let mut right = [0.0; 3];
    for ((row, value), weight) in rows.iter().zip(weights) {
        right.iter_mut().zip(row).for_each(|(sum, part)| *sum += weight * part * value);
    }
    solve(normal_matrix(rows, weights), right)
}

/// The matrix of the normal equations. A tiny ridge decides between columns that say the same.
fn normal_matrix(rows: &[([f64; 3], f64)], weights: &[f64]) -> [[f64; 3]; 3] {
    let mut matrix = [[0.0; 3]; 3];
    for ((row, _), weight) in rows.iter().zip(weights) {
        for i in 0..3 {
            for j in 0..3 {
                matrix[i][j] += weight * row[i] * row[j];
            }
        }
    }
    let ridge = 1e-9 * (0..3).map(|n| matrix[n][n]).sum::<f64>();
    (0..3).for_each(|n| matrix[n][n] += ridge);
    matrix
}

/// Gaussian elimination; the matrix is symmetric and, with the ridge, positive definite.
fn solve(mut left: [[f64; 3]; 3], mut right: [f64; 3]) -> [f64; 3] {
    for pivot in 0..3 {
        for row in pivot + 1..3 {
            let factor = left[row][pivot] / left[pivot][pivot];
            let above = left[pivot];
            left[row].iter_mut().zip(above).for_each(|(value, above)| *value -= factor * above);
            right[row] -= factor * right[pivot];
        }
    }
    let mut found = [0.0; 3];
    for row in (0..3).rev() {
        let rest: f64 = (row + 1..3).map(|column| left[row][column] * found[column]).sum();
        found[row] = (right[row] - rest) / left[row][row];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    fn size(rows: u32, frames: u32) -> Option<StepSize> {
        Some(StepSize::of([rows, frames / 5, frames]))
    }

    fn cost(size: Option<StepSize>) -> f64 {
        let size = size.unwrap();
        0.01 + 2e-6 * size.frames as f64 + 1e-9 * size.squared
    }

    #[test]
    fn a_size_seen_often_is_expected_to_take_its_median() {
        let values = [1.0, 1.0, 1.0, 9.0, 1.0, 1.1, 0.9, 1.0];
        let found = expected(&values, &[size(4, 100); 8]).unwrap();
        assert_eq!((found.values, found.sizes, found.on_curve), (vec![1.0; 8], 1, 0));
        let unknown = expected(&[1.0, 3.0], &[None, None]).unwrap();
        assert_eq!(unknown.values, [2.0, 2.0]);
    }

    #[test]
    fn few_steps_of_several_sizes_are_no_basis() {
        let sizes: Vec<_> = (1..ENOUGH as u32).map(|n| size(4, 50 * n)).collect();
        let values: Vec<f64> = sizes.iter().map(|size| cost(*size)).collect();
        assert_eq!(expected(&values, &sizes), None);
    }

    /// One of `2 * slow` steps takes a second longer. The largest error of the expected times, in means of the others.
    fn largest_error(shapes: &[(u32, u32)], slow: usize) -> f64 {
        let sizes: Vec<_> = shapes.iter().map(|&(rows, frames)| size(rows, frames)).collect();
        let mut values: Vec<f64> = sizes.iter().map(|size| cost(*size)).collect();
        let clean = values.clone();
        values.iter_mut().step_by(slow * 2).for_each(|value| *value += 1.0);
        let found = expected(&values, &sizes).unwrap();
        let mean = clean.iter().sum::<f64>() / clean.len() as f64;
        let errors = found.values.iter().zip(&clean).map(|(found, clean)| (found - clean).abs());
        errors.fold(0.0, f64::max) / mean
    }

    #[test]
    fn the_largest_steps_do_not_bend_the_curve_where_they_are_the_slow_ones() {
        let mut shapes = vec![(1, 40); 20];
        shapes.extend([(1, 54), (25, 110), (16, 468), (1, 85), (6, 130), (5, 319), (23, 434)]);
        shapes.extend([(25, 124), (3, 166), (13, 220), (24, 753), (32, 217), (17, 500)]);
        shapes.extend([(20, 276), (21, 679), (8, 518), (32, 783), (20, 329), (18, 257), (23, 334)]);
        let error = largest_error(&shapes, 3);
        assert!(error < 0.05, "{error}");
    }

    /// Not for every list of sizes: where most steps of the large sizes are slow ones, nothing tells what is usual.
    #[test]
    fn rare_sizes_follow_the_curve_even_with_slow_steps_between() {
        let shapes = prop::collection::vec((1u32..33, 40u32..800), 40..120);
        let cases = (shapes, 3usize..10);
        let mut runner = TestRunner::deterministic();
        let mut errors: Vec<f64> = (0..400)
            .map(|_| {
                let (shapes, slow) = cases.new_tree(&mut runner).unwrap().current();
                largest_error(&shapes, slow)
            })
            .collect();
        errors.sort_by(f64::total_cmp);
        let [most, largest] = [errors[395], errors[399]];
        assert!(most < 0.05 && largest < 0.2, "{most} {largest}");
    }
}
