//! A build without a GPU: each step writes new weights, and none is in place.

use super::{Optimizer, StepSettings};
use crate::gradients::GradientSum;
use burn::module::Module;
use burn::tensor::Tensor;
use std::ops::Range;

impl Optimizer {
    /// Does nothing: only a GPU keeps weights in place.
    pub fn fix_in_place<M: Module>(
        &mut self,
        _module: &mut M,
        _rounded: Option<&mut M>,
        _gradients: &[Option<Tensor<1>>],
        _settings: &StepSettings,
    ) {
    }

    pub fn is_in_place(&self) -> bool {
        false
    }

    pub fn leave_in_place<M: Module>(&mut self, _module: &mut M) {}

    pub fn prepare_step(&self, _utterances: usize, _settings: &StepSettings) {}

    pub fn without_change<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    pub fn change_in_place(&self, _sum: GradientSum) -> Tensor<1> {
        unreachable!("a build without a GPU backend keeps no weights in place")
    }

    pub(super) fn steps_in_place<M: Module>(
        &mut self,
        _module: &mut M,
        _gradients: &[Option<Tensor<1>>],
    ) -> bool {
        false
    }

    pub(super) fn copied_from_place<M: Module>(&self, part: &M, _numbers: Range<usize>) -> M {
        part.clone()
    }

    pub(super) fn averages_in_place(&self) -> Option<Vec<Tensor<1>>> {
        None
    }
}
