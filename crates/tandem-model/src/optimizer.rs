//! The optimizer: AdamW with gradient clipping, and the moving average (EMA) of the weights.
//!
//! In: a [`GradientSum`] over the utterances of one or more batches. Out: updated weights. A step
//! with a non-finite gradient changes nothing. Nothing is read back from a GPU. Next: `tandem-train`'s
//! step.

use crate::gradients::GradientSum;
use crate::network::ops::adamw::{self, AdamW, Moments};
use crate::weights::{Weight, weights_of, with_weights};
use burn::module::Module;
use burn::tensor::{Device, Tensor};

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
}

#[derive(Clone, Debug)]
struct Slot {
    name: String,
    shape: Vec<usize>,
    moments: Moments<1>,
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
            moments: Moments::new(&values),
        });
        Optimizer { slots: slots.collect() }
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
        let on_host = weights[0].device() == Device::flex();
        let (updated, norm) = if on_host {
            self.step_on_host(weights, gradients, share, settings)
        } else {
            self.step_on_device(weights, gradients, share, settings)
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
                let settings = settings.for_tensor(slot.shape.len(), (share * clip) as f32);
                slot.update(weight, gradient, &settings)
            },
        );
        (updated.collect(), as_tensor)
    }

    /// Nothing is read back: the clipping factor and the check for finite values stay tensors.
    fn step_on_device(
        &mut self,
        weights: Vec<Tensor<1>>,
        gradients: GradientSum,
        share: f64,
        settings: &StepSettings,
    ) -> (Vec<Tensor<1>>, Tensor<1>) {
        let device = weights[0].device();
        let squares = gradients.tensors().iter().flatten().map(|g| g.clone().square().sum());
        let squares = squares.fold(Tensor::zeros([1], &device), |sum: Tensor<1>, one| sum + one);
        let norm = squares.sqrt() * share;
        let usable = norm.clone().is_finite();
        let factor = match settings.clip > 0.0 {
            true => (norm.clone().recip() * settings.clip).clamp_max(1.0) * share,
            false => norm.ones_like() * share,
        };
        let mut updated = Vec::with_capacity(weights.len());
        for ((slot, weight), gradient) in
            self.slots.iter_mut().zip(weights).zip(gradients.into_tensors())
        {
            let Some(gradient) = gradient else {
                updated.push(weight);
                continue;
            };
            let (before, old) = (slot.moments.clone(), weight.clone());
            let settings = settings.for_tensor(slot.shape.len(), 1.0);
            let new = slot.update(weight, gradient * factor.clone(), &settings);
            let keep = |new: Tensor<1>, old: Tensor<1>| {
                let usable = usable.clone().expand(new.dims());
                old.mask_where(usable, new)
            };
            slot.moments = Moments {
                mean: keep(slot.moments.mean.clone(), before.mean),
                square: keep(slot.moments.square.clone(), before.square),
                ema: keep(slot.moments.ema.clone(), before.ema),
            };
            updated.push(keep(new, old));
        }
        (updated, norm)
    }

    /// A module with the moving averages of the weights.
    pub fn averaged<M: Module>(&self, module: &M) -> M {
        let means = self.slots.iter().map(|slot| slot.moments.ema.clone()).collect();
        with_weights(module.valid(), means)
    }

    /// The state as named tensors, under the names of the weights.
    pub fn state(&self) -> OptimizerState {
        let part = |pick: fn(&Moments<1>) -> &Tensor<1>| {
            let weight = |slot: &Slot| Weight {
                name: slot.name.clone(),
                shape: slot.shape.clone(),
                values: pick(&slot.moments).clone(),
            };
            self.slots.iter().map(weight).collect()
        };
        OptimizerState {
            mean: part(|m| &m.mean),
            square: part(|m| &m.square),
            ema: part(|m| &m.ema),
        }
    }

    /// Replaces the state. It must have this module's names and shapes.
    pub fn restore(&mut self, state: OptimizerState) {
        let OptimizerState { mean, square, ema } = state;
        let parts = mean.into_iter().zip(square).zip(ema);
        for (slot, ((mean, square), ema)) in self.slots.iter_mut().zip(parts) {
            slot.moments = Moments { mean: mean.values, square: square.values, ema: ema.values };
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

impl Slot {
    fn update(&mut self, weight: Tensor<1>, gradient: Tensor<1>, settings: &AdamW) -> Tensor<1> {
        let (weight, moments) = adamw::adamw_step(weight, gradient, self.moments.clone(), settings);
        self.moments = moments;
        weight
    }
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
