//! The dynamic scale of losses, which keeps small gradients of half floats from being rounded to zero.
//!
//! In: whether the gradients of a step are finite. Out: the factor for the losses of the next step. A step with a gradient
//! that is not finite changes no weights and halves the scale; a row of good steps doubles it. The state is on the device,
//! so that training reads nothing back, and it is saved with the optimizer. Next: [`crate::optimizer`].

use burn::tensor::{Device, Tensor};

/// The scale at the start.
const START: f32 = 1024.0;
/// Its limits. Powers of two all of them, so that scaling rounds nothing.
pub(crate) const SMALLEST: f32 = 1.0;
pub(crate) const LARGEST: f32 = 16_777_216.0;
/// Steps in a row with finite gradients after which the scale is doubled.
pub(crate) const GOOD_STEPS: f32 = 500.0;

/// A scale and the number of good steps since it changed, on the device of the weights.
#[derive(Clone, Debug)]
pub struct LossScale {
    /// Both, in this order.
    state: Tensor<1>,
}

impl LossScale {
    pub fn new(device: &Device) -> LossScale {
        LossScale { state: Tensor::from_floats([START, 0.0], device) }
    }

    /// From the state of a checkpoint.
    pub(crate) fn restored(state: Tensor<1>) -> LossScale {
        LossScale { state }
    }

    /// What a checkpoint saves.
    pub(crate) fn state(&self) -> Tensor<1> {
        self.state.clone()
    }

    /// The factor for losses.
    pub fn factor(&self) -> Tensor<1> {
        self.state.clone().narrow(0, 0, 1)
    }

    /// The factor as a number. Waits for the device.
    pub(crate) fn read(&self) -> f32 {
        self.factor().into_scalar()
    }

    /// Both values. Waits for the device.
    #[cfg(feature = "any-gpu")]
    pub(crate) fn values(&self) -> Vec<f32> {
        self.state.clone().try_into_vec_as().expect("a scale in 32 bits")
    }

    /// The state after a step, computed on the host.
    pub(crate) fn after(self, gradients: Gradients) -> LossScale {
        let device = self.state.device();
        let values: Vec<f32> = self.state.try_into_vec_as().expect("a state in host memory");
        LossScale { state: Tensor::from_floats(next([values[0], values[1]], gradients), &device) }
    }
}

/// What the gradients of a step were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gradients {
    Finite,
    NonFinite,
}

/// The rule. The optimizer's kernel has the same one.
fn next([scale, good]: [f32; 2], gradients: Gradients) -> [f32; 2] {
    match gradients {
        Gradients::NonFinite => [(scale * 0.5).max(SMALLEST), 0.0],
        Gradients::Finite if good + 1.0 >= GOOD_STEPS => [(scale * 2.0).min(LARGEST), 0.0],
        Gradients::Finite => [scale, good + 1.0],
    }
}

/// A factor for losses: a number, or a scale on the device.
#[derive(Clone, Debug)]
pub enum LossFactor {
    Number(f32),
    OnDevice(Box<Tensor<1>>),
}

impl LossFactor {
    /// The scaled loss.
    pub(crate) fn times(self, loss: Tensor<1>) -> Tensor<1> {
        match self {
            LossFactor::Number(factor) => loss * factor,
            LossFactor::OnDevice(factor) => loss * Tensor::from_inner(*factor),
        }
    }
}

impl From<f32> for LossFactor {
    fn from(factor: f32) -> LossFactor {
        LossFactor::Number(factor)
    }
}

impl From<Option<&LossScale>> for LossFactor {
    fn from(scale: Option<&LossScale>) -> LossFactor {
        scale
            .map_or(LossFactor::Number(1.0), |scale| LossFactor::OnDevice(Box::new(scale.factor())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_good_steps_doubles_the_scale_and_a_bad_one_halves_it() {
        let mut state = [START, 0.0];
        for _ in 0..GOOD_STEPS as usize - 1 {
            state = next(state, Gradients::Finite);
            assert_eq!(state[0], START);
        }
        let bad = next(state, Gradients::NonFinite);
        assert_eq!(bad, [START / 2.0, 0.0]);
        assert_eq!(next(state, Gradients::Finite), [START * 2.0, 0.0]);
    }

    #[test]
    fn the_scale_stays_within_its_limits() {
        assert_eq!(next([SMALLEST, 3.0], Gradients::NonFinite), [SMALLEST, 0.0]);
        assert_eq!(next([LARGEST, GOOD_STEPS - 1.0], Gradients::Finite), [LARGEST, 0.0]);
    }
}
