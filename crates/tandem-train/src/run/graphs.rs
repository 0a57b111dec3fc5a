//! CUDA graphs of training steps, captured before the first step.
//!
//! In: the shapes of the batch plan, and weights in place. Out: a graph in the training state for each shape, the most
//! frequent first, as many as memory allows; [`GraphLog`]. Steps without a graph compute the same bits. A refusal brings
//! back weights and state from before, and the run has no graphs. Runs on the training thread before the feed starts: no
//! other thread may use a card meanwhile. Next: [`crate::run::trainer`].

use crate::TrainError;
use crate::feed::Rows;
use crate::run::job::{Job, RunStart};
use crate::run::step::TrainState;
use std::time::{Duration, Instant};
use tandem_data::batch::BatchShape;
use tandem_device::backend::{DeviceError, free_memory, guarded, wait_for};
use tandem_device::memory::figures_of;
use tandem_device::placement::Shapes;
use tandem_model::Module;
use tandem_model::step_graph::has_graphs;
use tandem_model::train_batch::AlignedBatch;
use tandem_telemetry::event::{Graphs, Warning};
use tandem_units::{Bytes, Epoch};

const DOING: &str = "preparing CUDA graphs of training steps";
const IN_16_BITS: &str = "the weights are rounded to 16 bits";
/// Copies of the weights that a run has at times beside weights and state: a checkpoint has four, a validation one, aligner
/// snapshots parts of three.
const COPIES: u64 = 8;
/// What an estimate of a step may be too low by, in percent.
const MARGIN: u64 = 150;

/// The graphs of a run, and how many steps they did.
#[derive(Debug, Default)]
pub(crate) struct GraphLog {
    captured: Captured,
    replayed: u64,
    others: u64,
}

#[derive(Clone, Debug, Default)]
struct Captured {
    shapes: usize,
    planned: usize,
    memory: Bytes,
    took: Duration,
    /// Why there are none; none on a device that never has any.
    why_none: Option<String>,
}

impl GraphLog {
    /// A step is done.
    pub(crate) fn add(&mut self, replayed: bool) {
        if replayed { self.replayed += 1 } else { self.others += 1 }
    }

    /// The memory that the graphs hold.
    pub(crate) fn memory(&self) -> Bytes {
        self.captured.memory
    }

    /// For the record; none on a device that never has graphs.
    pub(crate) fn event(&self) -> Option<Graphs> {
        let Captured { shapes, planned, memory, took, why_none } = self.captured.clone();
        (shapes > 0 || why_none.is_some()).then(|| Graphs {
            shapes: shapes as u32,
            planned: planned as u32,
            memory,
            took: took.into(),
            replayed: self.replayed,
            others: self.others,
            why_none,
        })
    }
}

/// Brings the weights to the place where all steps of a device that has graphs change them.
pub(crate) fn fix_in_place(
    job: &Job,
    start: &mut RunStart,
    shapes: &[BatchShape],
) -> Result<(), TrainError> {
    let Some(shape) = shapes.first().filter(|_| works_in_place(job)) else {
        return Ok(());
    };
    let batch = fullest(job, start, *shape);
    let state = &mut start.train_state;
    guarded(DOING, || state.fix_in_place(&batch.to_device(&job.devices.model)))?;
    Ok(())
}

/// Captures as many graphs as memory allows.
pub(crate) fn capture(
    job: &Job,
    start: &mut RunStart,
    shapes: &[BatchShape],
) -> Result<GraphLog, TrainError> {
    if !has_graphs(&job.devices.model) {
        return Ok(GraphLog::default());
    }
    let began = Instant::now();
    let mut captured = Captured { planned: shapes.len(), ..Captured::default() };
    captured.why_none = why_none(job);
    if captured.why_none.as_deref() == Some(IN_16_BITS) {
        let text = "steps in 16 bits are launched kernel by kernel: no whole run with CUDA graphs was tested in 16 bits";
        job.recorder.send(Warning { code: "no_graphs".into(), text: text.into() });
    }
    if captured.why_none.is_none() {
        let before = guarded(DOING, || start.train_state.moved_out())?;
        let asking = job.phases.paused();
        let ended = capture_all(job, start, shapes, &mut captured);
        drop(asking);
        if let Err(error) = ended {
            restore(job, start, before, shapes)?;
            let text = format!("{error}; the run continues without CUDA graphs");
            job.recorder.send(Warning { code: "graphs_refused".into(), text });
            let why_none = Some("refused".into());
            captured = Captured { shapes: 0, memory: Bytes(0), why_none, ..captured };
        }
        captured.took = began.elapsed();
    }
    let log = GraphLog { captured, ..GraphLog::default() };
    if let Some(event) = log.event() {
        job.recorder.send(event);
    }
    Ok(log)
}

/// Whether steps change weights where they are, with graphs and without: no bit depends on whether a step is a graph.
fn works_in_place(job: &Job) -> bool {
    has_graphs(&job.devices.model) && !has_16_bits(job)
}

fn has_16_bits(job: &Job) -> bool {
    job.settings.precision.compute().reduced_dtype().is_some()
}

/// Why this run has no graphs.
fn why_none(job: &Job) -> Option<String> {
    let several = job.settings.grad_accum > 1 || job.cluster.is_some();
    let reasons = [
        (job.settings.no_graphs, "--no-graphs"),
        (has_16_bits(job), IN_16_BITS),
        (several, "a step has several batches"),
        (job.feed.shapes == Shapes::PerBatch, "every batch has a shape of its own"),
        (!job.warm_up.is_due(&job.devices), "there was no warm-up"),
    ];
    reasons.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why.to_string())
}

fn capture_all(
    job: &Job,
    start: &mut RunStart,
    shapes: &[BatchShape],
    captured: &mut Captured,
) -> Result<(), TrainError> {
    let device = &job.devices.model;
    let (held, beside) = (reserved(job)?, memory_beside(job, start, shapes));
    let Some(mut room) = room(job, held, beside) else {
        captured.why_none = Some("the driver does not say how much memory is free".into());
        return Ok(());
    };
    for shape in by_frequency(job, shapes)? {
        if job.cancel.is_cancelled() {
            break;
        }
        if step_memory(start, shape) > room {
            continue;
        }
        let batch = fullest(job, start, shape);
        let before = reserved(job)?;
        let batch = guarded(DOING, || batch.pack().upload(device))?;
        start.train_state.capture(&batch, device)?;
        drop(batch);
        let held = Bytes(reserved(job)?.0.saturating_sub(before.0));
        if held > room {
            // More than was estimated.
            start.train_state.drop_last_graph();
            continue;
        }
        room = Bytes(room.0 - held.0);
        captured.shapes += 1;
        captured.memory += held;
    }
    if captured.shapes == 0 && !job.cancel.is_cancelled() {
        captured.why_none = Some("no memory is left for one".into());
    }
    // Steps without a graph, and copies, find their memory again.
    if let Some(shape) = largest(shapes) {
        let batch = fullest(job, start, shape);
        guarded(DOING, || start.train_state.rehearse(&batch.to_device(device)))?;
    }
    Ok(wait_for(device, DOING)?)
}

/// Weights and state from before the captures, in place again: what a refused capture should have written cannot be read.
fn restore(
    job: &Job,
    start: &mut RunStart,
    before: TrainState,
    shapes: &[BatchShape],
) -> Result<(), TrainError> {
    start.train_state = before;
    guarded(DOING, || job.devices.model.memory_cleanup())?;
    fix_in_place(job, start, shapes)?;
    Ok(wait_for(&job.devices.model, DOING)?)
}

/// The shapes of the first epoch, the most frequent first; of shapes as frequent, the largest first.
fn by_frequency(job: &Job, shapes: &[BatchShape]) -> Result<Vec<BatchShape>, TrainError> {
    let rows = Rows::of(&job.prepared, job.feed.split);
    let epoch = job.feed.batches(&rows)?.epoch(Epoch(0));
    let count = |shape: &BatchShape| epoch.batches_from(0).filter(|b| b.shape == *shape).count();
    let mut counted: Vec<_> =
        shapes.iter().map(|shape| (count(shape), shape.rows * shape.frames, *shape)).collect();
    counted.sort_by_key(|(count, frames, _)| std::cmp::Reverse((*count, *frames)));
    Ok(counted.into_iter().map(|(_, _, shape)| shape).collect())
}

/// Memory for graphs: what the budget and the card leave; `held` is what the run has already, `beside` what else it needs.
fn room(job: &Job, held: Bytes, beside: Bytes) -> Option<Bytes> {
    let free = free_memory(&job.devices.model)?;
    let budget = job.limits.map(|limits| match job.devices.are_apart() {
        true => limits.model,
        false => limits.model + limits.data,
    });
    let free = budget.map_or(free, |budget| free.min(Bytes(budget.0.saturating_sub(held.0))));
    Some(Bytes(free.0.saturating_sub(beside.0)))
}

/// What a run needs beside weights, state and graphs: a step without a graph, batches, copies of the weights.
fn memory_beside(job: &Job, start: &RunStart, shapes: &[BatchShape]) -> Bytes {
    let shape = largest(shapes).unwrap_or_default();
    // Frames and noise.
    let batch = 8 * (shape.rows * shape.frames * start.document.config.bands) as u64;
    let batches = (job.feed.depth as u64 * batch).min(job.feed.memory.0.max(batch));
    let weights = 4 * start.train_state.voice.num_params() as u64;
    Bytes(step_memory(start, shape).0 + batches + COPIES * weights)
}

fn step_memory(start: &RunStart, shape: BatchShape) -> Bytes {
    let BatchShape { rows, frames, symbols } = shape;
    Bytes(start.document.config.activations(rows, frames, symbols).0 * MARGIN / 100)
}

fn largest(shapes: &[BatchShape]) -> Option<BatchShape> {
    shapes.iter().copied().max_by_key(|shape| shape.rows * shape.frames)
}

/// What the allocator of the model's card holds and cannot give back.
fn reserved(job: &Job) -> Result<Bytes, DeviceError> {
    let model = &job.devices.model;
    wait_for(model, DOING)?;
    guarded(DOING, || model.memory_cleanup())?;
    wait_for(model, DOING)?;
    Ok(figures_of(model).map_or(Bytes(0), |figures| figures.reserved))
}

fn fullest(job: &Job, start: &RunStart, shape: BatchShape) -> AlignedBatch {
    AlignedBatch::fullest(shape, &start.document.config, job.feed.reference_frames)
}
