//! Input and output types of a training run.
//!
//! [`Job`] and [`RunStart`] go into [`crate::run::trainer`], [`Outcome`] comes out.

use crate::TrainError;
use crate::feed::FeedSettings;
use crate::feed::align::snapshots::AlignerSnapshots;
use crate::log::LogSender;
use crate::prepare::Prepared;
use crate::run::checkpoint_writer::WrittenCheckpoints;
use crate::run::memory_watch::MemoryReport;
use crate::run::shapes::ShapeReport;
use crate::run::state::RunState;
use crate::run::step::TrainState;
use crate::run::warm_up::{WarmUp, WarmedUp};
use crate::train_settings::TrainSettings;
use std::sync::Arc;
use std::time::Duration;
use tandem_cluster::Cluster;
use tandem_device::memory::{MemoryBaseline, PhaseWatch, WorstBatch};
use tandem_device::placement::{MemoryLimits, OpenDevices};
use tandem_model::checkpoint::Checkpoints;
use tandem_model::trained_voice::VoiceDocument;
use tandem_pipeline::CancelToken;
use tandem_pipeline::watchdog::OnFrozen;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{RunOutcome, Started};

/// The state at the start, created by [`crate::run::start`] or [`crate::run::resume`].
pub struct RunStart {
    /// Weights and optimizer.
    pub train_state: TrainState,
    /// Text encoders that align the first steps.
    pub snapshots: AlignerSnapshots,
    pub state: RunState,
    pub document: Arc<VoiceDocument>,
    /// Reference segments of the speakers: `[frames, bands]` each.
    pub speakers: Arc<Vec<Vec<f32>>>,
}

/// Everything a run needs.
pub struct Job {
    pub prepared: Arc<Prepared>,
    /// The corpus to validate on, with all its rows; none: the held-out rows of `prepared`.
    pub validation: Option<Arc<Prepared>>,
    pub feed: FeedSettings,
    pub settings: TrainSettings,
    /// All settings, for the checkpoint.
    pub config: serde_json::Value,
    pub devices: OpenDevices,
    /// Memory budgets, where they are enforced.
    pub limits: Option<MemoryLimits>,
    pub warm_up: WarmUp,
    /// What they held before the voice was made.
    pub held: MemoryBaseline,
    /// Told which phase begins.
    pub phases: PhaseWatch,
    /// None on a rank that writes no checkpoints.
    pub checkpoints: Option<Checkpoints>,
    /// The ranks that train together; none: this process trains alone.
    pub cluster: Option<Cluster>,
    /// Maximum wait for the slots to fill before the first step.
    pub start_delay: Duration,
    pub log: LogSender,
    pub recorder: Recorder,
    /// Ends the run after the current step.
    pub cancel: CancelToken,
    /// Called when a stage or the training step itself does not end. Only the caller can end a
    /// training thread that does not return from its device.
    pub on_frozen: Option<OnFrozen>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    pub ending: Ending,
    /// Steps done since the start of the whole run.
    pub step: u64,
    /// Checkpoints that this process wrote.
    pub written: WrittenCheckpoints,
    /// How the start waited for the slots to fill.
    pub started: Option<Started>,
    /// Memory of the largest batch, where budgets are enforced.
    pub worst: Option<WorstBatch>,
    pub memory: MemoryReport,
    pub warm_up: WarmedUp,
    pub shapes: ShapeReport,
    /// Workers and slots at the end, as command-line flags.
    pub flags: Vec<String>,
    /// The lowest acoustic validation loss.
    pub best: Option<f64>,
}

/// Why a run ended.
#[derive(Debug)]
pub enum Ending {
    /// All steps or epochs are done.
    Done,
    /// Validation stopped getting better.
    NoProgress,
    /// Stopped by the user; a checkpoint is on disk.
    Interrupted,
    /// Stopped by an error; the last good state is on disk.
    Failed(TrainError),
}

impl Ending {
    /// Short reason, stored in the final checkpoint.
    pub(crate) fn as_reason(&self) -> &'static str {
        match self {
            Ending::Done => "end",
            Ending::NoProgress => "no progress",
            Ending::Interrupted => "interrupt",
            Ending::Failed(_) => "failure",
        }
    }

    /// For the run record.
    pub(crate) fn as_event(&self) -> (RunOutcome, Option<String>) {
        match self {
            Ending::Done => (RunOutcome::Done, None),
            Ending::NoProgress => {
                (RunOutcome::Done, Some("validation stopped getting better".into()))
            }
            Ending::Interrupted => (RunOutcome::Interrupted, None),
            Ending::Failed(error) => (RunOutcome::Failed, Some(error.to_string())),
        }
    }
}
