//! The tables of the fast kernel: window, factors, output order of the bins, filter weights.
//!
//! In: settings that [`fits`] accepts. Out: [`Plan`], computed once per extractor. The transform leaves
//! its bins in its own order. They are not reordered: each bin is added directly to its filters.

use super::butterfly::Factors;
use super::config::{MelConfig, MelError};
use super::filterbank::{band_edges, filterbank, hann_window};
use std::f64::consts::PI;

/// The transform size that the fast kernel supports.
pub(super) const POINTS: usize = 1024;
/// The hop that the fast kernel supports: a quarter of the window.
pub(super) const HOP: usize = 256;
/// Bins of the transform, from zero to half the rate.
pub(super) const BINS: usize = POINTS / 2 + 1;
/// Remainder classes modulo 16 of the complex remainders, in the output order of `butterfly`:
/// four odd, three even; each also represents its conjugate.
pub(super) const CLASSES: [usize; 7] = [1, 9, 5, 13, 2, 10, 4];
/// Whether the fast kernel supports these settings.
pub(super) fn fits(config: &MelConfig) -> bool {
    config.n_fft == POINTS && config.hop.0 == HOP
}

/// The factors of one remainder of 64 coefficients down to single bins.
pub(super) struct ClassFactors {
    /// Of the first three halvings, the same for all eight columns.
    pub(super) whole: Factors,
    /// Of the last three, one set per remainder of eight coefficients.
    pub(super) parts: [Factors; 8],
}

/// The weights of a bin in its two filters: one falls there, the next one rises.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// The interval between two band edges: filter `interval - 1` falls, filter `interval` rises.
    pub(super) interval: usize,
    /// Weight in the filter that falls here.
    pub(super) falling: f32,
    /// Weight in the filter that rises here.
    pub(super) rising: f32,
}

pub(super) struct Plan {
    /// Window by `[n][k]` for sample `n + 64 k`.
    pub(super) window: Box<[[f32; 16]; 64]>,
    /// The window for 16-bit samples, with their scale.
    pub(super) window_16_bit: Box<[[f32; 16]; 64]>,
    /// Factors of [`CLASSES`], then of the bins divisible by 8.
    pub(super) factors: Box<[ClassFactors; 8]>,
    /// Output position of value `m` of the packed transform of 64.
    pub(super) packed_place: [usize; 64],
    /// `e^(-2 pi i m / 128) / 2i`, which separates the packed transform.
    pub(super) unpack: [[f32; 2]; 33],
    /// The shares of each class's bins, in output order.
    pub(super) shares: [[Share; 64]; CLASSES.len()],
    /// The shares of the bins divisible by 8, lowest first.
    pub(super) eighth_shares: [Share; 65],
    pub(super) floor: f32,
}

impl Plan {
    /// Tables for settings that [`fits`] accepts.
    pub(super) fn new(config: &MelConfig) -> Result<Self, MelError> {
        let shares = bin_shares(config)?;
        let mut packed_place = [0; 64];
        for (place, bin) in class_bins(0).into_iter().enumerate() {
            packed_place[bin / 16] = place;
        }
        let class = |c: usize| class_factors(CLASSES.get(c).copied().unwrap_or(0));
        Ok(Self {
            window: window_table(config, 1.0),
            window_16_bit: window_table(config, 1.0 / 32768.0),
            factors: Box::new(std::array::from_fn(class)),
            packed_place,
            // 1 / 2i is half a quarter turn back.
            unpack: std::array::from_fn(|m| point(m as f64 / 128.0 + 0.25).map(|part| part / 2.0)),
            shares: CLASSES.map(|class| class_bins(class).map(|bin| shares[bin.min(POINTS - bin)])),
            eighth_shares: std::array::from_fn(|m| shares[8 * m]),
            floor: config.floor,
        })
    }
}

fn window_table(config: &MelConfig, scale: f64) -> Box<[[f32; 16]; 64]> {
    let window = hann_window(config);
    let mut table = Box::new([[0.0; 16]; 64]);
    for (n, row) in table.iter_mut().enumerate() {
        for (k, value) in row.iter_mut().enumerate() {
            *value = (window[n + 64 * k] * scale) as f32;
        }
    }
    table
}

/// `e^(-2 pi i turns)`
fn point(turns: f64) -> [f32; 2] {
    let angle = -2.0 * PI * turns;
    [angle.cos() as f32, angle.sin() as f32]
}

/// Factors for halving the remainder of `length` coefficients of the bins `first` modulo
/// `1024 / length`.
fn factors(first: usize, length: usize) -> Factors {
    let turns = |divisor: usize| first as f64 * (length / divisor) as f64 / POINTS as f64;
    [point(turns(2)), point(turns(4)), point(turns(8)), point(turns(8) + 0.125)]
}

/// The remainder at an output position: the choice of the first step is the lowest bit.
fn reversed(place: usize) -> usize {
    (place & 1) << 2 | (place & 2) | (place >> 2 & 1)
}

fn class_factors(class: usize) -> ClassFactors {
    ClassFactors {
        whole: factors(class, 64),
        parts: std::array::from_fn(|part| factors(class + 16 * reversed(part), 8)),
    }
}

/// The bins (of 1024) of one class, in output order.
fn class_bins(class: usize) -> [usize; 64] {
    std::array::from_fn(|place| class + 16 * reversed(place / 8) + 128 * reversed(place % 8))
}

/// The shares of all bins. A bin outside all filters has zero weights in the first interval.
fn bin_shares(config: &MelConfig) -> Result<Vec<Share>, MelError> {
    let bank = filterbank(config)?;
    let edges = band_edges(config);
    let bin_hz = f64::from(config.rate.0) / POINTS as f64;
    let weight = |band: Option<usize>, bin: usize| {
        let band = band.and_then(|band| bank.bands().get(band));
        let run = band.filter(|band| band.range().contains(&bin));
        run.map_or(0.0, |band| band.weights()[bin - band.range().start] as f32)
    };
    let share = |bin: usize| {
        let corners_below = edges.partition_point(|&corner| corner < bin as f64 * bin_hz);
        let interval = corners_below.saturating_sub(1).min(config.bands);
        let falling = weight(interval.checked_sub(1), bin);
        Share { interval, falling, rising: weight(Some(interval), bin) }
    };
    Ok((0..BINS).map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bin_comes_out_once() {
        let classes = CLASSES.into_iter().flat_map(class_bins).map(|bin| bin.min(POINTS - bin));
        let mut bins: Vec<usize> = classes.chain((0..=64).map(|m| 8 * m)).collect();
        bins.sort_unstable();
        assert_eq!(bins, (0..BINS).collect::<Vec<_>>());
    }

    #[test]
    fn no_weight_of_the_filterbank_is_lost() {
        for config in [
            MelConfig::SPEECH_22K,
            MelConfig { bands: 200, ..MelConfig::SPEECH_22K },
            MelConfig { bands: 1, low: 100.0, high: 8000.0, ..MelConfig::SPEECH_22K },
        ] {
            let mut sums = vec![0.0; config.bands + 2];
            for share in bin_shares(&config).unwrap() {
                sums[share.interval] += f64::from(share.falling);
                sums[share.interval + 1] += f64::from(share.rising);
            }
            let bank = filterbank(&config).unwrap();
            for (band, sum) in bank.bands().iter().zip(&sums[1..]) {
                let expected: f64 = band.weights().iter().sum();
                assert!((expected - sum).abs() <= 1e-6 * expected, "{expected} became {sum}");
            }
        }
    }
}
