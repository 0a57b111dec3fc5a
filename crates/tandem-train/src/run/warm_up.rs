//! Runs one step on every shape before training starts, so that no step of the run compiles a
//! kernel.
//!
//! In: the shapes of the batch plan, and the training state at the start. Out: [`WarmedUp`]. The
//! steps are real: text encoding on the data device, transfer, losses, gradients, optimizer. They
//! change nothing: they run on a copy that is dropped or, in place, with a share of NaN.
//! Weights, optimizer and batch order do not change. Kernels of validation and samples are not
//! warmed up. Next: [`crate::run::trainer`].

use crate::TrainError;
use crate::feed::align::priors;
use crate::run::step::TrainState;
use std::fmt;
use std::time::{Duration, Instant};
use tandem_data::batch::BatchShape;
use tandem_device::backend::{compiles_kernels, guarded, wait_for};
use tandem_device::placement::OpenDevices;
use tandem_model::between_threads::{copy_to, flush};
use tandem_model::network::size::VoiceConfig;
use tandem_model::train_batch::AlignedBatch;
use tandem_pipeline::CancelToken;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Doing, Span, WarmUp as ShapeWarmedUp};
use tandem_units::Seconds;

/// Stage name in a trace: one span per shape.
pub const STAGE: &str = "warm_up";

const DOING: &str = "warming up";

/// When to warm up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarmUp {
    /// Only where a device compiles or tunes kernels.
    #[default]
    WhereCompiled,
    /// On every device, for tests.
    Always,
}

impl WarmUp {
    pub fn is_due(self, devices: &OpenDevices) -> bool {
        let compiled = compiles_kernels(&devices.data) || compiles_kernels(&devices.model);
        self == WarmUp::Always || compiled
    }
}

/// The result of the warm-up. Prints as a line of the report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmedUp {
    /// One step on each of `shapes` shapes.
    Done { shapes: usize, took: Seconds },
    /// These devices compile no kernels.
    NotNeeded,
    /// Every batch has a shape of its own.
    NoFixedShapes,
}

impl fmt::Display for WarmedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WarmedUp::Done { shapes: 1, took } => {
                write!(f, "a step on 1 shape before training started: {took}")
            }
            WarmedUp::Done { shapes, took } => {
                write!(f, "a step on each of {shapes} shapes before training started: {took}")
            }
            WarmedUp::NoFixedShapes => f.write_str("none: every batch has a shape of its own"),
            WarmedUp::NotNeeded => f.write_str("none: the CPU compiles no kernels"),
        }
    }
}

/// The model and the devices that are warmed up.
pub struct WarmUpModel<'a> {
    /// Never changed.
    pub train_state: &'a TrainState,
    pub devices: &'a OpenDevices,
    pub config: &'a VoiceConfig,
    pub reference_frames: usize,
    pub recorder: &'a Recorder,
    /// Checked between two shapes.
    pub cancel: &'a CancelToken,
}

impl WarmUpModel<'_> {
    /// Runs one step on each shape, until the run is cancelled.
    pub fn run(&self, shapes: &[BatchShape]) -> Result<WarmedUp, TrainError> {
        let (mut count, mut took) = (0, Duration::ZERO);
        for &shape in shapes {
            if self.cancel.is_cancelled() {
                break;
            }
            let from = Instant::now();
            guarded(DOING, || self.step_on(shape))?;
            // Training must not start while kernels of the last shape still run.
            wait_for(&self.devices.data, DOING)?;
            wait_for(&self.devices.model, DOING)?;
            count += 1;
            took += from.elapsed();
            self.report(shape, count, shapes.len(), from);
        }
        self.copy_for_others()?;
        Ok(WarmedUp::Done { shapes: count, took: Seconds(took.as_secs_f64()) })
    }

    fn step_on(&self, shape: BatchShape) {
        let batch = AlignedBatch::fullest(shape, self.config, self.reference_frames);
        let encoder = copy_to(&self.train_state.voice.encoder, &self.devices.data);
        drop(priors(&encoder, &batch, &self.devices.data));
        self.train_state.rehearse(&batch.to_device(&self.devices.model));
        // As after every step of the run: the same operations are fused.
        flush(&self.devices.model);
    }

    /// The copies that steps are followed by, each of which is kept until it is made.
    fn copy_for_others(&self) -> Result<(), TrainError> {
        let copies = guarded(DOING, || {
            let copies = self.train_state.rehearse_copies();
            flush(&self.devices.model);
            copies
        })?;
        wait_for(&self.devices.model, DOING)?;
        drop(copies);
        Ok(())
    }

    fn report(&self, shape: BatchShape, number: usize, of: usize, from: Instant) {
        let (number, of, took) = (number as u32, of as u32, from.elapsed().into());
        let shape = [shape.rows as u32, shape.symbols as u32, shape.frames as u32];
        self.recorder.send(ShapeWarmedUp { shape, number, total: of, took });
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
