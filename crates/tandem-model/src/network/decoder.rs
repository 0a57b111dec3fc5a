//! The flow: from the text's mean frames plus noise towards real mel frames.
//!
//! In: a point on the way `[rows, frames, bands]`, the time of that point, the expanded prior and
//! the encoder's vectors. Out: the velocity at that point. Several frames are seen as one
//! position (`patch`). Conditional flow matching after Lipman et al. 2023; the way starts at the
//! prior instead of at pure noise. Next: [`crate::network::voice`].

use crate::network::block::Block;
use crate::network::layers::{Init, Linear};
use crate::network::ops::{self, Lengths};
use crate::network::size::VoiceConfig;
use burn::module::Module;
use burn::tensor::{Tensor, TensorData, activation};

/// Numbers that stand for a time.
const TIME_WIDTH: usize = 64;

/// A point, a time and a text to a velocity.
#[derive(Module, Debug)]
pub struct Decoder {
    enter: Linear,
    hear: Linear,
    time: Linear,
    voice: Linear,
    blocks: Vec<Block>,
    steer: Linear,
    leave: Linear,
    quieten: Linear,
    patch: usize,
}

/// What the decoder reads besides the point.
#[derive(Clone, Debug)]
pub struct Guide {
    /// The prior of each frame: `[rows, frames, bands]`.
    pub prior: Tensor<3>,
    /// The encoder's vector at each position: `[rows, frames / patch, text_width]`.
    pub hidden: Tensor<3>,
    /// The speaker and the language: `[rows, condition]`.
    pub condition: Tensor<2>,
}

impl Decoder {
    /// With the widths of this configuration, steered by a condition of that width.
    pub fn new(init: &mut Init, config: &VoiceConfig, condition: usize) -> Decoder {
        let (width, frame) = (config.decoder_width, config.patch * config.bands);
        let block = |init: &mut Init| Block::new(init, width, config.head_width, width);
        Decoder {
            enter: Linear::new(init, 2 * frame, width),
            hear: Linear::new(init, config.text_width, width),
            time: Linear::new(init, TIME_WIDTH, width),
            voice: Linear::new(init, condition, width),
            blocks: (0..config.decoder_blocks).map(|_| block(init)).collect(),
            steer: Linear::silent(init, width, 2 * width),
            leave: Linear::silent(init, width, frame),
            quieten: Linear::silent(init, width, config.bands),
            patch: config.patch,
        }
    }

    /// Shapes: point `[rows, frames, bands]`, time `[rows, 64]` from [`time_features`], extent
    /// over positions (`frames / patch`).
    pub fn forward(
        &self,
        point: Tensor<3>,
        time: Tensor<2>,
        guide: &Guide,
        lengths: &Lengths,
    ) -> Tensor<3> {
        let [rows, frames, bands] = point.dims();
        let (positions, frame) = (frames / self.patch, self.patch * bands);
        let noise = point.clone() - guide.prior.clone();
        let seen = Tensor::cat(
            vec![
                point.reshape([rows, positions, frame]),
                guide.prior.clone().reshape([rows, positions, frame]),
            ],
            2,
        );
        let mut x = self.enter.forward(seen) + self.hear.forward(guide.hidden.clone());
        let condition = self.time.forward(time) + self.voice.forward(guide.condition.clone());
        let condition = activation::silu(condition);
        for block in &self.blocks {
            x = block.forward(x, condition.clone(), lengths);
        }
        let width = x.dims()[2];
        let quieten = self.quieten.forward(condition.clone()).reshape([rows, 1, bands]) + 0.5;
        let steer = self.steer.forward(condition);
        let (scale, shift) = (steer.clone().narrow(1, 0, width), steer.narrow(1, width, width));
        let velocity = self.leave.forward(ops::norm_film(x, scale, shift));
        // Noise is as wide as a frame and leaves by a way of its own: the blocks, narrower than
        // that, have only speech to find.
        velocity.reshape([rows, frames, bands]) - noise * quieten
    }
}

/// Times in `0..=1` as waves of many lengths: `[rows, 64]`.
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
