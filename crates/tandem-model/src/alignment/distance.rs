//! Weighted squared distances of all frames to all symbols.
//!
//! In: a mean frame and a precision (weights of the bands) for each symbol. Out: `[frames, symbols]` of distances.
//! Each lane of a vector register holds another symbol, so that a sum always goes over the bands in order, whatever the
//! width of the registers. Runs on the calling thread. Next: [`crate::alignment::search`].

use crate::network::ops::lanes::{self, LANES};
use pulp::WithSimd;

/// Frames per group: enough independent sums to hide the latency of an addition.
const FRAMES: usize = 4;

/// The mean frames and precisions of symbols, in blocks of [`LANES`].
#[derive(Debug)]
pub(crate) struct SymbolFrames {
    bands: usize,
    count: usize,
    /// `[blocks, bands]`.
    blocks: Vec<BandLanes>,
}

/// One band of [`LANES`] symbols.
#[derive(Clone, Copy, Debug)]
struct BandLanes {
    mean: [f32; LANES],
    precision: [f32; LANES],
}

impl SymbolFrames {
    pub(crate) fn new<'a>(
        symbols: impl IntoIterator<Item = (&'a [f32], Precision<'a>)>,
        bands: usize,
    ) -> SymbolFrames {
        let zero = BandLanes { mean: [0.0; LANES], precision: [0.0; LANES] };
        let (mut blocks, mut count) = (Vec::new(), 0);
        for (mean, precision) in symbols {
            let lane = count % LANES;
            if lane == 0 {
                blocks.resize(blocks.len() + bands, zero);
            }
            let first = blocks.len() - bands;
            for (band, lanes) in blocks[first..].iter_mut().enumerate() {
                lanes.mean[lane] = mean[band];
                lanes.precision[lane] = match precision {
                    Precision::One => 1.0,
                    Precision::Each(all) => all[band],
                };
            }
            count += 1;
        }
        SymbolFrames { bands, count, blocks }
    }

    /// Distances of frames `[frames, bands]` to each symbol: `[frames, symbols]`.
    pub(crate) fn distances(&self, mel: &[f32]) -> Vec<f32> {
        let mut distances = vec![0.0; mel.len() / self.bands * self.count];
        if self.count > 0 {
            lanes::run(Distances { symbols: self, mel, out: &mut distances });
        }
        distances
    }
}

/// The weights of the bands in a distance.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Precision<'a> {
    /// 1 for every band.
    One,
    /// One weight per band.
    Each(&'a [f32]),
}

struct Distances<'a> {
    symbols: &'a SymbolFrames,
    mel: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Distances<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        let SymbolFrames { bands, count, ref blocks } = *self.symbols;
        let groups = self.mel.chunks(FRAMES * bands);
        for (frames, out) in groups.zip(self.out.chunks_mut(FRAMES * count)) {
            // A short last group repeats its last frame; the copies are not written.
            let last = frames.len() / bands - 1;
            let frame = |index: usize| &frames[index.min(last) * bands..][..bands];
            let group: [&[f32]; FRAMES] = std::array::from_fn(frame);
            for (block, lanes) in blocks.chunks_exact(bands).enumerate() {
                let sums = of_group(&group, lanes);
                let first = block * LANES;
                let here = LANES.min(count - first);
                for (out, sums) in out.chunks_exact_mut(count).zip(&sums) {
                    out[first..first + here].copy_from_slice(&sums[..here]);
                }
            }
        }
    }
}

#[allow(clippy::needless_range_loop, reason = "iterators are not inlined here")]
#[inline(always)]
fn of_group(group: &[&[f32]; FRAMES], bands: &[BandLanes]) -> [[f32; LANES]; FRAMES] {
    let mut sums = [[0.0; LANES]; FRAMES];
    for (band, lanes) in bands.iter().enumerate() {
        for frame in 0..FRAMES {
            let x = group[frame][band];
            for lane in 0..LANES {
                let difference = x - lanes.mean[lane];
                sums[frame][lane] += difference * difference * lanes.precision[lane];
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// The definition, with the same order of additions.
    fn one(frame: &[f32], mean: &[f32], precision: &[f32]) -> f32 {
        let both = mean.iter().zip(precision);
        frame.iter().zip(both).map(|(x, (m, s))| (x - m) * (x - m) * s).sum()
    }

    #[test]
    fn every_frame_is_compared_with_every_symbol() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let mut draw = |count: usize| -> Vec<f32> {
            (0..count).map(|_| rng.random_range(-2.0..2.0)).collect()
        };
        for (frames, count, bands) in
            [(1, 1, 1), (3, 2, 5), (4, 16, 80), (9, 17, 80), (6, 40, 7), (0, 3, 4), (5, 0, 4)]
        {
            let (mel, means, precisions) =
                (draw(frames * bands), draw(count * bands), draw(count * bands));
            let pairs = means.chunks_exact(bands).zip(precisions.chunks_exact(bands));
            let symbols =
                SymbolFrames::new(pairs.clone().map(|(m, s)| (m, Precision::Each(s))), bands);
            let wanted: Vec<f32> = mel
                .chunks_exact(bands)
                .flat_map(|frame| pairs.clone().map(move |(m, s)| one(frame, m, s)))
                .collect();
            assert_eq!(
                symbols.distances(&mel),
                wanted,
                "{frames} frames, {count} symbols, {bands} bands"
            );
        }
    }

    #[test]
    fn without_precisions_a_distance_is_the_squared_one() {
        let symbols = SymbolFrames::new(
            [(&[0.0, 0.0][..], Precision::One), (&[0.0, 1.0], Precision::One)],
            2,
        );
        assert_eq!(symbols.distances(&[3.0, 4.0]), [25.0, 18.0]);
    }
}
