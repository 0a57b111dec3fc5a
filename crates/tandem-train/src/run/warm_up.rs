//! Every shape is met before the clock starts, so that no step of the run compiles a kernel.
//!
//! In: the shapes of the batch plan, and the learner as the run begins with it. Out: [`WarmedUp`].
//! The steps are real: reading on the data device, the copy, losses, gradients, optimiser. They
//! are done by a copy that is dropped, which takes as much memory as a checkpoint on its way to
//! the disk. Weights, optimiser and the order of batches stay as they were. Kernels of
//! validation and samples are not met here. Next: [`crate::run::trainer`].

use crate::TrainError;
use crate::feed::align::priors;
use crate::run::step::TrainState;
use std::fmt;
use std::time::{Duration, Instant};
use tandem_data::batch::BatchShape;
use tandem_device::backend::{compiles_kernels, guarded, wait_for};
use tandem_device::placement::OpenDevices;
use tandem_model::Module;
use tandem_model::gradients::LocalGradients;
use tandem_model::network::size::VoiceConfig;
use tandem_model::train_batch::AlignedBatch;
use tandem_pipeline::CancelToken;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Doing, Span, WarmUp as Met};
use tandem_units::Seconds;

/// The name of these steps in a trace: one span for each shape.
pub const STAGE: &str = "warm_up";

const DOING: &str = "warming up";

/// Whether shapes are met before the clock starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarmUp {
    /// Where a device compiles or tunes kernels.
    #[default]
    WhereCompiled,
    /// Everywhere, for tests.
    Always,
}

impl WarmUp {
    /// Whether these devices want it.
    pub fn is_due(self, devices: &OpenDevices) -> bool {
        let compiled = compiles_kernels(&devices.data) || compiles_kernels(&devices.model);
        self == WarmUp::Always || compiled
    }
}

/// What was done before the clock started. Prints as a line of the report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmedUp {
    /// A step on each of these shapes.
    Met {
        /// How many.
        shapes: usize,
        /// All together.
        took: Seconds,
    },
    /// Nothing: these devices compile no kernels.
    NotNeeded,
    /// Nothing: every batch has a shape of its own.
    NoFixedShapes,
}

impl fmt::Display for WarmedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WarmedUp::Met { shapes: 1, took } => {
                write!(f, "a step on 1 shape before the clock started: {took}")
            }
            WarmedUp::Met { shapes, took } => {
                write!(f, "a step on each of {shapes} shapes before the clock started: {took}")
            }
            WarmedUp::NoFixedShapes => f.write_str("none: every batch has a shape of its own"),
            WarmedUp::NotNeeded => f.write_str("none: the processor compiles no kernels"),
        }
    }
}

/// Who meets the shapes: a copy of this learner.
pub struct WarmUpModel<'a> {
    /// Whose copy; it stays as it is.
    pub train_state: &'a TrainState,
    /// Where.
    pub devices: &'a OpenDevices,
    /// The shape of the voice.
    pub config: &'a VoiceConfig,
    /// Frames of a reference.
    pub reference_frames: usize,
    /// Where spans go.
    pub recorder: &'a Recorder,
    /// Ends it between two shapes.
    pub cancel: &'a CancelToken,
}

impl WarmUpModel<'_> {
    /// One step on each shape, until the run is stopped.
    pub fn meet(&self, shapes: &[BatchShape]) -> Result<WarmedUp, TrainError> {
        let (mut count, mut took) = (0, Duration::ZERO);
        for &shape in shapes {
            if self.cancel.is_cancelled() {
                break;
            }
            let from = Instant::now();
            guarded(DOING, || self.step_on(shape))?;
            // The clock must not start while kernels of the last shape are still at work.
            wait_for(&self.devices.data, DOING)?;
            wait_for(&self.devices.model, DOING)?;
            count += 1;
            took += from.elapsed();
            self.tell(shape, count, shapes.len(), from);
        }
        Ok(WarmedUp::Met { shapes: count, took: Seconds(took.as_secs_f64()) })
    }

    fn step_on(&self, shape: BatchShape) {
        let batch = AlignedBatch::fullest(shape, self.config, self.reference_frames);
        let mut copy = self.train_state.clone();
        let encoder = copy.voice.encoder.valid().fork(&self.devices.data);
        drop(priors(&encoder, &batch, &self.devices.data));
        let placed = batch.to_device(&self.devices.data).to_device(&self.devices.model);
        copy.accumulate_gradients(&placed);
        let next = copy.step + 1;
        drop(copy.optimizer_step(next, &mut LocalGradients));
    }

    fn tell(&self, shape: BatchShape, number: usize, of: usize, from: Instant) {
        let (number, of, took) = (number as u32, of as u32, from.elapsed().into());
        let shape = [shape.rows as u32, shape.symbols as u32, shape.frames as u32];
        self.recorder.send(Met { shape, number, total: of, took });
        let Some(clock) = self.recorder.clock() else { return };
        self.recorder.send(Span {
            stage: STAGE.into(),
            worker: 0,
            ticket: None,
            doing: Doing::Busy,
            begin: clock.at(from),
            end: clock.now(),
        });
    }
}
