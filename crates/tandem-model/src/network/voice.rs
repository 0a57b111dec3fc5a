//! The whole voice and its losses.
//!
//! In: a [`DeviceBatch`]. Out: [`Losses`] of the prior, the durations and the flow. Every utterance
//! of a batch has the same weight, so gradients of several batches add up to those of one large
//! batch. Next: [`crate::optimizer`] and [`crate::synthesis::mel`].

use crate::network::decoder::{Decoder, DecoderContext};
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

/// Text, reference and language encoders: the part of a voice that the aligner needs.
#[derive(Module, Debug)]
pub struct Encoder {
    reference: ReferenceEncoder,
    languages: Embedding,
    condition: Linear,
    text: TextEncoder,
}

/// The text-to-mel model.
#[derive(Module, Debug)]
pub struct Voice {
    pub encoder: Encoder,
    durations: DurationPredictor,
    decoder: Decoder,
}

/// The losses of a batch, summed over its utterances.
#[derive(Clone, Debug)]
pub struct Losses {
    /// Squared error of the prior.
    pub prior: Tensor<1>,
    /// Deviance of the durations.
    pub duration: Tensor<1>,
    /// Squared error of the velocity.
    pub flow: Tensor<1>,
}

impl Losses {
    /// The training loss.
    pub fn total(&self) -> Tensor<1> {
        self.prior.clone() + self.duration.clone() + self.flow.clone()
    }

    /// Their sum and each of them, times this share: `[1]` each.
    pub fn means(&self, share: Tensor<1>) -> [Tensor<1>; 4] {
        let [prior, duration, flow] =
            [&self.prior, &self.duration, &self.flow].map(|loss| loss.clone() * share.clone());
        [prior.clone() + duration.clone() + flow.clone(), prior, duration, flow]
    }

    /// The values without the autodiff graph.
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

    /// Shapes: `[rows, frames, bands]`, `[rows, frames]`.
    pub fn speaker_embedding(&self, reference: Tensor<3>, mask: Tensor<2>) -> Tensor<2> {
        self.reference.forward(reference, mask)
    }

    /// Combines speaker and language. Shapes: `[rows, voice_width]`, `[rows, 1]`.
    pub fn condition(&self, voice: Tensor<2>, languages: Tensor<2, Int>) -> Tensor<2> {
        let [rows, width] = voice.dims();
        let language = self.languages.forward(languages).reshape([rows, width]);
        activation::silu(self.condition.forward(Tensor::cat(vec![voice, language], 1)))
    }

    /// The prior and hidden vectors of a text. Shapes: `[rows, symbols]`, `[rows, condition]`.
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
    /// A new voice. Trainable only on a device with autodiff.
    pub fn new(config: &VoiceConfig, seed: Seed, device: &Device) -> Voice {
        Voice::with_compute(Compute::Full, config, seed, device)
    }

    /// A new voice with this precision of matrix products.
    pub fn with_compute(
        compute: Compute,
        config: &VoiceConfig,
        seed: Seed,
        device: &Device,
    ) -> Voice {
        let mut init = Init::new(seed, device).with_compute(compute);
        Voice {
            encoder: Encoder::new(&mut init, config),
            durations: DurationPredictor::new(&mut init, config),
            decoder: Decoder::new(&mut init, config, config.text_width),
        }
    }

    /// The losses of a batch.
    pub fn losses(&self, batch: &DeviceBatch) -> Losses {
        let voice =
            self.encoder.speaker_embedding(batch.reference.clone(), batch.reference_mask.clone());
        let condition = self.encoder.condition(voice, batch.languages.clone());
        let encoded =
            self.encoder.encode_text(batch.symbols.clone(), condition.clone(), &batch.text);
        let predicted = self.durations.forward(encoded.hidden.clone(), &batch.text);
        let duration = deviance(predicted, batch.log_durations.clone());
        let duration = (duration * batch.symbol_weight.clone()).sum() * DURATION_WEIGHT;

        let context = context(&encoded, condition, batch);
        let weight = batch.frame_weight.clone();
        let error = (context.prior.clone() - batch.mel.clone()).square();
        let prior = (error * weight.clone()).sum();

        // The flow is a straight line from the prior plus noise to the real frames. Only its start
        // point is detached: the velocity to predict does not depend on the encoder. The decoder
        // also gets the prior and the hidden vectors as inputs, and through those the flow loss does
        // train the encoder.
        let start = context.prior.clone().detach() + batch.noise.clone();
        let velocity = batch.mel.clone() - start.clone();
        let point = start + velocity.clone() * batch.times.clone();
        let predicted =
            self.decoder.forward(point, batch.time_features.clone(), &context, &batch.positions);
        let flow = ((predicted - velocity).square() * weight).sum();
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
        context: &DecoderContext,
        positions: &Lengths,
    ) -> Tensor<3> {
        self.decoder.forward(point, time, context, positions)
    }
}

/// The weight of the duration loss relative to the losses of normalised frames.
const DURATION_WEIGHT: f32 = 0.2;

/// Above this logarithm, which no symbol reaches (1,096 frames), the deviance grows evenly instead of exponentially.
const EVEN_ABOVE: f32 = 7.0;

/// The Poisson deviance of frames per symbol, both given as logarithms. It is minimal at the mean, so
/// that the lengths of whole sentences are right; the squared error of logarithms would make them too
/// short. Far above the truth it is continued by its tangent: it stays finite, and its gradient points to the truth
/// everywhere.
fn deviance(predicted: Tensor<2>, truth: Tensor<2>) -> Tensor<2> {
    let frames = truth.clone().exp();
    // Always above the truth: a tangent there is no minimum.
    let bend = (truth.clone() + 1.0).clamp_min(EVEN_ABOVE);
    let above = (predicted.clone() - bend.clone()).clamp_min(0.0);
    let grown = (predicted.clone() - above.clone()).exp() + above * bend.exp();
    grown - frames.clone() - frames * (predicted - truth)
}

/// Expands the prior and the hidden vectors of symbols to their frames.
fn context(encoded: &Encoded, condition: Tensor<2>, batch: &DeviceBatch) -> DecoderContext {
    let [rows, frames, _] = batch.mel.dims();
    let positions = batch.positions.positions();
    DecoderContext {
        prior: expand(encoded.prior.clone(), batch.frame_symbols.clone(), [rows, frames]),
        hidden: expand(encoded.hidden.clone(), batch.position_symbols.clone(), [rows, positions]),
        condition,
    }
}

/// The vector of its symbol for each position. Shapes: `[rows, symbols, width]`,
/// `[rows * positions]` to `[rows, positions, width]`.
pub fn expand(
    per_symbol: Tensor<3>,
    symbols: Tensor<1, Int>,
    [rows, positions]: [usize; 2],
) -> Tensor<3> {
    let [_, count, width] = per_symbol.dims();
    let flat = per_symbol.reshape([rows * count, width]);
    flat.select(0, symbols).reshape([rows, positions, width])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loss and gradient of one prediction.
    fn at(predicted: f32, truth: f32) -> (f32, f32) {
        let device = Device::flex().autodiff();
        let tensor = |value: f32| Tensor::<2>::from_floats([[value]], &device);
        let predicted = tensor(predicted).require_grad();
        let loss = deviance(predicted.clone(), tensor(truth)).sum();
        let mut gradients = loss.backward();
        let gradient = predicted.grad_remove(&mut gradients).expect("a gradient");
        (loss.inner().into_scalar::<f32>(), gradient.into_scalar::<f32>())
    }

    /// The deviance in double precision, without the tangent.
    fn poisson(predicted: f64, truth: f64) -> f64 {
        predicted.exp() - truth.exp() - truth.exp() * (predicted - truth)
    }

    #[test]
    fn the_duration_loss_is_the_poisson_deviance_in_its_normal_range() {
        for truth in [0.0, 1.1, 3.0, 5.0] {
            for predicted in [-3.0, 0.0, 0.7, 2.5, 4.0, 6.9] {
                let (loss, gradient) = at(predicted as f32, truth as f32);
                let near = |found: f32, expected: f64| {
                    (f64::from(found) - expected).abs() < 1e-3 * expected.abs().max(1.0)
                };
                assert!(near(loss, poisson(predicted, truth)), "{predicted} {truth}: {loss}");
                let step = 1e-4;
                let difference =
                    poisson(predicted + step, truth) - poisson(predicted - step, truth);
                let slope = difference / (2.0 * step);
                assert!(near(gradient, slope), "{predicted} {truth}: {gradient} {slope}");
            }
        }
    }

    #[test]
    fn the_duration_loss_pulls_every_prediction_to_the_truth() {
        // The last two are longer than the bend: a symbol of minutes of silence.
        for truth in [0.0, 3.0, 6.9, 7.0, 7.5, 10.0] {
            for far in [0.01, 0.5, 1.5, 4.0, 20.0, 80.0, 200.0, 1e4] {
                let (above, up) = at(truth + far, truth);
                let (below, down) = at(truth - far, truth);
                assert!(up > 0.0, "{far} above {truth}: {up}");
                assert!(down < 0.0, "{far} below {truth}: {down}");
                assert!(up.is_finite() && above.is_finite() && below.is_finite());
                assert!(far < 0.5 || (above > 0.0 && below > 0.0), "{far}: {above} {below}");
            }
        }
    }
}
