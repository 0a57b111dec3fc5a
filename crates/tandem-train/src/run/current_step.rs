//! What this process has trained of the step under way.
//!
//! In: the batches of one step, and how long each was waited for. Out: the figures of its `step` event, and
//! what this rank contributes to the step of all ranks. Starts empty for each step.

use crate::feed::transfer::Transferred;
use std::collections::BTreeMap;
use std::time::Duration;
use tandem_data::batch::BatchShape;
use tandem_pipeline::Interval;
use tandem_telemetry::Nanos;
use tandem_telemetry::event::Name;

#[derive(Debug, Default)]
pub(super) struct CurrentStep {
    pub(super) utterances: usize,
    /// Real frames.
    pub(super) frames: u64,
    /// How long the training thread had no batch.
    pub(super) waited: Duration,
    /// Padded shapes of its batches.
    pub(super) shapes: Vec<BatchShape>,
    /// Steps between the weights that aligned the last batch and this step.
    pub(super) age: u64,
    /// Busy time of each stage.
    pub(super) work: BTreeMap<Name, Nanos>,
}

impl CurrentStep {
    /// The model waited for this batch.
    pub(super) fn add_delivery(&mut self, waited: Duration, work: &[Interval]) {
        self.waited += waited;
        for (stage, time) in work {
            *self.work.entry((*stage).into()).or_default() += Nanos::from(*time);
        }
    }

    pub(super) fn add_batch(&mut self, batch: &Transferred) {
        self.utterances += batch.batch.utterances;
        self.frames += batch.frames;
        self.age = batch.age;
        self.shapes.push(batch.shape);
    }
}
