//! The layers that every other module is built from.
//!
//! In: a seed and a device. Out: [`Linear`] and [`Embedding`]. Initial weights are
//! drawn on the host, so that the same seed gives the same weights on every device. Next:
//! [`crate::network::block`].

use crate::network::ops::{self, Lengths};
use burn::module::{Module, Param};
use burn::tensor::{Device, FloatDType, Int, Tensor, TensorData, module};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tandem_units::Seed;

/// The precision of products with weights, and of what passes between the operations on sequences. The optimizer keeps
/// weights in 32 bits in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compute {
    /// 32-bit floats.
    #[default]
    Full,
    Bf16,
    F16,
}

impl Compute {
    /// The type, if it is not that of the weights.
    pub fn reduced_dtype(self) -> Option<FloatDType> {
        match self {
            Compute::Full => None,
            Compute::Bf16 => Some(FloatDType::BF16),
            Compute::F16 => Some(FloatDType::F16),
        }
    }

    pub fn is_supported_by(self, device: &Device) -> bool {
        self.reduced_dtype().is_none_or(|dtype| device.supports_dtype(dtype))
    }

    /// Whether losses must be scaled, or small gradients are rounded to zero.
    pub fn scales_losses(self) -> bool {
        self == Compute::F16
    }
}

/// Draws initial weights.
pub struct Init<'a> {
    rng: ChaCha8Rng,
    pub device: &'a Device,
    compute: Compute,
}

impl<'a> Init<'a> {
    pub fn new(seed: Seed, device: &'a Device) -> Init<'a> {
        Init { rng: ChaCha8Rng::seed_from_u64(seed.0), device, compute: Compute::Full }
    }

    /// The same weights with another precision of matrix products.
    pub fn with_compute(self, compute: Compute) -> Init<'a> {
        Init { compute, ..self }
    }

    /// Uniform in `-bound..bound`.
    pub(crate) fn uniform<const D: usize>(
        &mut self,
        shape: [usize; D],
        bound: f32,
    ) -> Param<Tensor<D>> {
        let count = shape.iter().product();
        let draw = |_| (self.rng.random::<f32>() * 2.0 - 1.0) * bound;
        let values: Vec<f32> = (0..count).map(draw).collect();
        Param::from_data(TensorData::new(values, shape), self.device)
    }

    pub(crate) fn zeros<const D: usize>(&self, shape: [usize; D]) -> Param<Tensor<D>> {
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
    #[module(skip)]
    compute: Compute,
}

impl Linear {
    /// Initialized so that the output has the variance of the input.
    pub fn new(init: &mut Init, input: usize, output: usize) -> Linear {
        let bound = (3.0 / input as f32).sqrt();
        let (weight, bias) = (init.uniform([input, output], bound), init.zeros([output]));
        Linear { weight, bias, compute: init.compute }
    }

    /// Initialized to zero, so that it has no effect at the start of training.
    pub fn zeros(init: &mut Init, input: usize, output: usize) -> Linear {
        let (weight, bias) = (init.zeros([input, output]), init.zeros([output]));
        Linear { weight, bias, compute: init.compute }
    }

    /// Shapes: `[.., input]` to `[.., output]`. A sequence `[rows, positions, output]` has the type of [`Linear::rounded`],
    /// and anything else 32 bits.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        // The fused kernels are for sequences; a product with one vector per row is small.
        if D == 3 {
            let dims: [usize; 3] = std::array::from_fn(|axis| input.dims()[axis]);
            let input = self.rounded(input.reshape(dims));
            let product = ops::linear(input, self.products_weight(), self.bias.val());
            let mut shape = [0; D];
            shape.copy_from_slice(&product.dims());
            return product.reshape(shape);
        }
        let (weight, bias) = (self.products_weight(), self.bias.val());
        match self.compute.reduced_dtype() {
            None => module::linear(input, weight, Some(bias)),
            Some(dtype) => {
                let product = module::linear(input.cast(dtype), weight, None);
                product.cast(FloatDType::F32) + bias.unsqueeze()
            }
        }
    }

    /// [`Linear::forward`], then SiLU.
    pub fn forward_silu(&self, input: Tensor<3>) -> Tensor<3> {
        ops::linear_silu(self.rounded(input), self.products_weight(), self.bias.val())
    }

    /// SiLU of a convolution over three positions; see [`ops::conv_silu`].
    pub fn conv_silu(&self, input: Tensor<3>, lengths: Option<&Lengths>) -> Tensor<3> {
        let input = self.rounded(input);
        ops::conv_silu(input, self.products_weight(), self.bias.val(), lengths)
    }

    /// A sequence in the precision of this layer.
    pub fn rounded<const D: usize>(&self, sequence: Tensor<D>) -> Tensor<D> {
        match self.compute.reduced_dtype() {
            None => sequence,
            Some(dtype) => sequence.cast(dtype),
        }
    }

    /// The weight for products: rounded here, unless the optimizer wrote a rounded copy.
    fn products_weight(&self) -> Tensor<2> {
        self.rounded(self.weight.val())
    }
}

/// One learned vector per index.
#[derive(Module, Debug)]
pub struct Embedding {
    /// `[count, width]`.
    pub table: Param<Tensor<2>>,
}

impl Embedding {
    pub fn new(init: &mut Init, count: usize, width: usize) -> Embedding {
        Embedding { table: init.uniform([count, width], 1.0) }
    }

    /// Shapes: `[rows, positions]` to `[rows, positions, width]`.
    pub fn forward(&self, indices: Tensor<2, Int>) -> Tensor<3> {
        module::embedding(self.table.val(), indices)
    }
}
