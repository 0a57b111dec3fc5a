//! A whole training step as one CUDA graph: forward, backward, optimizer.
//!
//! In: a voice, an optimizer that works in place, a batch. Out: [`StepGraph`], which does a step on any batch of the same
//! shape with one launch. What a graph reads and writes must stay where it
//! is, so the batch is copied into memory of the graph, the values of the step are read from memory
//! ([`crate::optimizer::Optimizer::prepare_step`]), and its result is copied out. Captures are exclusive in the process: no
//! other thread may use a card meanwhile.

use crate::between_threads::flush;
use crate::micro_batches::batch_gradients;
use crate::network::voice::Voice;
use crate::optimizer::Optimizer;
use crate::train_batch::{DeviceBatch, UploadedBatch};
use crate::upload::gpu_of;
use burn::backend::{Backend, BackendGraph, Cube, ExecutionError};
use burn::tensor::{Device, Tensor};
use burn_cubecl::CubeDevice;
use std::fmt;
use tandem_device::backend::{DeviceError, guarded, wait_for};

const DOING: &str = "capturing a training step as a CUDA graph";
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

/// Whether steps on a device can be captured.
pub fn has_graphs(device: &Device) -> bool {
    gpu_of(device).is_some_and(|gpu| Cube::name(&gpu).contains("cuda"))
}

impl StepGraph {
    /// Captures a step for batches of this shape, on a device that [has graphs](has_graphs), with an optimizer that works
    /// in place on the weights of `voice` (the rounded ones, in 16 bits). It runs a few times, and changes nothing. After an
    /// error, weights and state in place are lost: the library refuses to read what a capture should have written.
    pub fn capture(
        voice: &Voice,
        optimizer: &Optimizer,
        batch: &UploadedBatch,
        device: &Device,
    ) -> Result<StepGraph, DeviceError> {
        let gpu = gpu_of(device).expect("a device that has graphs");
        let example = batch;
        let batch = batch.for_this_thread().expect("a batch on that device");
        let tensors = batch.tensors();
        let step =
            || optimizer.change_in_place(batch_gradients(voice, &tensors, optimizer.loss_scale()));
        let work = || {
            Cube::graph_prepare(&gpu)?;
            optimizer.without_change(|| record(&gpu, step))
        };
        let recorded = guarded(DOING, work).and_then(|recorded| recorded.map_err(refused));
        if recorded.is_err() {
            // The stream must not stay in a capture.
            let _ = guarded(DOING, || Cube::graph_stop_capture(&gpu));
        }
        let (graph, result) = recorded?;
        let graph = StepGraph { graph, device: device.clone(), batch, result, _tensors: tensors };
        // A graph that cannot run is refused here, and no step of the run loads a kernel for what surrounds it.
        let run = || {
            let result = graph.run(example);
            flush(device);
            result
        };
        let result = guarded(DOING, || optimizer.without_change(run))?;
        wait_for(device, DOING)?;
        drop(result);
        Ok(graph)
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

fn refused(error: ExecutionError) -> DeviceError {
    DeviceError::broke(DOING, &error.to_string())
}

impl fmt::Debug for StepGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepGraph").field("batch", &self.batch).finish_non_exhaustive()
    }
}
