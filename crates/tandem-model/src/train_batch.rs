//! A batch with everything that a training step needs: aligned text and frames, a reference segment of
//! each speaker, noise and times of the flow.
//!
//! In: arrays on the host. Out: [`DeviceBatch`], tensors on the model device. Random values are drawn
//! on the host from the seed of the batch, so that a batch is the same on every device and after a
//! resume. Next: [`crate::network::voice`].

use crate::host_tensor::{floats, ints};
use crate::network::decoder::time_features;
use crate::network::ops::Lengths;
use crate::network::size::VoiceConfig;
use burn::tensor::{Device, Int, Tensor};
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

impl DeviceBatch {
    /// The same batch on another device.
    pub fn to_device(self, device: &Device) -> DeviceBatch {
        let moved = |lengths: Lengths| Lengths::new(lengths.real(), lengths.positions(), device);
        DeviceBatch {
            symbols: self.symbols.to_device(device),
            languages: self.languages.to_device(device),
            text: moved(self.text),
            positions: moved(self.positions),
            log_durations: self.log_durations.to_device(device),
            symbol_weight: self.symbol_weight.to_device(device),
            frame_symbols: self.frame_symbols.to_device(device),
            position_symbols: self.position_symbols.to_device(device),
            mel: self.mel.to_device(device),
            frame_weight: self.frame_weight.to_device(device),
            reference: self.reference.to_device(device),
            reference_mask: self.reference_mask.to_device(device),
            noise: self.noise.to_device(device),
            times: self.times.to_device(device),
            time_features: self.time_features.to_device(device),
            utterances: self.utterances,
        }
    }

    /// The device memory of its tensors.
    pub fn size(&self) -> Bytes {
        let [rows, frames, bands] = self.mel.dims();
        let symbols = self.symbols.dims()[1];
        let [_, reference, _] = self.reference.dims();
        let positions = self.positions.positions();
        let per_frame = 2 * bands + 2;
        let per_row = frames * per_frame + 4 * symbols + reference * (bands + 1) + 2 * positions;
        Bytes(4 * (rows * per_row) as u64)
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

    /// Uploads it to a device.
    pub fn to_device(&self, device: &Device) -> DeviceBatch {
        let (rows, frames, bands) = (self.rows, self.frames, self.bands);
        let positions = frames / self.patch;
        let (noise, times) = self.draw();
        let patches: Vec<usize> =
            self.frame_counts.iter().map(|count| count.div_ceil(self.patch)).collect();
        let frame_symbols = self.frame_symbols();
        let position_symbols = frame_symbols.iter().copied().step_by(self.patch).collect();
        let reference_shape = [rows, self.reference_frames, bands];
        DeviceBatch {
            symbols: ints(self.symbol_ids.clone(), [rows, self.symbols], device),
            languages: ints(self.languages.clone(), [rows, 1], device),
            text: Lengths::new(&self.symbol_counts, self.symbols, device),
            positions: Lengths::new(&patches, positions, device),
            log_durations: floats(self.log_durations(), [rows, self.symbols], device),
            symbol_weight: floats(
                weights(&self.symbol_counts, self.symbols, 1),
                [rows, self.symbols],
                device,
            ),
            frame_symbols: ints(frame_symbols, [rows * frames], device),
            position_symbols: ints(position_symbols, [rows * positions], device),
            mel: floats(self.mel.clone(), [rows, frames, bands], device),
            frame_weight: floats(
                weights(&self.frame_counts, frames, bands),
                [rows, frames, 1],
                device,
            ),
            reference: floats(self.reference.clone(), reference_shape, device),
            reference_mask: mask(&self.reference_counts, self.reference_frames, device),
            noise: floats(noise, [rows, frames, bands], device),
            time_features: Tensor::from_data(time_features(&times), device),
            times: floats(times, [rows, 1, 1], device),
            utterances: self.symbol_counts.iter().filter(|&&count| count > 0).count(),
        }
    }

    /// The noise, and a time for each row. Times are spread evenly over the batch, so that a small
    /// batch also has early and late points.
    fn draw(&self) -> (Vec<f32>, Vec<f32>) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed.0);
        let offset: f32 = rng.random();
        let mut times: Vec<f32> =
            (0..self.rows).map(|row| ((row as f32 + offset) / self.rows as f32).fract()).collect();
        for row in (1..self.rows).rev() {
            times.swap(row, rng.random_range(0..=row));
        }
        (normal(&mut rng, self.rows * self.frames * self.bands), times)
    }

    fn log_durations(&self) -> Vec<f32> {
        self.durations.iter().map(|&frames| (frames.max(1) as f32).ln()).collect()
    }

    /// Padding frames get the first symbol of their row. The value does not matter, but it must be a
    /// valid index.
    fn frame_symbols(&self) -> Vec<i32> {
        let mut places = Vec::with_capacity(self.rows * self.frames);
        for (row, durations) in self.durations.chunks_exact(self.symbols).enumerate() {
            let first = (row * self.symbols) as i32;
            for (symbol, &frames) in durations.iter().enumerate() {
                places.extend(std::iter::repeat_n(first + symbol as i32, frames as usize));
            }
            places.resize((row + 1) * self.frames, first);
        }
        places
    }
}

/// Standard normal values (Box-Muller).
pub fn normal(rng: &mut ChaCha8Rng, count: usize) -> Vec<f32> {
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        let (radius, angle): (f32, f32) = (rng.random(), rng.random());
        let radius = (-2.0 * (1.0 - radius).ln()).sqrt();
        let (sin, cos) = (std::f32::consts::TAU * angle).sin_cos();
        values.extend([radius * cos, radius * sin]);
    }
    values.truncate(count);
    values
}

/// A mask of ones and zeros: `[rows, positions]`.
pub fn mask(counts: &[usize], positions: usize, device: &Device) -> Tensor<2> {
    Lengths::new(counts, positions, device).mask()
}

fn weights(counts: &[usize], places: usize, each: usize) -> Vec<f32> {
    let weight = |count: usize, place| {
        if place < count { 1.0 / (count * each) as f32 } else { 0.0 }
    };
    counts.iter().flat_map(|&count| (0..places).map(move |place| weight(count, place))).collect()
}
