//! One training step: gradients accumulated over batches, then one change of the weights.
//!
//! In: batches on the model device. Out: changed weights. Everything here runs on the training thread
//! and reads nothing back from a GPU. A [`GradientReducer`] stands between accumulation and the
//! optimizer. Next: [`crate::run::trainer`].

use crate::train_settings::{OptimizerSettings, TrainSettings};
use tandem_model::gradients::{GradientReducer, GradientSum, ReduceError};
use tandem_model::micro_batches::batch_gradients;
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::{Optimizer, StepSettings};
use tandem_model::train_batch::DeviceBatch;
use tandem_model::{Module, Tensor};

/// Weights, optimizer and completed steps. A clone shares its tensors until one of both changes.
#[derive(Clone)]
pub struct TrainState {
    /// The weights, with gradients.
    pub voice: Voice,
    pub optimizer: Optimizer,
    /// Completed steps, those without a batch included.
    pub step: u64,
    settings: OptimizerSettings,
    ema_decay: f64,
    total_steps: u64,
    loss_scale: f32,
    /// Gradients and losses of the step under way.
    gradients: GradientSum,
}

/// What a step gave: means over its utterances, still on the device.
pub struct StepMetrics {
    /// Mean frames of symbols against frames.
    pub prior: Tensor<1>,
    /// Frames per symbol.
    pub duration: Tensor<1>,
    /// Velocities of the flow.
    pub flow: Tensor<1>,
    /// Norm of the mean gradient; non-finite where the step changed nothing.
    pub gradient_norm: Tensor<1>,
    /// The learning rate.
    pub rate: f64,
    pub utterances: usize,
}

impl TrainState {
    /// Starts, or continues after so many steps. The voice must be on a device with autodiff.
    pub fn new(
        voice: Voice,
        optimizer: Optimizer,
        step: u64,
        settings: &TrainSettings,
        total_steps: u64,
    ) -> TrainState {
        TrainState {
            voice,
            optimizer,
            step,
            settings: settings.optimizer.clone(),
            ema_decay: settings.ema_decay,
            total_steps,
            loss_scale: settings.precision.compute().loss_scale(),
            gradients: GradientSum::default(),
        }
    }

    /// Adds the gradients of a batch to those of this step.
    pub fn accumulate_gradients(&mut self, batch: &DeviceBatch) {
        self.gradients.merge(batch_gradients(&self.voice, batch, self.loss_scale));
    }

    /// Completes step number `step` (counted from 1): changes the weights by the accumulated gradients.
    /// Without any the step exists and changes nothing.
    pub fn optimizer_step(
        &mut self,
        step: u64,
        reducer: &mut dyn GradientReducer,
    ) -> Result<Option<StepMetrics>, ReduceError> {
        // The rate of a step is that of the steps before it.
        let rate = learning_rate(&self.settings, step - 1, self.total_steps);
        let mut gradients = std::mem::take(&mut self.gradients);
        reducer.reduce(&mut gradients)?;
        // After the reducer: where another process is lost, this step did not happen.
        self.step = step;
        let Some(losses) = gradients.losses.take() else { return Ok(None) };
        let utterances = gradients.utterances;
        let share = 1.0 / utterances.max(1) as f32;
        let settings = self.step_settings(rate);
        let moved = self.optimizer.step_in(&mut self.voice, gradients, &settings);
        Ok(Some(StepMetrics {
            prior: losses.prior * share,
            duration: losses.duration * share,
            flow: losses.flow * share,
            gradient_norm: moved.gradient_norm,
            rate,
            utterances,
        }))
    }

    /// The voice for inference: the EMA of the weights where one is computed.
    pub fn inference_voice(&self) -> Voice {
        if self.ema_decay > 0.0 { self.optimizer.averaged(&self.voice) } else { self.voice.valid() }
    }

    fn step_settings(&self, rate: f64) -> StepSettings {
        let s = &self.settings;
        // A new EMA follows quickly, or it would consist of the first weights for long.
        let young = self.step as f64 / (9.0 + self.step as f64);
        StepSettings {
            rate,
            weight_decay: s.weight_decay,
            beta1: s.beta1,
            beta2: s.beta2,
            epsilon: s.epsilon,
            clip: s.clip,
            ema: self.ema_decay.min(young),
            step: self.step,
            loss_scale: f64::from(self.loss_scale),
        }
    }
}

/// Rises evenly to the highest rate, then falls along half a cosine.
pub fn learning_rate(settings: &OptimizerSettings, step: u64, total_steps: u64) -> f64 {
    let warm = (step + 1) as f64 / settings.warmup_steps.max(1) as f64;
    if warm < 1.0 {
        return settings.lr * warm;
    }
    let after = step.saturating_sub(settings.warmup_steps) as f64;
    let whole = total_steps.saturating_sub(settings.warmup_steps).max(1) as f64;
    let cosine = 0.5 + 0.5 * (std::f64::consts::PI * (after / whole).min(1.0)).cos();
    settings.lr * (settings.final_lr + (1.0 - settings.final_lr) * cosine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_warms_up_and_falls_to_its_last_share() {
        let settings =
            OptimizerSettings { warmup_steps: 10, lr: 1.0, final_lr: 0.1, ..Default::default() };
        let rate = |step| learning_rate(&settings, step, 110);
        assert!((rate(0) - 0.1).abs() < 1e-12);
        assert!((rate(9) - 1.0).abs() < 1e-12);
        assert!((rate(60) - 0.55).abs() < 1e-12);
        assert!((rate(110) - 0.1).abs() < 1e-12);
        assert!((rate(1000) - 0.1).abs() < 1e-12);
    }
}
