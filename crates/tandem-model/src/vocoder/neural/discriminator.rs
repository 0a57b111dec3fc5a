//! The discriminator of adversarial training: tells predicted magnitudes from recorded ones.
//!
//! In: log-magnitudes of frames. Out: a score of every frame and part of the spectrum: near one for a recording, near zero
//! for a prediction (Mao and others 2017, "Least squares generative adversarial networks"). The losses of
//! [`super::losses`] alone make the network predict what is likely on average, which is smoother than any recording.
//! Used only in training; no checkpoint of a voice has it.

use super::config::VocoderConfig;
use super::losses::{LOUDEST, QUIETEST};
use super::network::{Block, Norm};
use crate::network::layers::{Init, Linear};
use crate::network::ops::neighbours;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use tandem_units::Seed;

/// Parts of the spectrum, each with a network of its own.
const PARTS: usize = 4;
const WIDTH: usize = 64;
const BLOCKS: usize = 2;

/// One network for each part of the spectrum.
#[derive(Module, Debug)]
pub struct Discriminator {
    parts: Vec<PartNetwork>,
}

#[derive(Module, Debug)]
struct PartNetwork {
    input: Linear,
    first_norm: Norm,
    blocks: Vec<Block>,
    last_norm: Norm,
    head: Linear,
}

impl Discriminator {
    /// A new network. Trainable only on a device with autodiff.
    pub fn new(config: &VocoderConfig, seed: Seed, device: &Device) -> Discriminator {
        let init = &mut Init::new(seed, device);
        let part = |number: usize| PartNetwork {
            input: Linear::new(init, 3 * part_of(config.bins(), number).1, WIDTH),
            first_norm: Norm::new(init, WIDTH),
            blocks: (0..BLOCKS).map(|_| Block::new(init, WIDTH)).collect(),
            last_norm: Norm::new(init, WIDTH),
            head: Linear::new(init, WIDTH, 1),
        };
        Discriminator { parts: (0..PARTS).map(part).collect() }
    }

    /// Shapes: `[segments, frames, bins]` to `[segments, frames, PARTS]`.
    pub fn scores(&self, log_magnitudes: Tensor<3>) -> Tensor<3> {
        let bins = log_magnitudes.dims()[2];
        let middle = (LOUDEST + QUIETEST) / 2.0;
        let normal = (log_magnitudes - middle) / (LOUDEST - middle) * 2.0;
        let score = |(number, part): (usize, &PartNetwork)| {
            let (first, count) = part_of(bins, number);
            part.score(normal.clone().narrow(2, first, count))
        };
        Tensor::cat(self.parts.iter().enumerate().map(score).collect(), 2)
    }
}

impl PartNetwork {
    fn score(&self, x: Tensor<3>) -> Tensor<3> {
        let x = self.first_norm.forward(self.input.forward(neighbours(x, None)));
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x));
        self.head.forward(self.last_norm.forward(x))
    }
}

/// The first bin of a part, and the number of its bins.
fn part_of(bins: usize, number: usize) -> (usize, usize) {
    let edge = |number: usize| number * bins / PARTS;
    (edge(number), edge(number + 1) - edge(number))
}

/// What the discriminator lowers, summed over the segments. Shapes: those of [`Discriminator::scores`].
pub fn discriminator_loss(recorded: Tensor<3>, predicted: Tensor<3>) -> Tensor<1> {
    distance_to(recorded, 1.0) + distance_to(predicted, 0.0)
}

/// What the vocoder lowers, summed over the segments: how far its frames are from passing as recorded.
pub fn generator_loss(predicted: Tensor<3>) -> Tensor<1> {
    distance_to(predicted, 1.0)
}

fn distance_to(scores: Tensor<3>, wanted: f32) -> Tensor<1> {
    let [_, frames, parts] = scores.dims();
    let off = scores - wanted;
    (off.clone() * off).sum() / (frames * parts) as f32
}
