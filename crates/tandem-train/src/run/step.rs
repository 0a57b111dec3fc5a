//! One training step: gradients accumulated over batches, then one change of the weights.
//!
//! In: batches on the model device. Out: changed weights. Everything here runs on the training thread
//! and reads nothing back from a GPU. A [`GradientReducer`] stands between accumulation and the
//! optimizer. Next: [`crate::run::trainer`].

use crate::train_settings::{OptimizerSettings, TrainSettings};
use tandem_device::backend::DeviceError;
use tandem_model::gradients::{GradientReducer, GradientSum, LocalGradients, ReduceError};
use tandem_model::micro_batches::batch_gradients;
use tandem_model::network::layers::Compute;
use tandem_model::network::voice::{Encoder, Voice};
use tandem_model::optimizer::{Optimizer, StepSettings};
use tandem_model::step_graph::StepGraph;
use tandem_model::train_batch::{DeviceBatch, UploadedBatch};
use tandem_model::weights::{Weight, rounded_copy, weights_of};
use tandem_model::{Device, Module, Tensor};

/// Weights, optimizer and completed steps. A clone shares its tensors until one of both changes, and for ever where they
/// are [in place](TrainState::fix_in_place).
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
    compute: Compute,
    /// Steps of one batch as CUDA graphs, one for each shape.
    graphs: Vec<StepGraph>,
    /// The only batch of the step under way, of which a graph does all.
    waiting: Option<UploadedBatch>,
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
    /// A graph did the step.
    pub replayed: bool,
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
            compute,
            graphs: Vec::new(),
            waiting: None,
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

    /// From now on, steps change weights and state where they are, as graphs need them. This batch shows which weights have
    /// a gradient.
    pub fn fix_in_place(&mut self, batch: &DeviceBatch) {
        let sum = self.gradients_of(batch);
        let settings = self.step_settings(self.step + 1);
        let rounded = self.rounded.as_mut();
        self.optimizer.fix_in_place(&mut self.voice, rounded, sum.tensors(), &settings);
    }

    /// The same weights and state in memory of their own, which steps do not change in place.
    pub fn moved_out(&self) -> TrainState {
        let mut copy = TrainState { graphs: Vec::new(), ..self.clone() };
        copy.optimizer.leave_in_place(&mut copy.voice);
        copy.rounded = copy.compute.reduced_dtype().map(|dtype| rounded_copy(&copy.voice, dtype));
        copy
    }

    /// Captures steps on batches of this shape, with weights in place. After an error, this state cannot be used any more.
    pub fn capture(&mut self, batch: &UploadedBatch, device: &Device) -> Result<(), DeviceError> {
        let voice = self.rounded.as_ref().unwrap_or(&self.voice);
        self.graphs.push(StepGraph::capture(voice, &self.optimizer, batch, device)?);
        Ok(())
    }

    /// Gives back the graph that was captured last.
    pub fn drop_last_graph(&mut self) {
        self.graphs.pop();
    }

    /// Does a whole step on this batch that changes nothing.
    pub fn rehearse(&self, batch: &DeviceBatch) {
        if !self.optimizer.is_in_place() {
            let mut copy = self.clone();
            copy.accumulate_gradients(batch);
            drop(copy.optimizer_step(self.step + 1, &mut LocalGradients));
            return;
        }
        let sum = self.gradients_of(batch);
        // What is dropped before it ran is left out.
        drop(self.optimizer.without_change(|| self.optimizer.change_in_place(sum)));
    }

    /// Takes all copies that a run takes of weights and state for others: aligner snapshots, validation, checkpoints.
    pub fn rehearse_copies(&self) -> impl Sized + use<> {
        (self.encoder(), self.inference_voice(), self.weights(), self.optimizer.state())
    }

    /// Takes a batch of this step. A graph does the step if there is one for its shape, and no second batch.
    pub fn take_batch(&mut self, batch: &UploadedBatch) {
        let is_first = self.waiting.is_none() && self.gradients.utterances == 0;
        if is_first && self.graph_for(batch).is_some() {
            self.waiting = Some(batch.clone());
            return;
        }
        if let Some(first) = self.waiting.take() {
            self.accumulate_gradients(&first.tensors());
        }
        self.accumulate_gradients(&batch.tensors());
    }

    fn graph_for(&self, batch: &UploadedBatch) -> Option<&StepGraph> {
        // A graph changes what was in place when it was captured.
        let in_place = self.optimizer.is_in_place();
        self.graphs.iter().find(|graph| in_place && graph.fits(batch))
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

    /// Completes step number `step` (counted from 1): changes the weights by the gradients of its batches. Without any the
    /// step exists and changes nothing. Steps with graphs are those of a process that trains alone.
    pub fn optimizer_step(
        &mut self,
        step: u64,
        reducer: &mut dyn GradientReducer,
    ) -> Result<Option<StepMetrics>, ReduceError> {
        let settings = self.step_settings(step);
        let mut gradients = std::mem::take(&mut self.gradients);
        let waiting = self.waiting.take();
        let utterances = match &waiting {
            Some(batch) => batch.utterances,
            None => {
                // Where another process is lost, this step did not happen.
                reducer.reduce(&mut gradients)?;
                gradients.utterances
            }
        };
        if waiting.is_none() && gradients.losses.is_none() {
            self.step = step;
            return Ok(None);
        }
        self.half_changed = true;
        let graph = waiting.as_ref().and_then(|batch| Some((self.graph_for(batch)?, batch)));
        let replayed = graph.is_some();
        let values = match graph {
            Some((graph, batch)) => {
                self.optimizer.prepare_step(utterances, &settings);
                graph.run(batch)
            }
            None => {
                let rounded = self.rounded.as_mut();
                self.optimizer.complete_step(&mut self.voice, rounded, gradients, &settings)
            }
        };
        (self.step, self.half_changed) = (step, false);
        let scaled = self.optimizer.loss_scale().is_some();
        let names = if scaled { StepMetrics::SCALED } else { StepMetrics::NAMES };
        Ok(Some(StepMetrics { values, names, rate: settings.rate, utterances, replayed }))
    }

    /// The voice for inference, as no later step changes it: the EMA of the weights where one is computed.
    pub fn inference_voice(&self) -> Voice {
        if self.ema_decay > 0.0 {
            self.optimizer.averaged(&self.voice)
        } else {
            self.optimizer.copied(&self.voice).valid()
        }
    }

    /// The encoder, as no later step changes it.
    pub fn encoder(&self) -> Encoder {
        self.optimizer.copied_field(&self.voice.encoder.valid(), "encoder")
    }

    /// The weights, as no later step changes them.
    pub fn weights(&self) -> Vec<Weight> {
        weights_of(&self.optimizer.copied(&self.voice))
    }

    fn step_settings(&self, step: u64) -> StepSettings {
        let s = &self.settings;
        // The rate of a step is that of the steps before it.
        let rate = learning_rate(s, step - 1, self.total_steps);
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
