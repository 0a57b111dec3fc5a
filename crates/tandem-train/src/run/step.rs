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
use tandem_model::weights::rounded_copy;
use tandem_model::{Module, Tensor};

/// Weights, optimizer and completed steps. A clone shares its tensors until one of both changes.
#[derive(Clone)]
pub struct TrainState {
    /// The weights, with gradients.
    pub voice: Voice,
    /// The weights rounded to 16 bits, which gradients are computed with; none in 32 bits.
    rounded: Option<Voice>,
    pub optimizer: Optimizer,
    /// Completed steps, those without a batch included.
    pub step: u64,
    settings: OptimizerSettings,
    ema_decay: f64,
    total_steps: u64,
    /// Gradients and losses of the step under way.
    gradients: GradientSum,
    /// The weights are being changed. Still set after a panic: some of them are those of the next step then, or gone.
    half_changed: bool,
}

/// What a step gave: means over its utterances, still on the device.
pub struct StepMetrics {
    /// All values, in the order of the names.
    pub values: Tensor<1>,
    pub names: &'static [&'static str],
    /// The learning rate.
    pub rate: f64,
    pub utterances: usize,
}

impl StepMetrics {
    /// The sum of the losses; mean frames of symbols against frames, frames per symbol, velocities of the flow; the norm of
    /// the mean gradient, non-finite where the step changed nothing.
    pub const NAMES: &'static [&'static str] = &["total", "prior", "duration", "flow", "gradient"];
    /// The same with the factor of the losses of this step: half floats only.
    const SCALED: &'static [&'static str] =
        &["total", "prior", "duration", "flow", "loss_scale", "gradient"];
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
        let compute = settings.precision.compute();
        let rounded = compute.reduced_dtype().map(|dtype| rounded_copy(&voice, dtype));
        let optimizer = match compute.scales_losses() {
            true => optimizer.scaling_losses(&voice.devices()[0].clone().inner()),
            false => optimizer.without_loss_scale(),
        };
        TrainState {
            voice,
            rounded,
            optimizer,
            step,
            settings: settings.optimizer.clone(),
            ema_decay: settings.ema_decay,
            total_steps,
            gradients: GradientSum::default(),
            half_changed: false,
        }
    }

    /// Whether weights and optimizer are those of a complete step. A checkpoint of anything else would be worthless.
    pub fn is_complete(&self) -> bool {
        !self.half_changed
    }

    /// Adds the gradients of a batch to those of this step.
    pub fn accumulate_gradients(&mut self, batch: &DeviceBatch) {
        self.gradients.merge(self.gradients_of(batch));
    }

    /// The gradients of a batch alone.
    pub fn gradients_of(&self, batch: &DeviceBatch) -> GradientSum {
        let voice = self.rounded.as_ref().unwrap_or(&self.voice);
        batch_gradients(voice, batch, self.optimizer.loss_scale())
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
        // Where another process is lost, this step did not happen.
        reducer.reduce(&mut gradients)?;
        let Some(losses) = gradients.losses.take() else {
            self.step = step;
            return Ok(None);
        };
        let utterances = gradients.utterances;
        let share = 1.0 / utterances.max(1) as f32;
        let settings = self.step_settings(step, rate);
        self.half_changed = true;
        let loss_scale = self.optimizer.loss_scale().map(|scale| scale.factor());
        let rounded = self.rounded.as_mut();
        let moved = self.optimizer.step_both(&mut self.voice, rounded, gradients, &settings);
        (self.step, self.half_changed) = (step, false);
        let [prior, duration, flow] =
            [losses.prior, losses.duration, losses.flow].map(|loss| loss * share);
        let total = prior.clone() + duration.clone() + flow.clone();
        let names = if loss_scale.is_some() { StepMetrics::SCALED } else { StepMetrics::NAMES };
        let values = [total, prior, duration, flow].into_iter().chain(loss_scale);
        let values = Tensor::cat(values.chain([moved.gradient_norm]).collect(), 0);
        Ok(Some(StepMetrics { values, names, rate, utterances }))
    }

    /// The voice for inference: the EMA of the weights where one is computed.
    pub fn inference_voice(&self) -> Voice {
        if self.ema_decay > 0.0 { self.optimizer.averaged(&self.voice) } else { self.voice.valid() }
    }

    fn step_settings(&self, step: u64, rate: f64) -> StepSettings {
        let s = &self.settings;
        // A new EMA follows quickly, or it would consist of the first weights for long.
        let young = step as f64 / (9.0 + step as f64);
        StepSettings {
            rate,
            weight_decay: s.weight_decay,
            beta1: s.beta1,
            beta2: s.beta2,
            epsilon: s.epsilon,
            clip: s.clip,
            ema: self.ema_decay.min(young),
            step,
        }
    }
}

/// Rises evenly to the highest rate, stays there for `hold_steps`, then falls along half a cosine.
pub fn learning_rate(settings: &OptimizerSettings, step: u64, total_steps: u64) -> f64 {
    let warm = (step + 1) as f64 / settings.warmup_steps.max(1) as f64;
    if warm < 1.0 {
        return settings.lr * warm;
    }
    let falls_from = settings.warmup_steps.saturating_add(settings.hold_steps);
    let after = step.saturating_sub(falls_from) as f64;
    let whole = total_steps.saturating_sub(falls_from).max(1) as f64;
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

    #[test]
    fn the_rate_stays_at_its_peak_for_the_steps_of_the_hold() {
        let settings = OptimizerSettings {
            warmup_steps: 10,
            hold_steps: 50,
            lr: 1.0,
            final_lr: 0.1,
            ..Default::default()
        };
        let rate = |step| learning_rate(&settings, step, 160);
        assert_eq!([9, 10, 30, 60].map(rate), [1.0; 4]);
        assert!(rate(4) < 1.0 && rate(61) < 1.0);
        assert!((rate(110) - 0.55).abs() < 1e-12, "half-way between hold and end");
        assert!((rate(160) - 0.1).abs() < 1e-12);
        let endless = OptimizerSettings { hold_steps: u64::MAX, ..settings };
        assert_eq!(learning_rate(&endless, 159, 160), 1.0);
    }
}
