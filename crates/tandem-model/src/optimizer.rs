//! How weights are changed: AdamW with a limit on the gradient, and the running mean of the
//! weights.
//!
//! In: gradients summed over the utterances of one or more batches. Out: moved weights. A step
//! whose gradient is no number changes nothing. Gradients and their use are apart, so that a sum
//! over several machines fits between. Nothing is read back from a GPU. Next:
//! `tandem-train`'s step.

use crate::network::ops::adamw::{self, AdamW, Moments};
use crate::weights::{Weight, gradients_of, weights_of, with_weights};
use burn::module::Module;
use burn::tensor::{Device, Gradients, Tensor};

/// Gradients of a module, summed over utterances.
#[derive(Clone, Debug, Default)]
pub struct GradientSum {
    sums: Vec<Option<Tensor<1>>>,
    /// Utterances that are in it.
    pub utterances: usize,
}

impl GradientSum {
    /// One for each tensor, in the order of the module's fields; none where no gradient flows.
    pub fn tensors(&self) -> &[Option<Tensor<1>>] {
        &self.sums
    }

    /// Adds the gradients of one batch.
    pub fn add<M: Module>(&mut self, module: &M, mut gradients: Gradients, utterances: usize) {
        let new = gradients_of(module, &mut gradients);
        self.utterances += utterances;
        if self.sums.is_empty() {
            self.sums = new;
            return;
        }
        for (sum, new) in self.sums.iter_mut().zip(new) {
            *sum = match (sum.take(), new) {
                (Some(sum), Some(new)) => Some(sum + new),
                (sum, new) => sum.or(new),
            };
        }
    }
}

/// Settings of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepSettings {
    /// Learning rate.
    pub rate: f64,
    /// Pull towards zero, for matrices.
    pub weight_decay: f64,
    /// Memory of the mean gradient.
    pub beta1: f64,
    /// Memory of the mean squared gradient.
    pub beta2: f64,
    /// Keeps the division away from zero.
    pub epsilon: f64,
    /// Longest mean gradient, over all weights; 0: any.
    pub clip: f64,
    /// Memory of the running mean of the weights.
    pub ema: f64,
    /// Which step it is, from one.
    pub step: u64,
    /// What losses were multiplied by.
    pub loss_scale: f64,
}

/// The state of the optimiser: one entry per tensor, in the order of the module's fields.
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

/// What a step did.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The length of the mean gradient before it was limited: no number where the step was left
    /// out. On the device: whoever reads it waits for it.
    pub gradient_norm: Tensor<1>,
}

impl Optimizer {
    /// For this module; nothing seen yet.
    pub fn new<M: Module>(module: &M) -> Optimizer {
        let slots = weights_of(module).into_iter().map(|Weight { name, shape, values }| Slot {
            name,
            shape,
            moments: Moments::new(&values),
        });
        Optimizer { slots: slots.collect() }
    }

    /// Moves the weights.
    pub fn step<M: Module>(
        &mut self,
        module: M,
        gradients: GradientSum,
        settings: &StepSettings,
    ) -> (M, Moved) {
        let share = 1.0 / (gradients.utterances.max(1) as f64 * settings.loss_scale);
        let weights: Vec<Tensor<1>> =
            weights_of(&module).into_iter().map(|weight| weight.values).collect();
        let on_host = weights[0].device() == Device::flex();
        let (moved, norm) = if on_host {
            self.step_on_host(weights, gradients, share, settings)
        } else {
            self.step_on_device(weights, gradients, share, settings)
        };
        (with_weights(module, moved), Moved { gradient_norm: norm })
    }

    /// Memory that can be read at once: one pass over everything.
    fn step_on_host(
        &mut self,
        weights: Vec<Tensor<1>>,
        gradients: GradientSum,
        share: f64,
        settings: &StepSettings,
    ) -> (Vec<Tensor<1>>, Tensor<1>) {
        let squares: f64 = gradients.sums.iter().flatten().map(adamw::sum_of_squares).sum();
        let norm = squares.sqrt() * share;
        let device = weights[0].device();
        let as_tensor = Tensor::from_floats([norm as f32], &device);
        if !norm.is_finite() {
            return (weights, as_tensor);
        }
        let limit = if settings.clip > 0.0 { (settings.clip / norm).min(1.0) } else { 1.0 };
        let moved = self.slots.iter_mut().zip(weights).zip(gradients.sums).map(
            |((slot, weight), gradient)| {
                let Some(gradient) = gradient else { return weight };
                let settings = settings.for_tensor(slot.shape.len(), (share * limit) as f32);
                slot.advance(weight, gradient, &settings)
            },
        );
        (moved.collect(), as_tensor)
    }

    /// Nothing is read back: the limit and the guard stay tensors.
    fn step_on_device(
        &mut self,
        weights: Vec<Tensor<1>>,
        gradients: GradientSum,
        share: f64,
        settings: &StepSettings,
    ) -> (Vec<Tensor<1>>, Tensor<1>) {
        let device = weights[0].device();
        let squares = gradients.sums.iter().flatten().map(|g| g.clone().square().sum());
        let squares = squares.fold(Tensor::zeros([1], &device), |sum: Tensor<1>, one| sum + one);
        let norm = squares.sqrt() * share;
        let usable = norm.clone().is_finite();
        let limit = match settings.clip > 0.0 {
            true => (norm.clone().recip() * settings.clip).clamp_max(1.0) * share,
            false => norm.ones_like() * share,
        };
        let mut moved = Vec::with_capacity(weights.len());
        for ((slot, weight), gradient) in self.slots.iter_mut().zip(weights).zip(gradients.sums) {
            let Some(gradient) = gradient else {
                moved.push(weight);
                continue;
            };
            let (before, old) = (slot.moments.clone(), weight.clone());
            let settings = settings.for_tensor(slot.shape.len(), 1.0);
            let new = slot.advance(weight, gradient * limit.clone(), &settings);
            let keep = |new: Tensor<1>, old: Tensor<1>| {
                let usable = usable.clone().expand(new.dims());
                old.mask_where(usable, new)
            };
            slot.moments = Moments {
                mean: keep(slot.moments.mean.clone(), before.mean),
                square: keep(slot.moments.square.clone(), before.square),
                ema: keep(slot.moments.ema.clone(), before.ema),
            };
            moved.push(keep(new, old));
        }
        (moved, norm)
    }

    /// The running mean of the weights, in a module like the trained one.
    pub fn averaged<M: Module>(&self, module: &M) -> M {
        let means = self.slots.iter().map(|slot| slot.moments.ema.clone()).collect();
        with_weights(module.valid(), means)
    }

    /// Its state as named tensors: the running means under the weights' names, and the moments.
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

    /// Goes on from a state, which must have this module's names and shapes.
    pub fn restore(&mut self, state: OptimizerState) {
        let OptimizerState { mean, square, ema } = state;
        let parts = mean.into_iter().zip(square).zip(ema);
        for (slot, ((mean, square), ema)) in self.slots.iter_mut().zip(parts) {
            slot.moments = Moments { mean: mean.values, square: square.values, ema: ema.values };
        }
    }
}

/// The optimiser's tensors, each list in the order of the module's fields.
#[derive(Clone, Debug)]
pub struct OptimizerState {
    /// Means of the gradients.
    pub mean: Vec<Weight>,
    /// Means of their squares.
    pub square: Vec<Weight>,
    /// Running means of the weights.
    pub ema: Vec<Weight>,
}

impl Slot {
    fn advance(&mut self, weight: Tensor<1>, gradient: Tensor<1>, settings: &AdamW) -> Tensor<1> {
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
