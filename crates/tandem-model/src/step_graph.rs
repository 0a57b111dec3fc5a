//! A whole training step as one CUDA graph: forward, backward, optimizer.
//!
//! In: a voice, an optimizer that works in place, a batch. Out: [`StepGraph`], which does a step on any batch of the same
//! shape with one launch. What a graph reads and writes must stay where it
//! is, so the batch is copied into memory of the graph, the values of the step are read from memory
//! ([`crate::optimizer::Optimizer::prepare_step`]), and its result is copied out. Captures are exclusive in the process: no
//! other thread may use a card meanwhile.

use crate::between_threads::flush;
use crate::graph_error::GraphError;
use crate::loss_scale::LossScale;
use crate::micro_batches::batch_gradients;
use crate::network::voice::Voice;
use crate::optimizer::Optimizer;
use crate::train_batch::{DeviceBatch, UploadedBatch};
use crate::upload::gpu_of;
use burn::backend::{Backend, BackendGraph, Cube, ExecutionError};
use burn::tensor::{Device, Tensor};
use burn_cubecl::CubeDevice;
use std::fmt;

/// Runs before a capture: the first ones compile and tune kernels, the next ones need the memory that the capture needs.
const RUNS: usize = 4;

/// A step for batches of one shape.
#[derive(Clone)]
pub struct StepGraph {
    graph: BackendGraph<Cube>,
    device: Device,
    /// Where the graph reads its batch.
    batch: UploadedBatch,
    /// Where it writes its result.
    result: Tensor<1>,
    /// Their memory stays taken.
    _tensors: DeviceBatch,
}

impl StepGraph {
    /// Captures a step for batches of this shape, with an optimizer that works in place on the weights of `voice` (the
    /// rounded ones, in 16 bits). It runs a few times, and changes nothing. After an error, weights and state in place are
    /// lost: the library refuses to read what a capture should have written.
    pub fn capture(
        voice: &Voice,
        optimizer: &Optimizer,
        batch: &UploadedBatch,
        device: &Device,
    ) -> Result<StepGraph, GraphError> {
        let not_cuda = || GraphError("the model is not on a CUDA device".into());
        let gpu = gpu_of(device).filter(|gpu| Cube::name(gpu).contains("cuda"));
        let gpu = gpu.ok_or_else(not_cuda)?;
        let batch = batch.for_this_thread().ok_or_else(not_cuda)?;
        let tensors = batch.tensors();
        let scale = optimizer.loss_scale().map(LossScale::values);
        optimizer.prepare_no_step();
        flush(device);
        Cube::graph_prepare(&gpu).map_err(refused)?;
        let recorded = record(&gpu, || step(voice, optimizer, &tensors));
        if recorded.is_err() {
            // The stream must not stay in a capture.
            let _ = Cube::graph_stop_capture(&gpu);
        }
        let (graph, result) = recorded.map_err(refused)?;
        // The runs halved it, as steps with a gradient that is not finite do.
        scale.into_iter().for_each(|scale| optimizer.put_loss_scale(scale));
        Ok(StepGraph { graph, device: device.clone(), batch, result, _tensors: tensors })
    }

    /// Whether it does steps on batches like this one.
    pub fn fits(&self, batch: &UploadedBatch) -> bool {
        self.batch.has_shape_of(batch)
    }

    /// The step on another batch of the same shape, with the settings of [`Optimizer::prepare_step`].
    ///
    /// # Panics
    /// If the card is lost.
    pub fn run(&self, batch: &UploadedBatch) -> Tensor<1> {
        flush(&self.device);
        self.batch.fill(batch);
        let gpu = gpu_of(&self.device).expect("captured on a GPU");
        // SAFETY: batch, result and the tensors between them belong to this graph, weights and state to the optimizer in
        // place; other readers take a copy on this thread.
        let ran = unsafe { Cube::graph_replay(&gpu, &self.graph) };
        ran.unwrap_or_else(|error| panic!("a CUDA graph cannot be launched: {error}"));
        // The next step overwrites the result, and its reader may be late.
        self.result.clone() * 1.0
    }
}

/// Runs the work until it needs no new memory, then records it.
fn record(
    gpu: &CubeDevice,
    mut work: impl FnMut() -> Tensor<1>,
) -> Result<(BackendGraph<Cube>, Tensor<1>), ExecutionError> {
    for _ in 0..RUNS {
        // What is dropped before it ran is left out, so it is kept.
        let result = work();
        Cube::sync(gpu)?;
        drop(result);
    }
    Cube::graph_start_capture(gpu)?;
    let result = work();
    Ok((Cube::graph_stop_capture(gpu)?, result))
}

/// Forward, backward, optimizer. Returns the losses, their scale if there is one, and the norm of the gradient.
fn step(voice: &Voice, optimizer: &Optimizer, batch: &DeviceBatch) -> Tensor<1> {
    let mut sum = batch_gradients(voice, batch, optimizer.loss_scale());
    let losses = sum.losses.take().expect("the losses of a batch");
    let share = optimizer.share().expect("an optimizer that works in place");
    let values = losses.means(share).into_iter();
    // A value of its own: the step changes the scale.
    let scale = optimizer.loss_scale().map(|scale| scale.factor() * 1.0);
    let values: Vec<Tensor<1>> = values.chain(scale).collect();
    let moved = optimizer.step_in_place(sum.into_tensors());
    Tensor::cat(values.into_iter().chain([moved.gradient_norm]).collect(), 0)
}

fn refused(error: impl fmt::Display) -> GraphError {
    GraphError(error.to_string())
}

impl fmt::Debug for StepGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepGraph").field("batch", &self.batch).finish_non_exhaustive()
    }
}
