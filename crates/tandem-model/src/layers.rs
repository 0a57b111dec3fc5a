//! The small parts every other module is made of.
//!
//! In: a seed and a device. Out: [`Linear`], [`Embedding`] and [`neighbours`]. Weights are drawn
//! on the host, so that the same seed gives the same weights on every device. Next:
//! [`crate::block`].

use crate::ops;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData, module};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tandem_units::Seed;

/// Draws first weights.
pub struct Init<'a> {
    rng: ChaCha8Rng,
    /// Where they go.
    pub device: &'a Device,
}

impl<'a> Init<'a> {
    /// Weights of this seed, on this device.
    pub fn new(seed: Seed, device: &'a Device) -> Init<'a> {
        Init { rng: ChaCha8Rng::seed_from_u64(seed.0), device }
    }

    /// Uniform in `-bound..bound`.
    fn uniform<const D: usize>(&mut self, shape: [usize; D], bound: f32) -> Param<Tensor<D>> {
        let count = shape.iter().product();
        let draw = |_| (self.rng.random::<f32>() * 2.0 - 1.0) * bound;
        let values: Vec<f32> = (0..count).map(draw).collect();
        Param::from_data(TensorData::new(values, shape), self.device)
    }

    fn zeros<const D: usize>(&self, shape: [usize; D]) -> Param<Tensor<D>> {
        Param::from_data(TensorData::zeros::<f32, _>(shape), self.device)
    }
}

/// `input x weight + bias`.
#[derive(Module, Debug)]
pub struct Linear {
    /// `[input, output]`.
    pub weight: Param<Tensor<2>>,
    /// `[output]`.
    pub bias: Param<Tensor<1>>,
}

impl Linear {
    /// Keeps the variance of its input.
    pub fn new(init: &mut Init, input: usize, output: usize) -> Linear {
        let bound = (3.0 / input as f32).sqrt();
        Linear { weight: init.uniform([input, output], bound), bias: init.zeros([output]) }
    }

    /// Gives zero until it has learned: what it steers starts out as if it were not there.
    pub fn silent(init: &mut Init, input: usize, output: usize) -> Linear {
        Linear { weight: init.zeros([input, output]), bias: init.zeros([output]) }
    }

    /// Shapes: `[.., input]` to `[.., output]`.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        module::linear(input, self.weight.val(), Some(self.bias.val()))
    }
}

impl Linear {
    /// The same, then SiLU.
    pub fn forward_silu(&self, input: Tensor<3>) -> Tensor<3> {
        ops::linear_silu(input, self.weight.val(), self.bias.val())
    }
}

/// One learned vector per number.
#[derive(Module, Debug)]
pub struct Embedding {
    /// `[count, width]`.
    pub table: Param<Tensor<2>>,
}

impl Embedding {
    /// So many vectors of so many numbers.
    pub fn new(init: &mut Init, count: usize, width: usize) -> Embedding {
        Embedding { table: init.uniform([count, width], 1.0) }
    }

    /// Shapes: `[rows, places]` to `[rows, places, width]`.
    pub fn forward(&self, numbers: Tensor<2, Int>) -> Tensor<3> {
        module::embedding(self.table.val(), numbers)
    }
}

/// Each position beside its neighbours: `[rows, positions, width]` to
/// `[rows, positions, 3 * width]`. With a [`Linear`] behind it, a convolution over three
/// positions that runs as one matrix product. Positions behind a row's end must be zero.
pub fn neighbours(x: Tensor<3>) -> Tensor<3> {
    let [rows, positions, width] = x.dims();
    let edge = Tensor::<3>::zeros([rows, 1, width], &x.device());
    let left = x.clone().narrow(1, 0, positions - 1);
    let right = x.clone().narrow(1, 1, positions - 1);
    let before = Tensor::cat(vec![edge.clone(), left], 1);
    let after = Tensor::cat(vec![right, edge], 1);
    Tensor::cat(vec![before, x, after], 2)
}
