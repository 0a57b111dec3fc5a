//! What is decided before the first step: the shapes of the batch plan, whether the largest batch
//! fits, the number of steps.
//!
//! In: a [`Job`] and its [`RunStart`]. Out: figures, or an error before anything is trained. The
//! steps that run here do not change the training state.

use crate::TrainError;
use crate::feed::{FeedSettings, Rows};
use crate::prepare::Prepared;
use crate::run::job::{Job, RunStart};
use crate::run::warm_up::{WarmUpModel, WarmedUp};
use crate::train_settings::TrainSettings;
use std::collections::HashSet;
use tandem_data::batch::BatchShape;
use tandem_device::memory::{WorstBatch, check_worst_batch};
use tandem_device::placement::Shapes;
use tandem_model::train_batch::AlignedBatch;
use tandem_units::Epoch;

/// Every shape of the batch plan, shortest first. Where each batch has its own shape, no batch is
/// larger than these.
pub(crate) fn planned_shapes(job: &Job) -> Result<Vec<BatchShape>, TrainError> {
    let rows = Rows::of(&job.prepared, job.feed.split);
    Ok(job.feed.batches(&rows)?.shapes().collect())
}

/// Computes gradients on the largest batch of this corpus, and drops them.
pub(crate) fn try_largest_batch(
    job: &Job,
    start: &RunStart,
    shapes: &[BatchShape],
) -> Result<WorstBatch, TrainError> {
    let largest = shapes.iter().max_by_key(|shape| shape.rows * shape.frames);
    let shape = largest.copied().unwrap_or_default();
    let (config, devices) = (&start.document.config, &job.devices);
    let batch = AlignedBatch::fullest(shape, config, job.feed.reference_frames);
    devices.data.memory_cleanup();
    devices.model.memory_cleanup();
    Ok(check_worst_batch(shape, devices, job.limits, &job.held, || {
        let batch = batch.to_device(&devices.model);
        drop(start.train_state.gradients_of(&batch));
    })?)
}

/// Warms up every shape of the plan, where the devices need it.
pub(crate) fn warm_up_shapes(
    job: &Job,
    start: &RunStart,
    shapes: &[BatchShape],
) -> Result<WarmedUp, TrainError> {
    if !job.warm_up.is_due(&job.devices) {
        return Ok(WarmedUp::NotNeeded);
    }
    if job.feed.shapes == Shapes::PerBatch {
        return Ok(WarmedUp::NoFixedShapes);
    }
    let warm_up_model = WarmUpModel {
        train_state: &start.train_state,
        devices: &job.devices,
        config: &start.document.config,
        reference_frames: job.feed.reference_frames,
        recorder: &job.recorder,
        cancel: &job.cancel,
    };
    warm_up_model.run(shapes)
}

/// Counts the distinct shapes after frames are padded to whole patches.
pub(crate) fn distinct_shapes(shapes: &[BatchShape], patch: usize) -> usize {
    let batch =
        |shape: &BatchShape| BatchShape { frames: shape.frames.next_multiple_of(patch), ..*shape };
    shapes.iter().map(batch).collect::<HashSet<_>>().len()
}

/// Total number of steps. Every epoch is assumed to have as many batches as the first.
pub fn total_steps(
    prepared: &Prepared,
    feed: &FeedSettings,
    settings: &TrainSettings,
) -> Result<u64, TrainError> {
    let rows = Rows::of(prepared, feed.split);
    let per_epoch = feed.batches(&rows)?.epoch(Epoch(0)).len() as u64;
    let per_step = (settings.grad_accum * feed.shard.ranks) as u64;
    let by_epochs =
        settings.epochs.map(|epochs| (u64::from(epochs) * per_epoch).div_ceil(per_step));
    match (settings.max_steps, by_epochs) {
        (Some(steps), Some(epochs)) => Ok(steps.min(epochs.max(1))),
        (Some(steps), None) => Ok(steps),
        (None, Some(epochs)) => Ok(epochs.max(1)),
        (None, None) => Err(TrainError::Endless),
    }
}
