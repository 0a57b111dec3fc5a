//! The adversary of a vocoder in training: a discriminator with its optimizer.
//!
//! In: predicted and recorded log-magnitudes. Out: a loss that the vocoder lowers, and a discriminator that learned from the
//! same batch. A checkpoint has its state, so a resumed run continues bit for bit on the CPU.

use crate::TrainError;
use crate::run::state::{TensorNames, add_weights, read_optimizer};
use tandem_model::checkpoint::{CheckpointError, Contents};
use tandem_model::gradients::GradientSum;
use tandem_model::optimizer::{Optimizer, OptimizerState, StepSettings};
use tandem_model::trained_voice::host_values;
use tandem_model::vocoder::neural::config::VocoderConfig;
use tandem_model::vocoder::neural::discriminator::{
    Discriminator, discriminator_loss, generator_loss,
};
use tandem_model::weights::{Weight, weights_of, with_named};
use tandem_model::{Device, Tensor};
use tandem_units::Seed;

const NAMES: TensorNames = TensorNames {
    weights: "discriminator",
    ema: "discriminator_ema",
    moments: "discriminator_moments",
};
/// Separates its first weights from those of the vocoder.
const DISCRIMINATOR: u64 = 0xd15c;

/// A discriminator in training.
pub struct Adversary {
    /// With gradients.
    discriminator: Discriminator,
    optimizer: Optimizer,
    /// Of its loss in the vocoder's.
    weight: f32,
    gradients: GradientSum,
    losses: Option<AdversarialLosses>,
}

/// Sums over segments, without the autodiff graph.
pub struct AdversarialLosses {
    pub generator: Tensor<1>,
    pub discriminator: Tensor<1>,
}

impl Adversary {
    /// `device`: with autodiff.
    pub fn new(config: &VocoderConfig, seed: Seed, weight: f32, device: &Device) -> Adversary {
        let discriminator = Discriminator::new(config, seed.derive(DISCRIMINATOR), device);
        let optimizer = Optimizer::new(&discriminator);
        let gradients = GradientSum::default();
        Adversary { discriminator, optimizer, weight, gradients, losses: None }
    }

    /// Whether a checkpoint has one.
    pub fn is_in(contents: &Contents) -> bool {
        contents.tensors.contains_key(NAMES.weights)
    }

    /// The same with the state of a checkpoint. `device`: without autodiff.
    pub fn restored(
        self,
        contents: &mut Contents,
        device: &Device,
    ) -> Result<Adversary, TrainError> {
        let weights = contents.take_tensors(NAMES.weights)?;
        let discriminator =
            with_named(self.discriminator, |name| host_values(&weights, name), device)?;
        let mut optimizer = Optimizer::new(&discriminator);
        optimizer.restore(read_optimizer(contents, &NAMES, &discriminator, device)?);
        Ok(Adversary { discriminator, optimizer, ..self })
    }

    /// The weighted loss of the vocoder on a batch, summed over its segments. The discriminator's gradients on the same
    /// batch are added to those of this step.
    pub fn loss(&mut self, predicted: Tensor<3>, truth: Tensor<3>) -> Tensor<1> {
        let segments = predicted.dims()[0];
        let scores = |magnitudes: Tensor<3>| self.discriminator.scores(magnitudes);
        let own = discriminator_loss(scores(truth), scores(predicted.clone().detach()));
        let generator = generator_loss(scores(predicted));
        self.gradients.add(&self.discriminator, own.backward(), segments);
        let here =
            AdversarialLosses { generator: generator.clone().inner(), discriminator: own.inner() };
        self.losses = Some(match self.losses.take() {
            Some(before) => AdversarialLosses {
                generator: before.generator + here.generator,
                discriminator: before.discriminator + here.discriminator,
            },
            None => here,
        });
        generator * self.weight
    }

    /// Changes the weights by the gradients of this step. Returns the means of the losses over its segments.
    pub fn optimizer_step(&mut self, settings: &StepSettings) -> Option<AdversarialLosses> {
        let gradients = std::mem::take(&mut self.gradients);
        let AdversarialLosses { generator, discriminator } = self.losses.take()?;
        let share = 1.0 / gradients.utterances.max(1) as f32;
        self.optimizer.step_in(&mut self.discriminator, gradients, settings);
        Some(AdversarialLosses {
            generator: generator * share,
            discriminator: discriminator * share,
        })
    }

    pub fn snapshot(&self) -> AdversarySnapshot {
        let (weights, optimizer) = (weights_of(&self.discriminator), self.optimizer.state());
        AdversarySnapshot { weights, optimizer }
    }
}

/// What a checkpoint has of it: clones of tensor handles.
pub struct AdversarySnapshot {
    weights: Vec<Weight>,
    optimizer: OptimizerState,
}

impl AdversarySnapshot {
    pub fn add_to(&self, contents: &mut Contents) -> Result<(), CheckpointError> {
        add_weights(contents, &NAMES, &self.weights, &self.optimizer)
    }
}
