//! The optimizer: AdamW with gradient clipping, and the moving average (EMA) of the weights.
//!
//! In: a [`GradientSum`] over the utterances of one or more batches. Out: updated weights. A step
//! with a non-finite gradient changes nothing. Nothing is read back from a GPU. Next: `tandem-train`'s
//! step.

#[cfg(feature = "any-gpu")]
mod joined; // the state on a GPU
#[cfg_attr(not(feature = "any-gpu"), path = "optimizer/moving.rs")]
mod in_place; // the same for CUDA graphs: nothing moves

use crate::gradients::GradientSum;
use crate::loss_scale::{Gradients, LossScale};
use crate::network::ops::adamw::{self, AdamW, Moments};
use crate::weights::{Weight, weights_of, with_weights, without_values};
use burn::module::Module;
use burn::tensor::{DType, Device, Tensor};
#[cfg(feature = "any-gpu")]
use in_place::Fixed;
#[cfg(feature = "any-gpu")]
use joined::Joined;
#[cfg(feature = "any-gpu")]
use std::collections::BTreeMap;

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
}

/// The state of the optimizer: one entry per tensor, in the order of the module's fields.
#[derive(Clone, Debug)]
pub struct Optimizer {
    slots: Vec<Slot>,
    /// On a GPU after the first step: the state of all weights that have a gradient.
    #[cfg(feature = "any-gpu")]
    joined: Option<Joined>,
    /// The same, where weights and state are changed in place.
    #[cfg(feature = "any-gpu")]
    fixed: Option<Fixed>,
    /// The factor of the losses; `None` for one.
    loss_scale: Option<LossScale>,
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
        Optimizer {
            slots: slots.collect(),
            #[cfg(feature = "any-gpu")]
            joined: None,
            #[cfg(feature = "any-gpu")]
            fixed: None,
            loss_scale: None,
        }
    }

    /// With a dynamic scale of the losses: they must be multiplied with [`Optimizer::loss_scale`]. A restored scale stays.
    pub fn scaling_losses(mut self, device: &Device) -> Optimizer {
        self.loss_scale.get_or_insert_with(|| LossScale::new(device));
        self
    }

    /// Without a scale of the losses.
    pub fn without_loss_scale(self) -> Optimizer {
        Optimizer { loss_scale: None, ..self }
    }

    /// The factor that losses must be multiplied with.
    pub fn loss_scale(&self) -> Option<&LossScale> {
        self.loss_scale.as_ref()
    }

    /// [`Optimizer::step`] for a module that stays where it is.
    pub fn step_in<M: Module>(
        &mut self,
        module: &mut M,
        gradients: GradientSum,
        settings: &StepSettings,
    ) -> StepResult {
        self.step_both(module, None, gradients, settings)
    }

    /// A step with a sum of gradients that has losses, in place or not. Returns one tensor: the mean loss and its parts, the
    /// scale of the losses if there is one, and the norm of the mean gradient.
    pub fn complete_step<M: Module>(
        &mut self,
        module: &mut M,
        rounded: Option<&mut M>,
        mut sum: GradientSum,
        settings: &StepSettings,
    ) -> Tensor<1> {
        if self.steps_in_place(module, sum.tensors()) {
            self.prepare_step(sum.utterances, settings);
            return self.change_in_place(sum);
        }
        let losses = sum.losses.take().expect("the losses of a batch");
        let share = Tensor::from_floats([share(sum.utterances) as f32], &losses.prior.device());
        let scale = self.loss_scale.as_ref().map(LossScale::factor);
        let moved = self.step_both(module, rounded, sum, settings);
        let values = losses.means(share).into_iter().chain(scale);
        Tensor::cat(values.chain([moved.gradient_norm]).collect(), 0)
    }

    /// [`Optimizer::step_in`] for a module whose gradients are those of its
    /// [rounded copy](crate::weights::rounded_copy), which is written, too: on a GPU by the same kernel.
    pub fn step_both<M: Module>(
        &mut self,
        module: &mut M,
        rounded: Option<&mut M>,
        gradients: GradientSum,
        settings: &StepSettings,
    ) -> StepResult {
        assert!(!self.is_in_place(), "weights in place are changed by `complete_step`");
        let stays = module.clone();
        let stays = if on_host(module) { without_values(stays) } else { stays };
        let moved = std::mem::replace(module, stays);
        let dtypes = rounded.as_ref().map(|copy| dtypes_of(*copy));
        let (moved, copies, result) = self.step_all(moved, gradients, settings, dtypes.as_deref());
        *module = moved;
        if let Some(rounded) = rounded {
            *rounded = with_weights(rounded.clone(), copies);
        }
        result
    }

    /// Updates the weights.
    pub fn step<M: Module>(
        &mut self,
        module: M,
        gradients: GradientSum,
        settings: &StepSettings,
    ) -> (M, StepResult) {
        let (module, _, result) = self.step_all(module, gradients, settings, None);
        (module, result)
    }

    /// Updates the weights; also returns copies of them in these types.
    fn step_all<M: Module>(
        &mut self,
        module: M,
        gradients: GradientSum,
        settings: &StepSettings,
        copies: Option<&[DType]>,
    ) -> (M, Vec<Tensor<1>>, StepResult) {
        let share = share(gradients.utterances);
        let weights: Vec<Tensor<1>> =
            weights_of(&module).into_iter().map(|weight| weight.values).collect();
        let (module, (updated, rounded, norm)) = if on_host(&module) {
            // Without a second reference, the weights are changed in place.
            let module = without_values(module);
            let (updated, norm) = self.step_on_host(weights, gradients, share, settings);
            (module, (updated, Vec::new(), norm))
        } else {
            let dtype = copies.and_then(|all| all.iter().copied().find(|one| *one != DType::F32));
            (module, self.step_on_device(weights, gradients, share, settings, dtype))
        };
        let mut rounded = rounded.into_iter();
        let copy = |(weight, dtype): (&Tensor<1>, &DType)| {
            let written = rounded.next().flatten().filter(|written| written.dtype() == *dtype);
            written.unwrap_or_else(|| weight.clone().cast(*dtype))
        };
        let copies = updated.iter().zip(copies.unwrap_or_default()).map(copy).collect();
        (with_weights(module, updated), copies, StepResult { gradient_norm: norm })
    }

    /// In host memory the norm can be read at once, so one pass is enough.
    fn step_on_host(
        &mut self,
        weights: Vec<Tensor<1>>,
        gradients: GradientSum,
        share: f64,
        settings: &StepSettings,
    ) -> (Vec<Tensor<1>>, Tensor<1>) {
        let share = share / self.loss_scale.as_ref().map_or(1.0, |scale| f64::from(scale.read()));
        let gradients: Vec<_> = gradients.into_tensors().into_iter().map(widened).collect();
        let squares: f64 = gradients.iter().flatten().map(adamw::sum_of_squares).sum();
        let norm = squares.sqrt() * share;
        let kind = if norm.is_finite() { Gradients::Finite } else { Gradients::NonFinite };
        self.loss_scale = self.loss_scale.take().map(|scale| scale.after(kind));
        let device = weights[0].device();
        let as_tensor = Tensor::from_floats([norm as f32], &device);
        if !norm.is_finite() {
            return (weights, as_tensor);
        }
        let clip = if settings.clip > 0.0 { (settings.clip / norm).min(1.0) } else { 1.0 };
        let updated =
            self.slots.iter_mut().zip(weights).zip(gradients).map(|((slot, weight), gradient)| {
                let Some(gradient) = gradient else { return weight };
                let moments = slot.moments.take().expect("joined on a GPU only");
                let settings = settings.for_tensor(slot.shape.len(), (share * clip) as f32);
                let (weight, moments) = adamw::adamw_step(weight, gradient, moments, &settings);
                slot.moments = Some(moments);
                weight
            });
        (updated.collect(), as_tensor)
    }

    #[cfg(not(feature = "any-gpu"))]
    fn step_on_device(
        &mut self,
        _weights: Vec<Tensor<1>>,
        _gradients: GradientSum,
        _share: f64,
        _settings: &StepSettings,
        _copies: Option<DType>,
    ) -> (Vec<Tensor<1>>, Vec<Option<Tensor<1>>>, Tensor<1>) {
        unreachable!("a build without a GPU backend has no other device than the host")
    }

    /// All weights at once: see [`joined`]. Also copies of those with a gradient in this type.
    #[cfg(feature = "any-gpu")]
    fn step_on_device(
        &mut self,
        mut weights: Vec<Tensor<1>>,
        gradients: GradientSum,
        share: f64,
        settings: &StepSettings,
        copies: Option<DType>,
    ) -> (Vec<Tensor<1>>, Vec<Option<Tensor<1>>>, Tensor<1>) {
        let device = weights[0].device();
        let gradients = gradients.into_tensors();
        if gradients.iter().all(Option::is_none) {
            return (weights, Vec::new(), Tensor::zeros([1], &device));
        }
        let mut joined = match self.joined.take() {
            Some(joined) if joined.holds(&gradients) => joined,
            other => {
                self.joined = other;
                self.join(&gradients, &device)
            }
        };
        let scale = &mut self.loss_scale;
        let (rounded, norm) = joined.step(&mut weights, gradients, share, settings, scale, copies);
        self.joined = Some(joined);
        (weights, rounded, norm)
    }

    /// Joins the state of the weights that have a gradient; the others keep theirs.
    #[cfg(feature = "any-gpu")]
    fn join(&mut self, gradients: &[Option<Tensor<1>>], device: &Device) -> Joined {
        let all = self.all_moments();
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

    /// The state of all weights, wherever it is.
    fn all_moments(&self) -> Vec<Moments<1>> {
        #[cfg(feature = "any-gpu")]
        let copied: BTreeMap<usize, Moments<1>> =
            self.fixed.iter().flat_map(Fixed::copied_moments).collect();
        let all = self.slots.iter().map(|slot| slot.moments.clone());
        #[cfg(feature = "any-gpu")]
        let all = all.enumerate().map(|(at, own)| {
            let joined = || self.joined.as_ref()?.moments(at);
            own.or_else(|| copied.get(&at).cloned()).or_else(joined)
        });
        all.map(|moments| moments.expect("every weight has a state")).collect()
    }

    /// A module with the moving averages of the weights.
    pub fn averaged<M: Module>(&self, module: &M) -> M {
        let all = || self.all_moments().into_iter().map(|moments| moments.ema).collect();
        with_weights(module.valid(), self.averages_in_place().unwrap_or_else(all))
    }

    /// The weights of a module as no later step changes them.
    pub fn copied<M: Module>(&self, module: &M) -> M {
        self.copied_from_place(module, 0..self.slots.len())
    }

    /// A field of the module as no later step changes it.
    pub fn copied_field<M: Module>(&self, field: &M, name: &str) -> M {
        let is_inside =
            |slot: &Slot| slot.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let first = self.slots.iter().position(is_inside).expect("a field with weights");
        let count = self.slots[first..].iter().take_while(|slot| is_inside(slot)).count();
        self.copied_from_place(field, first..first + count)
    }

    /// The state as named tensors, under the names of the weights.
    pub fn state(&self) -> OptimizerState {
        let all = self.all_moments();
        let part = |pick: fn(&Moments<1>) -> &Tensor<1>| {
            let weight = |(slot, moments): (&Slot, &Moments<1>)| Weight {
                name: slot.name.clone(),
                shape: slot.shape.clone(),
                values: pick(moments).clone(),
            };
            self.slots.iter().zip(&all).map(weight).collect()
        };
        let loss_scale = self.loss_scale.clone();
        #[cfg(feature = "any-gpu")]
        let loss_scale = match &self.fixed {
            Some(fixed) => fixed.copied_loss_scale(),
            None => loss_scale,
        };
        let loss_scale = loss_scale.as_ref().map(LossScale::state);
        OptimizerState {
            mean: part(|m| &m.mean),
            square: part(|m| &m.square),
            ema: part(|m| &m.ema),
            loss_scale,
        }
    }

    /// Replaces the state. It must have this module's names and shapes.
    pub fn restore(&mut self, state: OptimizerState) {
        let OptimizerState { mean, square, ema, loss_scale } = state;
        self.loss_scale = loss_scale.map(LossScale::restored);
        let parts = mean.into_iter().zip(square).zip(ema);
        #[cfg(feature = "any-gpu")]
        {
            self.joined = None;
            self.fixed = None;
        }
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
    /// The scale of the losses and the good steps since it changed, `[2]`; only with half floats.
    pub loss_scale: Option<Tensor<1>>,
}

/// The factor that makes a mean of a sum over so many utterances.
fn share(utterances: usize) -> f64 {
    1.0 / utterances.max(1) as f64
}

/// The types of the weights.
fn dtypes_of<M: Module>(module: &M) -> Vec<DType> {
    weights_of(module).iter().map(|weight| weight.values.dtype()).collect()
}

/// A gradient in 32 bits.
fn widened(gradient: Option<Tensor<1>>) -> Option<Tensor<1>> {
    gradient.map(|gradient| gradient.cast(DType::F32))
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
