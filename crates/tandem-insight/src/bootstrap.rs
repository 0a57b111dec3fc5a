//! How far a figure could be off, for numbers that follow each other.
//!
//! In: how many numbers there are and how long they remember each other. Out: an [`Interval`]
//! around a figure. Step times and device samples are not independent, so whole blocks of
//! neighbours are drawn: the circular block bootstrap (Politis and Romano 1992), blocks as long
//! as Politis and White (2004, corrected 2009) suggest. The same seed gives the same interval.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::Serialize;

/// Where a figure lies, with a stated certainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Whether a number lies in it.
    pub fn holds(&self, number: f64) -> bool {
        (self.low..=self.high).contains(&number)
    }

    /// Both ends turned by a function that keeps or turns the order.
    pub fn map(&self, turn: impl Fn(f64) -> f64) -> Interval {
        let (one, other) = (turn(self.low), turn(self.high));
        Interval { low: one.min(other), high: one.max(other) }
    }
}

/// A series that can be drawn again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Numbers in the series.
    pub count: usize,
    /// Neighbours that are drawn together.
    pub length: usize,
}

impl Blocks {
    /// Blocks as long as these numbers remember each other.
    pub fn of(series: &[f64]) -> Blocks {
        let count = series.len();
        let root = (count as f64).cbrt().ceil() as usize;
        // Fewer than four blocks would say nothing about how much they differ.
        let most = (count / 4).max(1);
        let length = memory_of(series).ceil() as usize;
        Blocks { count, length: length.max(root).clamp(1, most) }
    }

    /// Fills `places` with a draw of as many places as there are numbers.
    fn draw(&self, chance: &mut ChaCha8Rng, places: &mut Vec<usize>) {
        places.clear();
        while places.len() < self.count {
            let start = below(chance, self.count);
            let room = self.count - places.len();
            places.extend((0..self.length.min(room)).map(|step| (start + step) % self.count));
        }
    }

    /// Blocks that do not overlap: what there is to learn from.
    fn whole(&self) -> f64 {
        self.count as f64 / self.length as f64
    }
}

/// How often is drawn, from what chance, how certain the interval is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draws {
    pub count: usize,
    pub seed: u64,
    /// The certainty, such as 0.99.
    pub level: f64,
}

impl Draws {
    /// Fewer draws for very long runs, so that an answer takes seconds.
    pub fn for_numbers(&self, numbers: usize) -> Draws {
        let affordable = 200_000_000 / numbers.max(1);
        Draws { count: self.count.min(affordable).max(400), ..*self }
    }

    /// The interval of a figure of one or several series, drawn independently of each other.
    /// `figure` gets the places drawn of each; what it cannot work out it leaves out.
    pub fn interval<const N: usize>(
        &self,
        series: [Blocks; N],
        mut figure: impl FnMut(&[Vec<usize>; N]) -> Option<f64>,
    ) -> Option<Interval> {
        let mut places: [Vec<usize>; N] = std::array::from_fn(|at| (0..series[at].count).collect());
        let measured = figure(&places)?;
        let mut chance = ChaCha8Rng::seed_from_u64(self.seed);
        let mut drawn = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            for (blocks, places) in series.iter().zip(&mut places) {
                blocks.draw(&mut chance, places);
            }
            drawn.extend(figure(&places).filter(|value| value.is_finite()));
        }
        drawn.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - self.level) / 2.0;
        let (low, high) = (at_share(&drawn, tail)?, at_share(&drawn, 1.0 - tail)?);
        let widen = self.widening(&series);
        let (low, high) =
            (measured + (low - measured) * widen, measured + (high - measured) * widen);
        Some(Interval { low: low.min(measured), high: high.max(measured) })
    }

    /// Few blocks make the bootstrap too sure of itself: Student's quantile instead of the
    /// normal one (by its Cornish-Fisher expansion), and one block less in the divisor.
    fn widening(&self, series: &[Blocks]) -> f64 {
        let fewest = series.iter().map(Blocks::whole).fold(f64::INFINITY, f64::min).max(2.0);
        let free = (series.iter().map(Blocks::whole).sum::<f64>() - series.len() as f64).max(1.0);
        let z = normal_quantile(1.0 - (1.0 - self.level) / 2.0);
        let first = (z.powi(3) + z) / (4.0 * free);
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * free * free);
        (z + first + second) / z * (fewest / (fewest - 1.0)).sqrt()
    }
}

/// How long numbers remember each other, as the best length of a block.
fn memory_of(series: &[f64]) -> f64 {
    let count = series.len();
    let mean = series.iter().sum::<f64>() / count.max(1) as f64;
    let together = |lag: usize| -> f64 {
        let pairs = series.iter().zip(&series[lag..]);
        pairs.map(|(one, later)| (one - mean) * (later - mean)).sum::<f64>() / count as f64
    };
    let spread = if count < 8 { 0.0 } else { together(0) };
    if spread <= 0.0 {
        return 1.0;
    }
    // The lag after which nothing is left: a few in a row within what chance explains.
    let chance = 2.0 * ((count as f64).log10() / count as f64).sqrt();
    let in_a_row = 5usize.max((count as f64).log10().sqrt().ceil() as usize);
    let most = (count / 3).min(in_a_row + (count as f64).sqrt().ceil() as usize);
    let shares: Vec<f64> = (0..most.max(1)).map(|lag| together(lag) / spread).collect();
    let silent =
        |lag: &usize| shares[*lag + 1..].iter().take(in_a_row).all(|share| share.abs() < chance);
    let last = (0..shares.len()).find(silent).unwrap_or(shares.len() - 1);
    let window = (2 * last.max(1)).min(shares.len() - 1).max(1);
    let weight = |lag: usize| (2.0 * (1.0 - lag as f64 / window as f64)).clamp(0.0, 1.0);
    let sum = |of: &dyn Fn(usize) -> f64| (1..=window).map(of).sum::<f64>();
    let slope = 2.0 * sum(&|lag| weight(lag) * lag as f64 * shares[lag]);
    let whole = 1.0 + 2.0 * sum(&|lag| weight(lag) * shares[lag]);
    let variance = 4.0 / 3.0 * whole * whole;
    if variance <= 0.0 {
        return 1.0;
    }
    let best = (2.0 * slope * slope / variance).cbrt() * (count as f64).cbrt();
    best.min(3.0 * (count as f64).sqrt())
}

/// Lemire's bounded draw, spelled out so that the same seed gives the same answer for all time.
fn below(chance: &mut ChaCha8Rng, end: usize) -> usize {
    let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
    let unfair = end.wrapping_neg() % end;
    loop {
        let product = u128::from(chance.next_u64()) * u128::from(end);
        if product as u64 >= unfair {
            return (product >> 64) as usize;
        }
    }
}

/// The number below which that share of the sorted ones lies, between two neighbours.
fn at_share(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * (sorted.len().checked_sub(1)?) as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    Some(sorted[low] * (1.0 - part) + sorted[high] * part)
}

/// The quantile of the standard normal distribution, for shares above a half: Abramowitz and
/// Stegun 26.2.23, error below 4.5e-4.
pub(crate) fn normal_quantile(share: f64) -> f64 {
    let t = (-2.0 * (1.0 - share).ln()).sqrt();
    let top = 2.515_517 + 0.802_853 * t + 0.010_328 * t * t;
    let bottom = 1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t.powi(3);
    t - top / bottom
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise in which each number remembers a share of the one before.
    pub fn remembering(count: usize, share: f64, seed: u64) -> Vec<f64> {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let mut uniform = || (chance.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut noise = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let mut last = noise() / (1.0 - share * share).sqrt();
        let next = |_| {
            last = share * last + noise();
            last
        };
        (0..count).map(next).collect()
    }

    fn mean_interval(series: &[f64], blocks: Blocks) -> Interval {
        let draws = Draws { count: 600, seed: 1, level: 0.95 };
        let mean = |places: &[Vec<usize>; 1]| {
            Some(places[0].iter().map(|&at| series[at]).sum::<f64>() / series.len() as f64)
        };
        draws.interval([blocks], mean).unwrap()
    }

    #[test]
    fn the_interval_of_a_mean_holds_the_truth_as_often_as_it_says() {
        // 200 series whose true mean is 0. Independent draws of single numbers would hold it in
        // about 65 % of them.
        let held = |blocks: fn(&[f64]) -> Blocks| {
            let holds = |seed| {
                let series = remembering(300, 0.6, seed);
                mean_interval(&series, blocks(&series)).holds(0.0)
            };
            (0..200).filter(|&seed| holds(seed)).count()
        };
        let blocks = held(Blocks::of);
        assert!((180..=200).contains(&blocks), "{blocks} of 200");
        let single = held(|series| Blocks { count: series.len(), length: 1 });
        assert!(single < 160, "{single} of 200: the series does not remember");
    }

    #[test]
    fn blocks_are_as_long_as_the_memory() {
        let lengths = [0.0, 0.5, 0.9].map(|share| Blocks::of(&remembering(2000, share, 3)).length);
        assert!(
            lengths[0] <= 15 && lengths[0] < lengths[1] && lengths[1] < lengths[2],
            "{lengths:?}"
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let series = remembering(50, 0.3, 9);
        let one = mean_interval(&series, Blocks::of(&series));
        assert_eq!(one, mean_interval(&series, Blocks::of(&series)));
        assert!(one.low < one.high);
    }

    #[test]
    fn constant_and_tiny_series_are_measured() {
        assert_eq!(Blocks::of(&[1.0; 40]).length, 4);
        assert_eq!(Blocks::of(&[1.0, 2.0]).length, 1);
        let flat = mean_interval(&[2.0; 40], Blocks::of(&[2.0; 40]));
        assert_eq!((flat.low, flat.high), (2.0, 2.0));
    }

    #[test]
    fn the_normal_quantile_is_that_of_tables() {
        for (share, value) in [(0.975, 1.959_964), (0.995, 2.575_829), (0.9, 1.281_552)] {
            assert!((normal_quantile(share) - value).abs() < 5e-4, "{share}");
        }
    }
}
