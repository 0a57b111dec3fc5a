//! Text to mel frames.
//!
//! In: symbols of one text, a language, a voice. Out: normalised frames. The text says how long
//! each symbol is and what it sounds like in the mean; a few Euler steps of the flow make frames
//! of that. Next: [`crate::vocoder`].

use crate::network::decoder::{Guide, time_features};
use crate::network::ops::Lengths;
use crate::network::size::VoiceConfig;
use crate::network::voice::{Voice, expand};
use crate::train_batch::normal;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use tandem_units::Seed;

/// The longest a symbol may be spoken, in frames: what a voice that has learned nothing may ask
/// for must not fill the memory.
const LONGEST_SYMBOL: f32 = 120.0;

/// How a text is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingOptions {
    /// Steps of the flow.
    pub steps: usize,
    /// How much noise the flow starts from; 0: none.
    pub temperature: f32,
    /// 2: twice as fast.
    pub speed: f32,
    /// What the noise is drawn from.
    pub seed: Seed,
}

impl Default for SamplingOptions {
    fn default() -> SamplingOptions {
        SamplingOptions { steps: 8, temperature: 0.3, speed: 1.0, seed: Seed(0) }
    }
}

/// A stretch of somebody's speech, normalised: `[frames, bands]`.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// Its frames; none: nobody in particular.
    pub mel: Vec<f32>,
}

/// What was spoken.
#[derive(Clone, Debug)]
pub struct Spoken {
    /// Normalised frames: `[frames, bands]`.
    pub mel: Vec<f32>,
    /// Frames of each symbol.
    pub durations: Vec<u32>,
}

/// A voice that speaks, without gradients, on one device.
#[derive(Debug)]
pub struct Speaker<'a> {
    /// Its weights.
    pub voice: &'a Voice,
    /// Its shape.
    pub config: &'a VoiceConfig,
    /// Where it computes.
    pub device: &'a Device,
}

impl Speaker<'_> {
    /// Speaks a text with the durations it finds right, or with these.
    pub fn speak(
        &self,
        symbols: &[i32],
        language: i32,
        reference: &Reference,
        durations: Option<&[u32]>,
        sampling: &SamplingOptions,
    ) -> Spoken {
        let device = self.device;
        let count = symbols.len();
        let text = Lengths::new(&[count], count, device);
        let condition = self.condition(language, reference);
        let symbols = TensorData::new(symbols.to_vec(), [1, count]);
        let symbols = Tensor::<2, Int>::from_data(symbols, device);
        let encoded = self.voice.encoder.encode_text(symbols, condition.clone(), &text);
        let durations = match durations {
            Some(durations) => durations.to_vec(),
            None => {
                let logarithms = self.voice.durations(encoded.hidden.clone(), &text);
                frames_of(&numbers(logarithms), sampling.speed)
            }
        };
        let real: usize = durations.iter().map(|&frames| frames as usize).sum();
        let patch = self.config.patch;
        let frames = real.next_multiple_of(patch);
        let mut places: Vec<i32> = Vec::with_capacity(frames);
        for (symbol, &length) in durations.iter().enumerate() {
            places.extend(std::iter::repeat_n(symbol as i32, length as usize));
        }
        places.resize(frames, count as i32 - 1);
        let coarse: Vec<i32> = places.iter().copied().step_by(patch).collect();
        let positions = coarse.len();
        let guide = Guide {
            prior: expand(encoded.prior, ints(places, device), [1, frames]),
            hidden: expand(encoded.hidden, ints(coarse, device), [1, positions]),
            condition,
        };
        let mut mel = numbers(self.flow(&guide, real.div_ceil(patch), sampling));
        mel.truncate(real * self.config.bands);
        Spoken { mel, durations }
    }

    /// The vector that stands for a voice, on the host.
    pub fn voice_vector(&self, reference: &Reference) -> Vec<f32> {
        let (frames, real) = self.reference_tensors(reference);
        numbers(self.voice.encoder.speaker_embedding(frames, real))
    }

    fn condition(&self, language: i32, reference: &Reference) -> Tensor<2> {
        let (frames, real) = self.reference_tensors(reference);
        let voice = self.voice.encoder.speaker_embedding(frames, real);
        let language = Tensor::from_data(TensorData::new(vec![language], [1, 1]), self.device);
        self.voice.encoder.condition(voice, language)
    }

    fn reference_tensors(&self, reference: &Reference) -> (Tensor<3>, Tensor<2>) {
        let bands = self.config.bands;
        let real = reference.mel.len() / bands;
        let frames = real.next_multiple_of(4).max(4);
        let mut mel = reference.mel.clone();
        mel.resize(frames * bands, 0.0);
        let mel = Tensor::from_data(TensorData::new(mel, [1, frames, bands]), self.device);
        (mel, crate::train_batch::mask(&[real], frames, self.device))
    }

    /// From the prior plus noise to frames, in equal steps.
    fn flow(&self, guide: &Guide, real: usize, sampling: &SamplingOptions) -> Tensor<3> {
        let shape = guide.prior.dims();
        let positions = Lengths::new(&[real], shape[1] / self.config.patch, self.device);
        let mut rng = ChaCha8Rng::seed_from_u64(sampling.seed.0);
        let noise = normal(&mut rng, shape.iter().product());
        let noise: Tensor<3> = Tensor::from_data(TensorData::new(noise, shape), self.device);
        let mut point = guide.prior.clone() + noise * sampling.temperature;
        let steps = sampling.steps.max(1);
        for step in 0..steps {
            let time = time_features(&[step as f32 / steps as f32]);
            let time = Tensor::from_data(time, self.device);
            let velocity = self.voice.velocity(point.clone(), time, guide, &positions);
            point = point + velocity / steps as f32;
        }
        point
    }
}

/// Whole frames of each symbol, at least one.
fn frames_of(logarithms: &[f32], speed: f32) -> Vec<u32> {
    let frames = |log: &f32| (log.exp() / speed).round().clamp(1.0, LONGEST_SYMBOL);
    // A number that is none becomes one frame: `clamp` keeps it, the conversion makes it zero.
    logarithms.iter().map(|log| (frames(log) as u32).max(1)).collect()
}

fn ints(values: Vec<i32>, device: &Device) -> Tensor<1, Int> {
    let count = values.len();
    Tensor::from_data(TensorData::new(values, [count]), device)
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as::<f32>().expect("floats can be read as 32 bits")
}
