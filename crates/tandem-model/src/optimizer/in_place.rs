//! Steps that change weights and state where they are, for CUDA graphs.
//!
//! In: a module on a GPU, and the gradients of one batch, which say which weights are trained. Out: the same module with
//! weights that never move. Who keeps weights or state across a step takes a copy: [`Optimizer::copied`],
//! [`Optimizer::state`] and [`Optimizer::averaged`] do.

use super::joined::Joined;
use super::{Optimizer, StepResult, StepSettings, dtypes_of, share};
use crate::loss_scale::LossScale;
use crate::network::ops::gpu::adamw::InPlace;
use crate::weights::{Weight, weights_of, with_parts, with_weights};
use burn::module::Module;
use burn::tensor::{DType, Tensor};

/// Weights and state that never move.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    /// Which weights they are; without state.
    members: Joined,
    memory: InPlace,
    /// Betas and others that are the same in all steps.
    settings: StepSettings,
}

impl Fixed {
    /// The state now, in memory of its own.
    pub(super) fn copied(&self) -> Joined {
        self.members.with_moments(Some(self.memory.copied_moments()))
    }

    pub(super) fn copied_loss_scale(&self) -> Option<LossScale> {
        self.memory.copied_loss_scale().map(LossScale::restored)
    }
}

impl Optimizer {
    /// From now on, steps change the weights of this module and its rounded copy, and their state, where they are. All
    /// steps have these settings, except rate, average and number. Other clones of the module keep what they have.
    pub fn fix_in_place<M: Module>(
        &mut self,
        module: &mut M,
        rounded: Option<&mut M>,
        gradients: &[Option<Tensor<1>>],
        settings: &StepSettings,
    ) {
        let weights = weights_of(module);
        let device = weights[0].values.device();
        let dtypes = rounded.as_ref().map(|copy| dtypes_of(*copy)).unwrap_or_default();
        let dtype = dtypes.iter().copied().find(|dtype| *dtype != DType::F32);
        let joined = match self.joined.take() {
            Some(joined) if joined.holds(gradients) => joined,
            other => {
                self.joined = other;
                self.join(gradients, &device)
            }
        };
        let values: Vec<Tensor<1>> = weights.iter().map(|weight| weight.values.clone()).collect();
        let scale = self.loss_scale.take().map(|scale| scale.state());
        let memory = joined.in_place(&values, scale, dtype);
        self.loss_scale = memory.loss_scale().map(LossScale::restored);
        let members = joined.with_moments(None);
        let shapes: Vec<Vec<usize>> =
            members.numbers().map(|number| weights[number].shape.clone()).collect();
        let mut parts = vec![None; weights.len()];
        for (number, part) in members.numbers().zip(memory.weights(&shapes)) {
            parts[number] = Some(part);
        }
        if let Some(rounded) = rounded {
            let mut copies = parts.clone();
            let found = members.numbers().zip(memory.copies(&shapes).unwrap_or_default());
            for (number, copy) in found.filter(|(number, _)| Some(dtypes[*number]) == dtype) {
                copies[number] = Some(copy);
            }
            *rounded = with_parts(rounded.clone(), copies);
        }
        *module = with_parts(module.clone(), parts);
        self.fixed = Some(Fixed { members, memory, settings: *settings });
    }

    /// Whether steps change weights where they are.
    pub fn is_in_place(&self) -> bool {
        self.fixed.is_some()
    }

    /// Gives the steps in place this scale of the losses.
    pub(crate) fn put_loss_scale(&self, scale: Vec<f32>) {
        if let Some(fixed) = &self.fixed {
            fixed.memory.write_loss_scale(scale);
        }
    }

    /// A module whose weights no step changes.
    pub(super) fn copied_from_place<M: Module>(&self, module: &M) -> M {
        let Some(fixed) = &self.fixed else { return module.clone() };
        let mut weights: Vec<Tensor<1>> =
            weights_of(module).into_iter().map(|Weight { values, .. }| values).collect();
        for (number, copy) in fixed.members.numbers().zip(fixed.memory.copied_weights()) {
            weights[number] = copy;
        }
        with_weights(module.clone(), weights)
    }

    /// Gives the next step in place its settings, behind all work so far.
    pub fn prepare_step(&self, utterances: usize, settings: &StepSettings) {
        let Some(fixed) = &self.fixed else { return };
        let StepSettings { rate, ema, step, .. } = *settings;
        let same = StepSettings { rate, ema, step, ..fixed.settings };
        assert_eq!(*settings, same, "settings of other steps");
        fixed.memory.write_values(&fixed.members.settings(share(utterances), settings));
    }

    /// The next step in place changes nothing except the scale of the losses.
    pub(crate) fn prepare_no_step(&self) {
        if let Some(fixed) = &self.fixed {
            fixed.memory.write_no_step();
        }
    }

    /// What makes a mean of a sum over the utterances of the step in place: `[1]`, where the step reads it.
    pub(crate) fn share(&self) -> Option<Tensor<1>> {
        self.fixed.as_ref().map(|fixed| fixed.memory.share())
    }

    /// A step in place, with the settings of [`Optimizer::prepare_step`].
    pub fn step_in_place(&self, gradients: Vec<Option<Tensor<1>>>) -> StepResult {
        let fixed = self.fixed.as_ref().expect("an optimizer that works in place");
        assert!(fixed.members.holds(&gradients), "gradients of other weights");
        let step = fixed.members.settings(1.0, &fixed.settings);
        let gradient_norm = fixed.memory.step(gradients.into_iter().flatten().collect(), &step);
        StepResult { gradient_norm }
    }

    /// The same with settings; `None` if weights do not stay in place, or others have a gradient: then they no longer do.
    pub(super) fn try_step_in_place<M: Module>(
        &mut self,
        module: &mut M,
        gradients: &[Option<Tensor<1>>],
        utterances: usize,
        settings: &StepSettings,
    ) -> Option<StepResult> {
        let fixed = self.fixed.as_ref()?;
        if !fixed.members.holds(gradients) {
            self.leave_in_place(module);
            return None;
        }
        self.prepare_step(utterances, settings);
        Some(self.step_in_place(gradients.to_vec()))
    }

    /// From now on, steps write new weights again.
    pub fn leave_in_place<M: Module>(&mut self, module: &mut M) {
        *module = self.copied(module);
        let Some(fixed) = self.fixed.take() else { return };
        self.joined = Some(fixed.copied());
        self.loss_scale = fixed.copied_loss_scale();
    }
}
