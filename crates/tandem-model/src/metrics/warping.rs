//! Dynamic time warping of two utterances with different speaking rates.
//!
//! In: a cost for each pair of frames. Out: [`Warping`], the monotonic path from the first pair to the
//! last with the smallest sum of costs (Sakoe and Chiba 1978, steps of weight one). Needs one byte per
//! pair inside the band, and two rows of sums.

/// How far a path may be from the diagonal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Band {
    /// No limit.
    #[default]
    Whole,
    /// At most this fraction of the columns to either side.
    Around(f64),
}

/// The best path and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Warping {
    /// Sum of the costs of all pairs on the path.
    pub cost: f64,
    /// Pairs of row and column, first to last.
    pub path: Vec<(usize, usize)>,
}

impl Warping {
    /// Mean cost of a pair on the path.
    pub fn mean(&self) -> f64 {
        self.cost / self.path.len() as f64
    }
}

/// The previous pair on the best path.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum From {
    Both,
    Row,
    Column,
}

/// The best path through `rows` times `columns` pairs; `None` if one of them is zero.
pub fn warp(
    rows: usize,
    columns: usize,
    band: Band,
    cost: impl Fn(usize, usize) -> f64,
) -> Option<Warping> {
    if rows == 0 || columns == 0 {
        return None;
    }
    let reach = Reach::new(rows, columns, band);
    let mut from: Vec<From> = Vec::new();
    let mut starts = Vec::with_capacity(rows);
    let (mut above, mut here) = (vec![f64::INFINITY; columns], vec![f64::INFINITY; columns]);
    for row in 0..rows {
        let (first, last) = reach.of(row);
        starts.push((from.len(), first));
        here.fill(f64::INFINITY);
        for column in first..=last {
            let (best, way) = cheapest(&above, &here, row, column);
            from.push(way);
            here[column] = best + cost(row, column);
        }
        std::mem::swap(&mut above, &mut here);
    }
    let path = trace_back(rows, columns, |row, column| {
        let (start, first) = starts[row];
        from[start + column - first]
    });
    Some(Warping { cost: above[columns - 1], path })
}

/// The cheapest predecessor of a pair; the diagonal one if costs are equal.
fn cheapest(above: &[f64], here: &[f64], row: usize, column: usize) -> (f64, From) {
    if row == 0 && column == 0 {
        return (0.0, From::Both);
    }
    let left = |sums: &[f64]| if column > 0 { sums[column - 1] } else { f64::INFINITY };
    let mut best = (left(above), From::Both);
    for other in [(above[column], From::Row), (left(here), From::Column)] {
        if other.0 < best.0 {
            best = other;
        }
    }
    best
}

fn trace_back(
    rows: usize,
    columns: usize,
    from: impl Fn(usize, usize) -> From,
) -> Vec<(usize, usize)> {
    let (mut row, mut column) = (rows - 1, columns - 1);
    let mut path = vec![(row, column)];
    while (row, column) != (0, 0) {
        let way = from(row, column);
        row -= usize::from(way != From::Column);
        column -= usize::from(way != From::Row);
        path.push((row, column));
    }
    path.reverse();
    path
}

/// The columns of a row that are inside the band.
struct Reach {
    slope: f64,
    radius: f64,
    columns: usize,
}

impl Reach {
    fn new(rows: usize, columns: usize, band: Band) -> Reach {
        let slope = (columns - 1) as f64 / (rows - 1).max(1) as f64;
        let radius = match band {
            Band::Whole => f64::INFINITY,
            // Wide enough that the bands of neighbouring rows overlap.
            Band::Around(share) => (share.max(0.0) * columns as f64).max(slope).max(1.0),
        };
        // A single row has all columns.
        let radius = if rows == 1 { f64::INFINITY } else { radius };
        Reach { slope, radius, columns }
    }

    fn of(&self, row: usize) -> (usize, usize) {
        let middle = row as f64 * self.slope;
        let first = (middle - self.radius).ceil().max(0.0) as usize;
        let last = (middle + self.radius).floor().min((self.columns - 1) as f64) as usize;
        (first.min(self.columns - 1), last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of_values(a: &[f64], b: &[f64], band: Band) -> Warping {
        warp(a.len(), b.len(), band, |i, j| (a[i] - b[j]).abs()).unwrap()
    }

    /// The smallest cost over all paths, by brute force.
    fn brute(a: &[f64], b: &[f64]) -> f64 {
        let here = (a[0] - b[0]).abs();
        match (a.len(), b.len()) {
            (1, 1) => here,
            (1, _) => here + brute(a, &b[1..]),
            (_, 1) => here + brute(&a[1..], b),
            _ => here + brute(&a[1..], &b[1..]).min(brute(&a[1..], b)).min(brute(a, &b[1..])),
        }
    }

    #[test]
    fn a_slower_copy_costs_nothing() {
        let found = of_values(&[1.0, 2.0, 3.0], &[1.0, 1.0, 2.0, 3.0, 3.0], Band::Whole);
        assert_eq!(found.cost, 0.0);
        assert_eq!(found.path, [(0, 0), (0, 1), (1, 2), (2, 3), (2, 4)]);
    }

    #[test]
    fn a_band_keeps_the_path_near_the_line() {
        let rise: Vec<f64> = (0..20).map(|i| if i < 15 { 0.0 } else { 1.0 }).collect();
        let early: Vec<f64> = (0..20).map(|i| if i < 3 { 0.0 } else { 1.0 }).collect();
        assert_eq!(of_values(&rise, &early, Band::Whole).cost, 0.0);
        let found = of_values(&rise, &early, Band::Around(0.1));
        assert!(found.cost > 5.0, "{}", found.cost);
        assert!(found.path.iter().all(|(i, j)| i.abs_diff(*j) <= 2), "{:?}", found.path);
    }

    #[test]
    fn one_frame_is_paired_with_all() {
        let found = of_values(&[1.0], &[1.0, 2.0, 4.0], Band::Around(0.1));
        assert_eq!((found.cost, found.path.len(), found.mean()), (4.0, 3, 4.0 / 3.0));
        assert_eq!(warp(0, 3, Band::Whole, |_, _| 0.0), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn no_path_is_cheaper(
            a in prop::collection::vec(0.0..1.0f64, 1..6),
            b in prop::collection::vec(0.0..1.0f64, 1..6),
        ) {
            let found = of_values(&a, &b, Band::Whole);
            prop_assert!((found.cost - brute(&a, &b)).abs() < 1e-12);
        }

        #[test]
        fn a_path_is_whole_and_costs_what_it_says(
            a in prop::collection::vec(0.0..1.0f64, 1..40),
            b in prop::collection::vec(0.0..1.0f64, 1..40),
            share in 0.0..0.5f64,
        ) {
            let found = of_values(&a, &b, Band::Around(share));
            let sum: f64 = found.path.iter().map(|(i, j)| (a[*i] - b[*j]).abs()).sum();
            prop_assert!((sum - found.cost).abs() < 1e-9);
            prop_assert_eq!(found.path[0], (0, 0));
            prop_assert_eq!(*found.path.last().unwrap(), (a.len() - 1, b.len() - 1));
            for pair in found.path.windows(2) {
                let step = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
                prop_assert!(matches!(step, (0, 1) | (1, 0) | (1, 1)), "{:?}", pair);
            }
        }
    }
}
