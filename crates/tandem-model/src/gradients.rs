//! Gradients between the backward pass and the optimizer.
//!
//! In: the gradients of one batch after another. Out: one [`GradientSum`] for
//! [`Optimizer::step`](crate::optimizer::Optimizer::step). Between the two, a [`GradientReducer`]
//! combines the sums of several processes: data-parallel training implements an all-reduce there.

use crate::network::ops::on_cpu;
use crate::network::voice::Losses;
use crate::weights::gradients_of;
use burn::module::Module;
use burn::tensor::{DType, Gradients, Tensor};
use rayon::prelude::*;

/// Gradients of a module, summed over utterances.
#[derive(Clone, Debug, Default)]
pub struct GradientSum {
    tensors: Vec<Option<Tensor<1>>>,
    /// The number of utterances in the sum.
    pub utterances: usize,
    /// The losses of the same utterances; none without a batch.
    pub losses: Option<Losses>,
}

/// Combines the gradients of all processes that train the same weights.
///
/// Every process must end up with the same sum, and `utterances` must count the utterances of all
/// of them: the optimizer divides by it. Losses are summed, too. Called once before each optimizer step,
/// also in a process that had no batch for it.
pub trait GradientReducer: Send {
    fn reduce(&mut self, gradients: &mut GradientSum) -> Result<(), ReduceError>;
}

/// The reducer of a single process: the sum is already complete.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalGradients;

/// Why a reducer failed.
#[derive(Debug, thiserror::Error)]
#[error("the gradients of several processes cannot be summed")]
pub struct ReduceError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

impl tandem_units::Hint for ReduceError {}

impl GradientReducer for LocalGradients {
    fn reduce(&mut self, _gradients: &mut GradientSum) -> Result<(), ReduceError> {
        Ok(())
    }
}

impl GradientSum {
    /// A sum that was computed elsewhere.
    pub fn new(
        tensors: Vec<Option<Tensor<1>>>,
        utterances: usize,
        losses: Option<Losses>,
    ) -> GradientSum {
        GradientSum { tensors, utterances, losses }
    }

    /// One tensor for each weight, in the order of the module's fields; `None` where no gradient
    /// flows. The gradient of one batch has the type of the weight that it was computed with, a sum of several has 32 bits.
    pub fn tensors(&self) -> &[Option<Tensor<1>>] {
        &self.tensors
    }

    pub fn into_tensors(self) -> Vec<Option<Tensor<1>>> {
        self.tensors
    }

    /// Adds the gradients of one batch.
    pub fn add<M: Module>(&mut self, module: &M, mut gradients: Gradients, utterances: usize) {
        let tensors = gradients_of(module, &mut gradients);
        self.merge(GradientSum { tensors, utterances, losses: None });
    }

    /// Adds the losses of one batch, without the autodiff graph.
    pub fn add_losses(&mut self, losses: Losses) {
        self.losses = Some(match self.losses.take() {
            Some(before) => before + losses,
            None => losses,
        });
    }

    /// Adds another sum of the same module.
    pub fn merge(&mut self, other: GradientSum) {
        self.utterances += other.utterances;
        if let Some(losses) = other.losses {
            self.add_losses(losses);
        }
        if self.tensors.is_empty() {
            self.tensors = other.tensors;
            return;
        }
        let add = |(sum, new): (&mut Option<Tensor<1>>, Option<Tensor<1>>)| {
            *sum = match (sum.take(), new) {
                (Some(sum), Some(new)) => Some(sum.cast(DType::F32) + new.cast(DType::F32)),
                (sum, new) => sum.or(new),
            };
        };
        // On the CPU an addition uses one thread. Elsewhere another thread would be another stream of the device.
        match self.tensors.iter().flatten().next() {
            Some(first) if on_cpu(first) => {
                self.tensors.par_iter_mut().zip(other.tensors).for_each(add);
            }
            _ => self.tensors.iter_mut().zip(other.tensors).for_each(add),
        }
    }
}
