//! Text to mel frames.
//!
//! In: symbols of one text, a language, a reference. Out: normalised frames. The text encoder
//! predicts the duration and the mean frame of each symbol; a few Euler steps of the flow turn
//! those into frames. Next: [`crate::vocoder`].

use crate::host_tensor::{floats, host_floats, ints};
use crate::network::decoder::{DecoderContext, time_features};
use crate::network::ops::Lengths;
use crate::network::size::VoiceConfig;
use crate::network::voice::{Voice, expand};
use crate::train_batch::noise::normal;
use crate::train_batch::symbols_of_frames;
use burn::tensor::{Device, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use tandem_units::Seed;

/// The longest duration of a symbol, in frames: the predictions of an untrained voice must not fill
/// the memory.
pub const LONGEST_SYMBOL: f32 = 120.0;

/// How mel frames are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingOptions {
    /// Euler steps of the flow.
    pub steps: usize,
    /// Scale of the noise that the flow starts from; 0 for none.
    pub temperature: f32,
    /// Divides the durations: 2 is twice as fast.
    pub speed: f32,
    /// Seed of the noise.
    pub seed: Seed,
}

impl Default for SamplingOptions {
    fn default() -> SamplingOptions {
        SamplingOptions { steps: 12, temperature: 0.15, speed: 1.0, seed: Seed(0) }
    }
}

/// A segment of a speaker's speech.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// Normalised: `[frames, bands]`. Empty for no speaker in particular.
    pub mel: Vec<f32>,
    /// The level to speak at, in dB; none for that of the corpus.
    pub level: Option<f32>,
}

/// The predicted frames of one text.
#[derive(Clone, Debug)]
pub struct SynthesizedMel {
    /// Normalised frames: `[frames, bands]`.
    pub mel: Vec<f32>,
    /// Frames of each symbol.
    pub durations: Vec<u32>,
}

/// A voice for inference, without gradients, on one device.
#[derive(Debug)]
pub struct MelSynthesizer<'a> {
    pub voice: &'a Voice,
    pub config: &'a VoiceConfig,
    pub device: &'a Device,
}

impl MelSynthesizer<'_> {
    /// Uses the given durations, or predicts them.
    pub fn synthesize(
        &self,
        symbols: &[i32],
        language: i32,
        reference: &Reference,
        durations: Option<&[u32]>,
        sampling: &SamplingOptions,
    ) -> SynthesizedMel {
        let device = self.device;
        let count = symbols.len();
        let text = Lengths::new(&[count], count, device);
        let condition = self.condition(language, reference);
        let symbols = ints(symbols.to_vec(), [1, count], device);
        let encoded = self.voice.encoder.encode_text(symbols, condition.clone(), &text);
        let durations = match durations {
            Some(durations) => durations.to_vec(),
            None => {
                let logarithms = self.voice.durations(encoded.hidden.clone(), &text);
                frames_of(&host_floats(logarithms), sampling.speed)
            }
        };
        let real: usize = durations.iter().map(|&frames| frames as usize).sum();
        let patch = self.config.patch;
        let frames = real.next_multiple_of(patch);
        let symbol_of_frame = symbols_of_frames(&durations, frames);
        let coarse: Vec<i32> = symbol_of_frame.iter().copied().step_by(patch).collect();
        let positions = coarse.len();
        let context = DecoderContext {
            prior: expand(encoded.prior, ints(symbol_of_frame, [frames], device), [1, frames]),
            hidden: expand(encoded.hidden, ints(coarse, [positions], device), [1, positions]),
            condition,
        };
        let mut mel = host_floats(self.flow(&context, real.div_ceil(patch), sampling));
        mel.truncate(real * self.config.bands);
        SynthesizedMel { mel, durations }
    }

    /// The speaker embedding of a reference, in host memory.
    pub fn speaker_embedding(&self, reference: &Reference) -> Vec<f32> {
        let (frames, real) = self.reference_tensors(reference);
        host_floats(self.voice.encoder.speaker_embedding(frames, real))
    }

    /// The condition of speaker and language, in host memory: what the network knows of both.
    pub fn condition_vector(&self, language: i32, reference: &Reference) -> Vec<f32> {
        host_floats(self.condition(language, reference))
    }

    /// The noise that the flow of a text with this many frames (a multiple of `patch`) starts from, before its scale:
    /// `[frames, bands]`.
    pub fn noise(&self, frames: usize, seed: Seed) -> Vec<f32> {
        normal(&mut ChaCha8Rng::seed_from_u64(seed.0), frames * self.config.bands)
    }

    fn condition(&self, language: i32, reference: &Reference) -> Tensor<2> {
        let (frames, real) = self.reference_tensors(reference);
        let voice = self.voice.encoder.speaker_embedding(frames, real);
        let language = ints(vec![language], [1, 1], self.device);
        self.voice.encoder.condition(voice, language)
    }

    fn reference_tensors(&self, reference: &Reference) -> (Tensor<3>, Tensor<2>) {
        let bands = self.config.bands;
        let real = reference.mel.len() / bands;
        let frames = real.next_multiple_of(4).max(4);
        let mut mel = reference.mel.clone();
        mel.resize(frames * bands, 0.0);
        let mel = floats(mel, [1, frames, bands], self.device);
        (mel, crate::train_batch::mask(&[real], frames, self.device))
    }

    /// Integrates the flow from the prior plus noise to frames, in equal steps.
    fn flow(&self, context: &DecoderContext, real: usize, sampling: &SamplingOptions) -> Tensor<3> {
        let shape = context.prior.dims();
        let positions = Lengths::new(&[real], shape[1] / self.config.patch, self.device);
        let noise = floats(self.noise(shape[1], sampling.seed), shape, self.device);
        let mut point = context.prior.clone() + noise * sampling.temperature;
        let steps = sampling.steps.max(1);
        for step in 0..steps {
            let time = time_features(&[step as f32 / steps as f32]);
            let time = Tensor::from_data(time, self.device);
            let velocity = self.voice.velocity(point.clone(), time, context, &positions);
            point = point + velocity / steps as f32;
        }
        point
    }
}

/// Whole frames of each symbol, at least one.
fn frames_of(logarithms: &[f32], speed: f32) -> Vec<u32> {
    let frames = |log: &f32| (log.exp() / speed).round().clamp(1.0, LONGEST_SYMBOL);
    // NaN becomes one frame: `clamp` keeps NaN, and the conversion to an integer makes it zero.
    logarithms.iter().map(|log| (frames(log) as u32).max(1)).collect()
}
