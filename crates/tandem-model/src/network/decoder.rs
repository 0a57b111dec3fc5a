//! The decoder: conditional flow matching from the prior plus noise to mel frames.
//!
//! In: a point of the flow `[rows, frames, bands]`, its time, the expanded prior and the text
//! encoder's vectors. Out: the velocity at that point. `patch` frames form one position. The method
//! is that of Lipman et al. 2023, except that the flow starts at the prior plus noise instead of
//! pure noise. Next: [`crate::network::voice`].

use crate::network::block::Block;
use crate::network::layers::{Init, Linear};
use crate::network::ops::{Film, Lengths};
use crate::network::size::VoiceConfig;
use burn::module::Module;
use burn::tensor::{FloatDType, Tensor, TensorData, activation};

/// Width of the sinusoidal time embedding.
const TIME_WIDTH: usize = 64;

/// Predicts the velocity of the flow.
#[derive(Module, Debug)]
pub struct Decoder {
    input: Linear,
    text: Linear,
    time: Linear,
    condition: Linear,
    blocks: Vec<Block>,
    film: Linear,
    output: Linear,
    noise_scale: Linear,
    patch: usize,
}

/// The conditioning inputs of the decoder.
#[derive(Clone, Debug)]
pub struct DecoderContext {
    /// The prior of each frame: `[rows, frames, bands]`.
    pub prior: Tensor<3>,
    /// The text encoder's vector at each position: `[rows, frames / patch, text_width]`.
    pub hidden: Tensor<3>,
    /// The speaker and the language: `[rows, condition]`.
    pub condition: Tensor<2>,
}

impl Decoder {
    pub fn new(init: &mut Init, config: &VoiceConfig, condition: usize) -> Decoder {
        let (width, frame) = (config.decoder_width, config.patch * config.bands);
        let block = |init: &mut Init| Block::new(init, width, config.head_width, width);
        Decoder {
            input: Linear::new(init, 2 * frame, width),
            text: Linear::new(init, config.text_width, width),
            time: Linear::new(init, TIME_WIDTH, width),
            condition: Linear::new(init, condition, width),
            blocks: (0..config.decoder_blocks).map(|_| block(init)).collect(),
            film: Linear::zeros(init, width, 2 * width),
            output: Linear::zeros(init, width, frame),
            noise_scale: Linear::zeros(init, width, config.bands),
            patch: config.patch,
        }
    }

    /// Shapes: point `[rows, frames, bands]`, time `[rows, 64]` from [`time_features`], lengths
    /// in positions (`frames / patch`).
    pub fn forward(
        &self,
        point: Tensor<3>,
        time: Tensor<2>,
        context: &DecoderContext,
        lengths: &Lengths,
    ) -> Tensor<3> {
        let [rows, frames, bands] = point.dims();
        let (positions, frame) = (frames / self.patch, self.patch * bands);
        let noise = point.clone() - context.prior.clone();
        let input = Tensor::cat(
            vec![
                point.reshape([rows, positions, frame]),
                context.prior.clone().reshape([rows, positions, frame]),
            ],
            2,
        );
        let mut x = self.input.forward(input) + self.text.forward(context.hidden.clone());
        let condition = self.time.forward(time) + self.condition.forward(context.condition.clone());
        let condition = activation::silu(condition);
        for block in &self.blocks {
            x = block.forward(x, condition.clone(), lengths);
        }
        let noise_scale =
            self.noise_scale.forward(condition.clone()).reshape([rows, 1, bands]) + 0.5;
        let film = Film::new(self.film.forward(condition), 2);
        let velocity = self.output.forward(film.norm(x, 0)).cast(FloatDType::F32);
        // The noise of a patch has more values than a position is wide, so the blocks could not pass
        // it through. It is removed directly, and the blocks only predict speech.
        velocity.reshape([rows, frames, bands]) - noise * noise_scale
    }
}

/// Sinusoidal embeddings of times in `0..=1`: `[rows, 64]`.
pub fn time_features(times: &[f32]) -> TensorData {
    let half = TIME_WIDTH / 2;
    let mut waves = Vec::with_capacity(times.len() * TIME_WIDTH);
    for &time in times {
        let angle = |wave: usize| 1000.0 * time * 10_000f32.powf(-(wave as f32) / half as f32);
        waves.extend((0..half).map(|wave| angle(wave).sin()));
        waves.extend((0..half).map(|wave| angle(wave).cos()));
    }
    TensorData::new(waves, [times.len(), TIME_WIDTH])
}
