//! A batch with everything that a training step needs: aligned text and frames, a reference segment of
//! each speaker, noise and times of the flow.
//!
//! In: arrays on the host. Out: [`PackedBatch`], all of them in one piece of host memory; [`UploadedBatch`], the same on
//! its way to the model device; [`DeviceBatch`], tensors of the thread that trains on it. Random values are drawn
//! on the host from the seed of the batch, so that a batch is the same on every device and after a
//! resume. Next: [`crate::network::voice`].

pub mod noise; // standard normal values

use crate::network::decoder::time_features;
use crate::network::ops::Lengths;
use crate::network::size::VoiceConfig;
use crate::upload::{Pack, Upload};
use burn::tensor::{Device, Int, Tensor};
use noise::fill_normal;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tandem_data::batch::BatchShape;
use tandem_units::{Bytes, Seed};

/// A padded batch in host memory.
#[derive(Clone, Debug, Default)]
pub struct AlignedBatch {
    /// Rows, including empty ones.
    pub rows: usize,
    /// Symbols of a row, including padding.
    pub symbols: usize,
    /// Frames of a row, including padding: a multiple of the decoder's patch.
    pub frames: usize,
    pub bands: usize,
    /// Frames per position of the decoder.
    pub patch: usize,
    /// Real symbols of each row; 0 for an empty row.
    pub symbol_counts: Vec<usize>,
    /// Real frames of each row.
    pub frame_counts: Vec<usize>,
    /// `[rows, symbols]`.
    pub symbol_ids: Vec<i32>,
    /// `[rows]`.
    pub languages: Vec<i32>,
    /// Frames of each symbol, row after row: `[rows, symbols]`.
    pub durations: Vec<u32>,
    /// Normalised frames: `[rows, frames, bands]`.
    pub mel: Vec<f32>,
    /// Frames of a reference, including padding: a multiple of four.
    pub reference_frames: usize,
    /// Normalised frames of another utterance of the same speaker:
    /// `[rows, reference_frames, bands]`.
    pub reference: Vec<f32>,
    /// Real frames of each reference; 0 for none.
    pub reference_counts: Vec<usize>,
    /// Seed of noise and times.
    pub seed: Seed,
}

/// A batch on a device.
#[derive(Clone, Debug)]
pub struct DeviceBatch {
    /// `[rows, symbols]`.
    pub symbols: Tensor<2, Int>,
    /// `[rows, 1]`.
    pub languages: Tensor<2, Int>,
    /// Which symbols are real.
    pub text: Lengths,
    /// Which positions of the decoder are real.
    pub positions: Lengths,
    /// Natural logarithm of each symbol's frames: `[rows, symbols]`.
    pub log_durations: Tensor<2>,
    /// One over the number of real symbols of the row; zero at padding: `[rows, symbols]`.
    pub symbol_weight: Tensor<2>,
    /// For each frame, the index of its symbol in the flattened text: `[rows * frames]`.
    pub frame_symbols: Tensor<1, Int>,
    /// The same for each position of the decoder: `[rows * frames / patch]`.
    pub position_symbols: Tensor<1, Int>,
    /// Normalised frames: `[rows, frames, bands]`.
    pub mel: Tensor<3>,
    /// One over the number of real values of the row; zero at padding: `[rows, frames, 1]`.
    pub frame_weight: Tensor<3>,
    /// `[rows, reference_frames, bands]`.
    pub reference: Tensor<3>,
    /// One where a reference frame is real: `[rows, reference_frames]`.
    pub reference_mask: Tensor<2>,
    /// Standard normal: `[rows, frames, bands]`.
    pub noise: Tensor<3>,
    /// The time of each row's point of the flow, from 0 to 1: `[rows, 1, 1]`.
    pub times: Tensor<3>,
    /// Sinusoidal embeddings of the times: `[rows, 64]`.
    pub time_features: Tensor<2>,
    /// Rows with an utterance.
    pub utterances: usize,
}

/// A batch in one piece of host memory, with noise and times.
pub struct PackedBatch {
    arrays: Pack,
    lengths: BatchLengths,
}

/// A batch on its way to a device, or there. Clones share it.
#[derive(Clone, Debug)]
pub struct UploadedBatch {
    arrays: Upload,
    lengths: BatchLengths,
    /// Rows with an utterance.
    pub utterances: usize,
}

/// What the host knows of the lengths of a batch.
#[derive(Clone, Debug)]
struct BatchLengths {
    /// Real symbols of each row, and symbols with padding.
    text: (Vec<usize>, usize),
    /// The same for positions of the decoder.
    positions: (Vec<usize>, usize),
}

impl PackedBatch {
    /// The device memory that it takes.
    pub fn size(&self) -> Bytes {
        self.arrays.size()
    }

    /// Starts the copy to a device.
    pub fn upload(self, device: &Device) -> UploadedBatch {
        let utterances = self.lengths.text.0.iter().filter(|&&count| count > 0).count();
        UploadedBatch { arrays: self.arrays.upload(device), lengths: self.lengths, utterances }
    }
}

impl UploadedBatch {
    /// Its device memory.
    pub fn size(&self) -> Bytes {
        self.arrays.size()
    }

    /// A copy on the GPU in memory of this thread, which stays where it is; `None` in host memory.
    #[cfg(feature = "any-gpu")]
    pub(crate) fn for_this_thread(&self) -> Option<UploadedBatch> {
        Some(UploadedBatch { arrays: self.arrays.for_this_thread()?, ..self.clone() })
    }

    /// Whether all arrays have the shapes of those of another batch.
    #[cfg(feature = "any-gpu")]
    pub fn has_shape_of(&self, other: &UploadedBatch) -> bool {
        self.arrays.has_shapes_of(&other.arrays)
    }

    /// Takes over the arrays of another batch of the same shape. Lengths on the host stay those of before: kernels of a GPU
    /// read those of the arrays.
    #[cfg(feature = "any-gpu")]
    pub(crate) fn fill(&self, from: &UploadedBatch) {
        self.arrays.fill(&from.arrays);
    }

    /// Its tensors, for the calling thread. Waits for nothing.
    pub fn tensors(&self) -> DeviceBatch {
        // In the order of `AlignedBatch::pack`.
        let mut arrays = self.arrays.tensors();
        let mut lengths = |(real, places): &(Vec<usize>, usize)| {
            Lengths::uploaded(real, *places, arrays.floats(), arrays.floats())
        };
        let (text, positions) = (lengths(&self.lengths.text), lengths(&self.lengths.positions));
        DeviceBatch {
            text,
            positions,
            symbols: arrays.ints(),
            languages: arrays.ints(),
            log_durations: arrays.floats(),
            symbol_weight: arrays.floats(),
            frame_symbols: arrays.ints(),
            position_symbols: arrays.ints(),
            mel: arrays.floats(),
            frame_weight: arrays.floats(),
            reference: arrays.floats(),
            reference_mask: arrays.floats(),
            times: arrays.floats(),
            time_features: arrays.floats(),
            noise: arrays.floats(),
            utterances: self.utterances,
        }
    }
}

impl AlignedBatch {
    /// A batch of this shape without padding: the largest that this shape can have.
    pub fn fullest(
        shape: BatchShape,
        config: &VoiceConfig,
        reference_frames: usize,
    ) -> AlignedBatch {
        let BatchShape { rows, frames, symbols } = shape;
        let frames = frames.next_multiple_of(config.patch);
        // A symbol has at least one frame.
        let spoken = symbols.min(frames);
        let mut durations = vec![(frames / spoken.max(1)) as u32; spoken];
        if let Some(last) = durations.last_mut() {
            *last += (frames % spoken) as u32;
        }
        durations.resize(symbols, 0);
        AlignedBatch {
            rows,
            symbols,
            frames,
            bands: config.bands,
            patch: config.patch,
            symbol_counts: vec![spoken; rows],
            frame_counts: vec![frames; rows],
            symbol_ids: vec![1; rows * symbols],
            languages: vec![0; rows],
            durations: durations.repeat(rows),
            mel: vec![0.0; rows * frames * config.bands],
            reference_frames,
            reference: vec![0.0; rows * reference_frames * config.bands],
            reference_counts: vec![reference_frames; rows],
            seed: Seed(0),
        }
    }

    /// Its tensors on a device, for the calling thread.
    pub fn to_device(&self, device: &Device) -> DeviceBatch {
        self.pack().upload(device).tensors()
    }

    /// Draws noise and times, and packs everything for one upload.
    pub fn pack(&self) -> PackedBatch {
        let (rows, frames, bands) = (self.rows, self.frames, self.bands);
        let (positions, references) = (frames / self.patch, self.reference_frames);
        let patches: Vec<usize> =
            self.frame_counts.iter().map(|count| count.div_ceil(self.patch)).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed.0);
        let times = draw_times(&mut rng, rows);
        let frame_symbols = self.frame_symbols();
        let position_symbols: Vec<i32> =
            frame_symbols.iter().copied().step_by(self.patch).collect();
        let mut arrays = Pack::with_capacity(self.packed_values());
        pack_lengths(&mut arrays, &self.symbol_counts, self.symbols);
        pack_lengths(&mut arrays, &patches, positions);
        arrays.ints([rows, self.symbols], self.symbol_ids.iter().copied());
        arrays.ints([rows, 1], self.languages.iter().copied());
        arrays.floats([rows, self.symbols], self.log_durations());
        arrays.floats([rows, self.symbols], weights(&self.symbol_counts, self.symbols, 1));
        arrays.ints([rows * frames], frame_symbols);
        arrays.ints([rows * positions], position_symbols);
        arrays.floats([rows, frames, bands], self.mel.iter().copied());
        arrays.floats([rows, frames, 1], weights(&self.frame_counts, frames, bands));
        arrays.floats([rows, references, bands], self.reference.iter().copied());
        arrays.floats([rows, references], ones(&self.reference_counts, references));
        arrays.floats([rows, 1, 1], times.iter().copied());
        let features = time_features(&times);
        let width = features.num_elements() / rows.max(1);
        arrays.floats([rows, width], features.iter::<f32>());
        arrays.filled([rows, frames, bands], |noise| fill_normal(&mut rng, noise));
        let (text, positions) = ((self.symbol_counts.clone(), self.symbols), (patches, positions));
        PackedBatch { arrays, lengths: BatchLengths { text, positions } }
    }

    /// A little more than the values of all arrays.
    fn packed_values(&self) -> usize {
        let per_frame = 2 * self.bands + 4;
        let per_row = self.frames * per_frame
            + 5 * self.symbols
            + self.reference_frames * (self.bands + 1)
            + 128;
        self.rows * per_row + 32 * 128
    }

    fn log_durations(&self) -> Vec<f32> {
        self.durations.iter().map(|&frames| (frames.max(1) as f32).ln()).collect()
    }

    fn frame_symbols(&self) -> Vec<i32> {
        let row = |(row, durations): (usize, &[u32])| {
            let first = (row * self.symbols) as i32;
            let symbols = symbols_of_frames(&durations[..self.symbol_counts[row]], self.frames);
            symbols.into_iter().map(move |symbol| first + symbol)
        };
        self.durations.chunks_exact(self.symbols).enumerate().flat_map(row).collect()
    }
}

/// The symbol of each frame of a text. Padding frames have its last symbol: the decoder sees the one that completes the
/// last patch, so training and synthesis must have the same there.
pub fn symbols_of_frames(durations: &[u32], frames: usize) -> Vec<i32> {
    let mut symbols = Vec::with_capacity(frames);
    for (symbol, &length) in durations.iter().enumerate() {
        symbols.extend(std::iter::repeat_n(symbol as i32, length as usize));
    }
    symbols.resize(frames, durations.len().saturating_sub(1) as i32);
    symbols
}

/// A time for each row. Times are spread evenly over the batch, so that a small batch also has early and late points.
fn draw_times(rng: &mut ChaCha8Rng, rows: usize) -> Vec<f32> {
    let offset: f32 = rng.random();
    let mut times: Vec<f32> =
        (0..rows).map(|row| ((row as f32 + offset) / rows as f32).fract()).collect();
    for row in (1..rows).rev() {
        times.swap(row, rng.random_range(0..=row));
    }
    times
}

/// What [`Lengths::uploaded`] takes. Longer lengths than there are places are clamped.
fn pack_lengths(arrays: &mut Pack, counts: &[usize], places: usize) {
    let rows = counts.len();
    arrays.floats([rows, places], ones(counts, places));
    arrays.floats([rows], counts.iter().map(|&count| count.min(places) as f32));
}

/// A mask of ones and zeros: `[rows, positions]`.
pub fn mask(counts: &[usize], positions: usize, device: &Device) -> Tensor<2> {
    Lengths::new(counts, positions, device).mask()
}

/// One where a place is real, zero where it is padding.
fn ones(counts: &[usize], places: usize) -> impl Iterator<Item = f32> {
    let real =
        move |&count: &usize| (0..places).map(move |place| if place < count { 1.0 } else { 0.0 });
    counts.iter().flat_map(real)
}

fn weights(counts: &[usize], places: usize, each: usize) -> impl Iterator<Item = f32> {
    let weight = move |count: usize, place| {
        if place < count { 1.0 / (count * each) as f32 } else { 0.0 }
    };
    counts.iter().flat_map(move |&count| (0..places).map(move |place| weight(count, place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_that_completes_the_last_patch_has_the_last_symbol() {
        assert_eq!(symbols_of_frames(&[2, 1, 2], 6), [0, 0, 1, 2, 2, 2]);
        let batch = AlignedBatch {
            rows: 3,
            symbols: 3,
            frames: 6,
            symbol_counts: vec![3, 2, 0],
            frame_counts: vec![5, 3, 0],
            durations: vec![2, 1, 2, 1, 2, 0, 0, 0, 0],
            ..AlignedBatch::default()
        };
        let expected = [[0, 0, 1, 2, 2, 2], [3, 4, 4, 4, 4, 4], [6; 6]].concat();
        assert_eq!(batch.frame_symbols(), expected);
    }
}
