//! How far frames are from sounds, every frame from every sound at once.
//!
//! In: sounds, each a mean frame and how much a distance from it counts. Out: `[frames, sounds]` of weighted squared
//! distances. Sounds stand side by side in the vector registers, so that each sum still goes over the bands from the
//! first to the last, whatever the width of the registers. Runs on the calling thread. Next: [`crate::alignment`].

use crate::network::ops::lanes::{self, LANES};
use pulp::WithSimd;

/// Frames that are compared at once: enough sums that none waits for the one before.
const FRAMES: usize = 4;

/// Sounds to compare frames with.
#[derive(Debug)]
pub(crate) struct Sounds {
    bands: usize,
    count: usize,
    /// For each [`LANES`] sounds, band by band: `[blocks, bands]`.
    blocks: Vec<Numbers>,
}

/// One band of [`LANES`] sounds.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    mean: [f32; LANES],
    precision: [f32; LANES],
}

impl Sounds {
    /// Sounds whose mean frames are these, and whose distances count as much as the other numbers say.
    pub(crate) fn new<'a>(
        sounds: impl IntoIterator<Item = (&'a [f32], Precision<'a>)>,
        bands: usize,
    ) -> Sounds {
        let none = Numbers { mean: [0.0; LANES], precision: [0.0; LANES] };
        let (mut blocks, mut count) = (Vec::new(), 0);
        for (mean, precision) in sounds {
            let lane = count % LANES;
            if lane == 0 {
                blocks.resize(blocks.len() + bands, none);
            }
            let first = blocks.len() - bands;
            for (band, numbers) in blocks[first..].iter_mut().enumerate() {
                numbers.mean[lane] = mean[band];
                numbers.precision[lane] = match precision {
                    Precision::One => 1.0,
                    Precision::Each(all) => all[band],
                };
            }
            count += 1;
        }
        Sounds { bands, count, blocks }
    }

    /// Distances of these frames, `[frames, bands]`, to each sound: `[frames, sounds]`.
    pub(crate) fn distances(&self, mel: &[f32]) -> Vec<f32> {
        let mut far = vec![0.0; mel.len() / self.bands * self.count];
        if self.count > 0 {
            lanes::run(Distances { sounds: self, mel, far: &mut far });
        }
        far
    }
}

/// How much the distance in a band counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Precision<'a> {
    /// As much in every band.
    One,
    /// So much in each.
    Each(&'a [f32]),
}

struct Distances<'a> {
    sounds: &'a Sounds,
    mel: &'a [f32],
    far: &'a mut [f32],
}

impl WithSimd for Distances<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        let Sounds { bands, count, ref blocks } = *self.sounds;
        let groups = self.mel.chunks(FRAMES * bands);
        for (frames, far) in groups.zip(self.far.chunks_mut(FRAMES * count)) {
            // A last group that is short repeats its last frame and throws the copies away.
            let last = frames.len() / bands - 1;
            let frame = |place: usize| &frames[place.min(last) * bands..][..bands];
            let group: [&[f32]; FRAMES] = std::array::from_fn(frame);
            for (block, numbers) in blocks.chunks_exact(bands).enumerate() {
                let sums = of_group(&group, numbers);
                let first = block * LANES;
                let here = LANES.min(count - first);
                for (far, sums) in far.chunks_exact_mut(count).zip(&sums) {
                    far[first..first + here].copy_from_slice(&sums[..here]);
                }
            }
        }
    }
}

#[allow(clippy::needless_range_loop, reason = "iterators are not compiled in line here")]
#[inline(always)]
fn of_group(group: &[&[f32]; FRAMES], numbers: &[Numbers]) -> [[f32; LANES]; FRAMES] {
    let mut sums = [[0.0; LANES]; FRAMES];
    for (band, numbers) in numbers.iter().enumerate() {
        for place in 0..FRAMES {
            let x = group[place][band];
            for lane in 0..LANES {
                let off = x - numbers.mean[lane];
                sums[place][lane] += off * off * numbers.precision[lane];
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

    /// The same by its definition, in the same order.
    fn one(frame: &[f32], mean: &[f32], precision: &[f32]) -> f32 {
        let both = mean.iter().zip(precision);
        frame.iter().zip(both).map(|(x, (m, s))| (x - m) * (x - m) * s).sum()
    }

    #[test]
    fn every_frame_is_compared_with_every_sound() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let mut draw = |count: usize| -> Vec<f32> {
            (0..count).map(|_| rng.random_range(-2.0..2.0)).collect()
        };
        for (frames, count, bands) in
            [(1, 1, 1), (3, 2, 5), (4, 16, 80), (9, 17, 80), (6, 40, 7), (0, 3, 4), (5, 0, 4)]
        {
            let (mel, means, sharp) =
                (draw(frames * bands), draw(count * bands), draw(count * bands));
            let pairs = means.chunks_exact(bands).zip(sharp.chunks_exact(bands));
            let sounds = Sounds::new(pairs.clone().map(|(m, s)| (m, Precision::Each(s))), bands);
            let wanted: Vec<f32> = mel
                .chunks_exact(bands)
                .flat_map(|frame| pairs.clone().map(move |(m, s)| one(frame, m, s)))
                .collect();
            assert_eq!(
                sounds.distances(&mel),
                wanted,
                "{frames} frames, {count} sounds, {bands} bands"
            );
        }
    }

    #[test]
    fn without_weights_a_distance_is_the_plain_one() {
        let sounds =
            Sounds::new([(&[0.0, 0.0][..], Precision::One), (&[0.0, 1.0], Precision::One)], 2);
        assert_eq!(sounds.distances(&[3.0, 4.0]), [25.0, 18.0]);
    }
}
