//! What a run is given, and what became of it.
//!
//! In: nothing; these are the two ends of [`crate::run::trainer`].

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
use tandem_device::memory::{MemoryBaseline, WorstBatch};
use tandem_device::placement::{MemoryLimits, OpenDevices};
use tandem_model::checkpoint::Checkpoints;
use tandem_model::trained_voice::VoiceDocument;
use tandem_pipeline::CancelToken;
use tandem_pipeline::watchdog::OnFrozen;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{RunOutcome, Started};

/// What a run starts from: made by [`crate::run::start`].
pub struct RunStart {
    /// Weights and optimiser.
    pub train_state: TrainState,
    /// Readers that align the first steps.
    pub snapshots: AlignerSnapshots,
    /// Where the run stands.
    pub state: RunState,
    /// What the voice is.
    pub document: Arc<VoiceDocument>,
    /// Stretches of its speakers.
    pub speakers: Arc<Vec<Vec<f32>>>,
}

/// What a run works with.
pub struct Job {
    /// The corpus.
    pub prepared: Arc<Prepared>,
    /// The corpus to validate on, all of it; none: the rows of the first that are held out.
    pub validation: Option<Arc<Prepared>>,
    /// How it is fed.
    pub feed: FeedSettings,
    /// How the voice learns.
    pub settings: TrainSettings,
    /// All settings, for the checkpoint.
    pub config: serde_json::Value,
    /// Where.
    pub devices: OpenDevices,
    /// Budgets of the devices, where they are kept.
    pub limits: Option<MemoryLimits>,
    /// Whether every shape is met before the clock starts.
    pub warm_up: WarmUp,
    /// What they held before the voice was made.
    pub held: MemoryBaseline,
    /// Checkpoints go here.
    pub checkpoints: Checkpoints,
    /// The longest the model waits for its buffer to fill.
    pub start_delay: Duration,
    /// Curves, pictures and sound go here.
    pub log: LogSender,
    /// Events go here.
    pub recorder: Recorder,
    /// Ends the run after the step under way.
    pub cancel: CancelToken,
    /// Called when a stage or the training step itself does not end. Only the caller can end a
    /// training thread that does not return from its device.
    pub on_frozen: Option<OnFrozen>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// Why.
    pub ending: Ending,
    /// Steps done, of the whole run.
    pub step: u64,
    /// Checkpoints of this process.
    pub written: WrittenCheckpoints,
    /// The controlled start.
    pub started: Option<Started>,
    /// What the largest batch takes, where budgets are kept.
    pub worst: Option<WorstBatch>,
    /// What was held on the devices.
    pub memory: MemoryReport,
    /// What was met before the clock started.
    pub warm_up: WarmedUp,
    /// Shapes met.
    pub shapes: ShapeReport,
    /// Workers and slots at the end, as flags.
    pub flags: Vec<String>,
    /// The lowest validation loss.
    pub best: Option<f64>,
}

/// Why a run ended.
#[derive(Debug)]
pub enum Ending {
    /// All steps or epochs are done.
    Done,
    /// Validation stopped getting better.
    NoProgress,
    /// Asked to stop: a checkpoint is on disk.
    Interrupted,
    /// It could not go on; the last good state is on disk.
    Failed(TrainError),
}

impl Ending {
    /// In a word, for the checkpoint that it leaves.
    pub(crate) fn as_reason(&self) -> &'static str {
        match self {
            Ending::Done => "end",
            Ending::NoProgress => "no progress",
            Ending::Interrupted => "interrupt",
            Ending::Failed(_) => "failure",
        }
    }

    /// For the record.
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
