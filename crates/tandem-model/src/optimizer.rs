//! The optimizer: AdamW with gradient clipping, and the moving average (EMA) of the weights.
//!
//! In: a [`GradientSum`] over the utterances of one or more batches. Out: updated weights. A step
//! with a non-finite gradient changes nothing. Nothing is read back from a GPU. Next: `tandem-train`'s
//! step.

mod joined; // the state on a GPU

use crate::gradients::GradientSum;
use crate::network::ops::adamw::{self, AdamW, Moments};
use crate::weights::{Weight, weights_of, with_weights, without_values};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use joined::Joined;

/// Settings of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepSettings {
    /// Learning rate.
    pub rate: f64,
    /// For matrices only.
    pub weight_decay: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    /// The largest norm of the mean gradient over all weights; 0 for no limit.
    pub clip: f64,
    /// Decay of the moving average of the weights.
    pub ema: f64,
    /// From 1.
    pub step: u64,
    /// The factor that the losses were multiplied with.
    pub loss_scale: f64,
}

/// The state of the optimizer: one entry per tensor, in the order of the module's fields.
#[derive(Clone, Debug)]
pub struct Optimizer {
    slots: Vec<Slot>,
    /// On a GPU after the first step: the state of all weights that have a gradient.
    joined: Option<Joined>,
}

#[derive(Clone, Debug)]
struct Slot {
    name: String,
    shape: Vec<usize>,
    /// `None` if they are joined with those of other weights.
    moments: Option<Moments<1>>,
}

/// The result of a step.
#[derive(Clone, Debug)]
pub struct StepResult {
    /// The norm of the mean gradient before clipping: NaN or infinite if the step was skipped. It is
    /// on the device: a caller that reads it waits for the device.
    pub gradient_norm: Tensor<1>,
}

impl Optimizer {
    /// A new state for this module.
    pub fn new<M: Module>(module: &M) -> Optimizer {
        let slots = weights_of(module).into_iter().map(|Weight { name, shape, values }| Slot {
            name,
            shape,
            moments: Some(Moments::new(&values)),
        });
        Optimizer { slots: slots.collect(), joined: None }
    }

    /// [`Optimizer::step`] for a module that stays where it is.
    pub fn step_in<M: Module>(
        &mut self,
        module: &mut M,
        gradients: GradientSum,
        settings: &StepSettings,
    ) -> StepResult {
        let stays = module.clone();
        let stays = if on_host(module) { without_values(stays) } else { stays };
        let moved = std::mem::replace(module, stays);
        let (moved, result) = self.step(moved, gradients, settings);
        *module = moved;
        result
    }

    /// Updates the weights.
    pub fn step<M: Module>(
        &mut self,
        module: M,
        gradients: GradientSum,
        settings: &StepSettings,
    ) -> (M, StepResult) {
        let share = 1.0 / (gradients.utterances.max(1) as f64 * settings.loss_scale);
        let weights: Vec<Tensor<1>> =
            weights_of(&module).into_iter().map(|weight| weight.values).collect();
        let (module, (updated, norm)) = if on_host(&module) {
            // Without a second reference, the weights are changed in place.
            (without_values(module), self.step_on_host(weights, gradients, share, settings))
        } else {
            (module, self.step_on_device(weights, gradients, share, settings))
        };
        (with_weights(module, updated), StepResult { gradient_norm: norm })
    }

    /// In host memory the norm can be read at once, so one pass is enough.
    fn step_on_host(
        &mut self,
        weights: Vec<Tensor<1>>,
        gradients: GradientSum,
        share: f64,
        settings: &StepSettings,
    ) -> (Vec<Tensor<1>>, Tensor<1>) {
        let squares: f64 = gradients.tensors().iter().flatten().map(adamw::sum_of_squares).sum();
        let norm = squares.sqrt() * share;
        let device = weights[0].device();
        let as_tensor = Tensor::from_floats([norm as f32], &device);
        if !norm.is_finite() {
            return (weights, as_tensor);
        }
        let clip = if settings.clip > 0.0 { (settings.clip / norm).min(1.0) } else { 1.0 };
        let updated = self.slots.iter_mut().zip(weights).zip(gradients.into_tensors()).map(
            |((slot, weight), gradient)| {
                let Some(gradient) = gradient else { return weight };
                let moments = slot.moments.take().expect("joined on a GPU only");
                let settings = settings.for_tensor(slot.shape.len(), (share * clip) as f32);
                let (weight, moments) = adamw::adamw_step(weight, gradient, moments, &settings);
                slot.moments = Some(moments);
                weight
            },
        );
        (updated.collect(), as_tensor)
    }

    /// All weights at once: see [`joined`].
    fn step_on_device(
        &mut self,
        mut weights: Vec<Tensor<1>>,
        gradients: GradientSum,
        share: f64,
        settings: &StepSettings,
    ) -> (Vec<Tensor<1>>, Tensor<1>) {
        let device = weights[0].device();
        let gradients = gradients.into_tensors();
        if gradients.iter().all(Option::is_none) {
            return (weights, Tensor::zeros([1], &device));
        }
        let mut joined = match self.joined.take() {
            Some(joined) if joined.holds(&gradients) => joined,
            other => {
                self.joined = other;
                self.join(&gradients, &device)
            }
        };
        let norm = joined.step(&mut weights, &gradients, share, settings);
        self.joined = Some(joined);
        (weights, norm)
    }

    /// Joins the state of the weights that have a gradient; the others keep theirs.
    fn join(&mut self, gradients: &[Option<Tensor<1>>], device: &Device) -> Joined {
        let all: Vec<Moments<1>> = (0..self.slots.len()).map(|at| self.moments(at)).collect();
        self.joined = None;
        let mut trained = Vec::new();
        for (at, (slot, moments)) in self.slots.iter_mut().zip(all).enumerate() {
            match gradients.get(at) {
                Some(Some(_)) => {
                    trained.push((at, slot.shape.len(), moments));
                    slot.moments = None;
                }
                _ => slot.moments = Some(moments),
            }
        }
        Joined::new(trained, device)
    }

    /// The state of a weight, wherever it is.
    fn moments(&self, at: usize) -> Moments<1> {
        let own = self.slots[at].moments.clone();
        own.or_else(|| self.joined.as_ref()?.moments(at)).expect("every weight has a state")
    }

    /// A module with the moving averages of the weights.
    pub fn averaged<M: Module>(&self, module: &M) -> M {
        let means = (0..self.slots.len()).map(|at| self.moments(at).ema).collect();
        with_weights(module.valid(), means)
    }

    /// The state as named tensors, under the names of the weights.
    pub fn state(&self) -> OptimizerState {
        let part = |pick: fn(Moments<1>) -> Tensor<1>| {
            let weight = |(at, slot): (usize, &Slot)| Weight {
                name: slot.name.clone(),
                shape: slot.shape.clone(),
                values: pick(self.moments(at)),
            };
            self.slots.iter().enumerate().map(weight).collect()
        };
        OptimizerState { mean: part(|m| m.mean), square: part(|m| m.square), ema: part(|m| m.ema) }
    }

    /// Replaces the state. It must have this module's names and shapes.
    pub fn restore(&mut self, state: OptimizerState) {
        let OptimizerState { mean, square, ema } = state;
        let parts = mean.into_iter().zip(square).zip(ema);
        self.joined = None;
        for (slot, ((mean, square), ema)) in self.slots.iter_mut().zip(parts) {
            let (mean, square, ema) = (mean.values, square.values, ema.values);
            slot.moments = Some(Moments { mean, square, ema });
        }
    }
}

/// The optimizer's tensors, each list in the order of the module's fields.
#[derive(Clone, Debug)]
pub struct OptimizerState {
    /// First moments of the gradients.
    pub mean: Vec<Weight>,
    /// Second moments of the gradients.
    pub square: Vec<Weight>,
    /// Moving averages of the weights.
    pub ema: Vec<Weight>,
}

/// Whether the weights are in host memory.
fn on_host<M: Module>(module: &M) -> bool {
    module.devices().iter().all(|device| device.clone().inner() == Device::flex())
}

impl StepSettings {
    fn for_tensor(&self, dimensions: usize, gradient_factor: f32) -> AdamW {
        AdamW {
            rate: self.rate as f32,
            beta_1: self.beta1 as f32,
            beta_2: self.beta2 as f32,
            epsilon: self.epsilon as f32,
            decay: if dimensions > 1 { self.weight_decay as f32 } else { 0.0 },
            ema: self.ema as f32,
            step: self.step,
            gradient_factor,
        }
    }
}

#[cfg(test)]
mod tests;
