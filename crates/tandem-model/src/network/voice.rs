//! The whole voice, and what it is taught by.
//!
//! In: a [`DeviceBatch`]. Out: [`Losses`]: how well the text's mean frames, the durations and the flow
//! fit. Every utterance of a batch counts the same, so gradients of several batches add up to
//! those of one large batch. Next: [`crate::optimizer`] and [`crate::synthesis::mel`].

use crate::network::decoder::{Decoder, Guide};
use crate::network::duration::DurationPredictor;
use crate::network::layers::{Compute, Embedding, Init, Linear};
use crate::network::ops::Lengths;
use crate::network::reference_encoder::ReferenceEncoder;
use crate::network::size::VoiceConfig;
use crate::network::text_encoder::{Encoded, TextEncoder};
use crate::train_batch::DeviceBatch;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, activation};
use tandem_units::Seed;

/// Reads text, and aligns it: the part of a voice that runs ahead of training.
#[derive(Module, Debug)]
pub struct Encoder {
    reference: ReferenceEncoder,
    languages: Embedding,
    condition: Linear,
    text: TextEncoder,
}

/// A voice.
#[derive(Module, Debug)]
pub struct Voice {
    /// What reads.
    pub encoder: Encoder,
    durations: DurationPredictor,
    decoder: Decoder,
}

/// What is wrong with a voice, as sums over the utterances of a batch.
#[derive(Clone, Debug)]
pub struct Losses {
    /// Mean frames of symbols against frames.
    pub prior: Tensor<1>,
    /// Frames of symbols.
    pub duration: Tensor<1>,
    /// Velocities of the flow.
    pub flow: Tensor<1>,
}

impl Losses {
    /// All together: what is taught.
    pub fn total(&self) -> Tensor<1> {
        self.prior.clone() + self.duration.clone() + self.flow.clone()
    }

    /// The same numbers without what led to them.
    pub fn inner(self) -> Losses {
        Losses {
            prior: self.prior.inner(),
            duration: self.duration.inner(),
            flow: self.flow.inner(),
        }
    }
}

impl std::ops::Add for Losses {
    type Output = Losses;

    fn add(self, other: Losses) -> Losses {
        Losses {
            prior: self.prior + other.prior,
            duration: self.duration + other.duration,
            flow: self.flow + other.flow,
        }
    }
}

impl Encoder {
    fn new(init: &mut Init, config: &VoiceConfig) -> Encoder {
        let condition = config.text_width;
        Encoder {
            reference: ReferenceEncoder::new(init, config),
            languages: Embedding::new(init, config.languages, config.voice_width),
            condition: Linear::new(init, 2 * config.voice_width, condition),
            text: TextEncoder::new(init, config, condition),
        }
    }

    /// The vector that stands for a speaker. Shapes: `[rows, frames, bands]`, `[rows, frames]`.
    pub fn speaker_embedding(&self, reference: Tensor<3>, mask: Tensor<2>) -> Tensor<2> {
        self.reference.forward(reference, mask)
    }

    /// Speaker and language as one. Shapes: `[rows, voice_width]`, `[rows, 1]`.
    pub fn condition(&self, voice: Tensor<2>, languages: Tensor<2, Int>) -> Tensor<2> {
        let [rows, width] = voice.dims();
        let language = self.languages.forward(languages).reshape([rows, width]);
        activation::silu(self.condition.forward(Tensor::cat(vec![voice, language], 1)))
    }

    /// What the text should sound like. Shapes: `[rows, symbols]`, `[rows, condition]`.
    pub fn encode_text(
        &self,
        symbols: Tensor<2, Int>,
        condition: Tensor<2>,
        text: &Lengths,
    ) -> Encoded {
        self.text.forward(symbols, condition, text)
    }
}

impl Voice {
    /// A voice that has learned nothing. Trainable only on a device with autodiff.
    pub fn new(config: &VoiceConfig, seed: Seed, device: &Device) -> Voice {
        Voice::computing(Compute::Full, config, seed, device)
    }

    /// The same, with matrix products in other numbers.
    pub fn computing(compute: Compute, config: &VoiceConfig, seed: Seed, device: &Device) -> Voice {
        let mut init = Init::new(seed, device).computing(compute);
        Voice {
            encoder: Encoder::new(&mut init, config),
            durations: DurationPredictor::new(&mut init, config),
            decoder: Decoder::new(&mut init, config, config.text_width),
        }
    }

    /// What a batch shows to be wrong.
    pub fn losses(&self, batch: &DeviceBatch) -> Losses {
        let voice =
            self.encoder.speaker_embedding(batch.reference.clone(), batch.reference_mask.clone());
        let condition = self.encoder.condition(voice, batch.languages.clone());
        let encoded =
            self.encoder.encode_text(batch.symbols.clone(), condition.clone(), &batch.text);
        let guesses = self.durations.forward(encoded.hidden.clone(), &batch.text);
        let duration = deviance(guesses, batch.log_durations.clone());
        let duration = (duration * batch.symbol_weight.clone()).sum() * DURATION_SHARE;

        let guide = guide(&encoded, condition, batch);
        let weight = batch.frame_weight.clone();
        let off = (guide.prior.clone() - batch.mel.clone()).square();
        let prior = (off * weight.clone()).sum();

        // From the text's mean frames plus noise straight to the real frames.
        let start = guide.prior.clone().detach() + batch.noise.clone();
        let velocity = batch.mel.clone() - start.clone();
        let point = start + velocity.clone() * batch.times.clone();
        let guess =
            self.decoder.forward(point, batch.time_features.clone(), &guide, &batch.positions);
        let flow = ((guess - velocity).square() * weight).sum();
        Losses { prior, duration, flow }
    }

    /// Frames of each symbol, as a natural logarithm. Shapes: `[rows, symbols, text_width]`.
    pub fn durations(&self, hidden: Tensor<3>, text: &Lengths) -> Tensor<2> {
        self.durations.forward(hidden, text)
    }

    /// The velocity at a point of the flow; shapes as in [`Decoder::forward`].
    pub fn velocity(
        &self,
        point: Tensor<3>,
        time: Tensor<2>,
        guide: &Guide,
        positions: &Lengths,
    ) -> Tensor<3> {
        self.decoder.forward(point, time, guide, positions)
    }
}

/// How much durations count beside frames, which are normalised.
const DURATION_SHARE: f32 = 0.2;

/// How far frames per symbol are off, given both as logarithms: the deviance of counts. Its best
/// guess is the mean, so that the lengths of whole sentences come out right; the squared error of
/// logarithms would make them too short.
fn deviance(guess: Tensor<2>, truth: Tensor<2>) -> Tensor<2> {
    let frames = truth.clone().exp();
    guess.clone().clamp_max(7.0).exp() - frames.clone() - frames * (guess - truth)
}

/// Each symbol's prior and vector, at each of its frames.
fn guide(encoded: &Encoded, condition: Tensor<2>, batch: &DeviceBatch) -> Guide {
    let [rows, frames, _] = batch.mel.dims();
    let positions = batch.positions.positions();
    Guide {
        prior: expand(encoded.prior.clone(), batch.frame_symbols.clone(), [rows, frames]),
        hidden: expand(encoded.hidden.clone(), batch.position_symbols.clone(), [rows, positions]),
        condition,
    }
}

/// The vector of a symbol, wherever that symbol is spoken. Shapes: `[rows, symbols, width]`,
/// `[rows * places]` to `[rows, places, width]`.
pub fn expand(
    per_symbol: Tensor<3>,
    symbols: Tensor<1, Int>,
    [rows, places]: [usize; 2],
) -> Tensor<3> {
    let [_, count, width] = per_symbol.dims();
    let flat = per_symbol.reshape([rows * count, width]);
    flat.select(0, symbols).reshape([rows, places, width])
}
