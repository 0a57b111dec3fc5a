//! Steps that change weights and state where they are, for CUDA graphs.
//!
//! In: a module on a GPU, and the gradients of one batch, which say which weights are trained. Out: the same module with
//! weights that never move. Who keeps weights or state across a step takes a copy: [`Optimizer::copied`],
//! [`Optimizer::copied_field`], [`Optimizer::state`] and [`Optimizer::averaged`] do.

use super::joined::Joined;
use super::{Optimizer, StepResult, StepSettings, dtypes_of, share};
use crate::gradients::GradientSum;
use crate::loss_scale::LossScale;
use crate::network::ops::adamw::Moments;
use crate::network::ops::gpu::adamw::InPlace;
use crate::weights::{Weight, weights_of, with_parts, with_weights};
use burn::module::Module;
use burn::tensor::{DType, Tensor};
use std::ops::Range;

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

    /// The same for each weight, in one copy of each kind: a reader on another thread waits for each copy.
    pub(super) fn copied_moments(&self) -> impl Iterator<Item = (usize, Moments<1>)> + '_ {
        let [means, squares, averages] = self.memory.copied_state();
        let each = means.into_iter().zip(squares).zip(averages);
        let moments = each.map(|((mean, square), ema)| Moments { mean, square, ema });
        self.members.numbers().zip(moments)
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

    /// A part of the module that steps change, of which `numbers` are the weights, as no later step changes it.
    pub(super) fn copied_from_place<M: Module>(&self, part: &M, numbers: Range<usize>) -> M {
        let Some(fixed) = &self.fixed else { return part.clone() };
        let mut weights: Vec<Tensor<1>> =
            weights_of(part).into_iter().map(|Weight { values, .. }| values).collect();
        let before = fixed.members.numbers().filter(|number| *number < numbers.start).count();
        let inside: Vec<usize> =
            fixed.members.numbers().filter(|number| numbers.contains(number)).collect();
        let copies = fixed.memory.copied_weights(before..before + inside.len());
        for (number, copy) in inside.into_iter().zip(copies) {
            weights[number - numbers.start] = copy;
        }
        with_weights(part.clone(), weights)
    }

    /// The averages of the weights now; `None` if weights do not stay in place.
    pub(super) fn averages_in_place(&self) -> Option<Vec<Tensor<1>>> {
        let fixed = self.fixed.as_ref()?;
        let own = |slot: &super::Slot| slot.moments.as_ref().map(|moments| moments.ema.clone());
        let mut averages: Vec<Option<Tensor<1>>> = self.slots.iter().map(own).collect();
        for (number, copy) in fixed.members.numbers().zip(fixed.memory.copied_averages()) {
            averages[number] = Some(copy);
        }
        Some(
            averages
                .into_iter()
                .map(|average| average.expect("every weight has a state"))
                .collect(),
        )
    }

    /// Gives the next step in place its settings, behind all work so far.
    pub fn prepare_step(&self, utterances: usize, settings: &StepSettings) {
        let Some(fixed) = &self.fixed else { return };
        let StepSettings { rate, ema, step, .. } = *settings;
        let same = StepSettings { rate, ema, step, ..fixed.settings };
        assert_eq!(*settings, same, "settings of other steps");
        fixed.memory.write_values(&fixed.members.settings(share(utterances), settings));
    }

    /// Work with steps in place that change nothing. Waits for the device if there is a scale of the losses.
    pub fn without_change<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some(fixed) = &self.fixed else { return work() };
        // Such a step halves the scale, as every step with a gradient that is not finite.
        let scale = self.loss_scale.as_ref().map(LossScale::values);
        fixed.memory.flush();
        fixed.memory.write_no_step();
        let done = work();
        fixed.memory.flush();
        scale.into_iter().for_each(|scale| fixed.memory.write_loss_scale(scale));
        done
    }

    /// The rest of a step in place after its gradients, with the settings of [`Optimizer::prepare_step`]; returns the values
    /// of [`Optimizer::complete_step`].
    pub fn change_in_place(&self, mut sum: GradientSum) -> Tensor<1> {
        let losses = sum.losses.take().expect("the losses of a batch");
        let share = self.fixed.as_ref().expect("an optimizer that works in place").memory.share();
        let values = losses.means(share).into_iter();
        // A value of its own: the step changes the scale.
        let scale = self.loss_scale.as_ref().map(|scale| scale.factor() * 1.0);
        let values: Vec<Tensor<1>> = values.chain(scale).collect();
        let moved = self.step_in_place(sum.into_tensors());
        Tensor::cat(values.into_iter().chain([moved.gradient_norm]).collect(), 0)
    }

    fn step_in_place(&self, gradients: Vec<Option<Tensor<1>>>) -> StepResult {
        let fixed = self.fixed.as_ref().expect("an optimizer that works in place");
        assert!(fixed.members.holds(&gradients), "gradients of other weights");
        let step = fixed.members.settings(1.0, &fixed.settings);
        let gradient_norm = fixed.memory.step(gradients.into_iter().flatten().collect(), &step);
        StepResult { gradient_norm }
    }

    /// Whether the next step is in place. Where other weights have a gradient than before, no step is any more.
    pub(super) fn steps_in_place<M: Module>(
        &mut self,
        module: &mut M,
        gradients: &[Option<Tensor<1>>],
    ) -> bool {
        if self.fixed.as_ref().is_some_and(|fixed| !fixed.members.holds(gradients)) {
            self.leave_in_place(module);
        }
        self.is_in_place()
    }

    /// From now on, steps write new weights again.
    pub fn leave_in_place<M: Module>(&mut self, module: &mut M) {
        *module = self.copied(module);
        let Some(fixed) = self.fixed.take() else { return };
        self.joined = Some(fixed.copied());
        self.loss_scale = fixed.copied_loss_scale();
    }
}
