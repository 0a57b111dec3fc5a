//! What a person looks at while a voice learns: curves, pictures, sound. (Signatures; bodies follow.)

use crate::TrainError;
use crate::picture::Alignment;
use std::path::Path;
use std::time::Duration;
use tandem_data::audio::mel::MelConfig;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::Loss;
use tandem_units::{Bytes, SampleRate};

/// How a run's log is kept.
#[derive(Clone, Debug)]
pub struct RunLogSettings {
    /// What the mel frames in pictures mean.
    pub mel: MelConfig,
    /// The first step of this run: 1, or the one after the checkpoint it resumes from.
    pub first_step: u64,
    /// The most messages that wait.
    pub queue: usize,
    /// The most bytes they may hold.
    pub queue_bytes: Bytes,
    /// The longest a scalar waits for its value.
    pub values_within: Duration,
    /// The longest closing the log may take.
    pub close_within: Duration,
}

/// Owns the log's thread. Dropping it closes the log as [`RunLog::finish`] does.
pub struct RunLog(());

/// Sends messages to a log. Cheap to clone; never waits.
#[derive(Clone)]
pub struct LogSender(());

/// One thing to log. Steps are counted from one.
#[derive(Clone, Debug)]
pub enum LogMessage {
    /// Numbers by name, such as `loss/total`; they may arrive later.
    Scalars { step: u64, values: Vec<Loss> },
    /// Mel frames, `[frames, bands]`.
    Mel { step: u64, name: String, frames: Vec<f32> },
    /// Which frames belong to which symbol.
    Alignment { step: u64, name: String, alignment: Alignment },
    /// One channel of sound, full scale is one.
    Audio { step: u64, name: String, rate: SampleRate, samples: Vec<f32> },
    /// Words.
    Text { step: u64, name: String, text: String },
}

/// How a log ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogEnding {
    /// Messages that are on disk.
    pub written: u64,
    /// Messages that found no room.
    pub dropped: u64,
    /// Numbers that did not come in time.
    pub late: u64,
    /// Writes that failed.
    pub errors: u64,
    /// The first failure.
    pub first_error: Option<String>,
}

impl RunLogSettings {
    /// The usual ones.
    pub fn new(mel: MelConfig) -> RunLogSettings { todo!() }
}

impl RunLog {
    /// Starts a log in the run's directory, which must exist: event files for TensorBoard beside
    /// whatever is there, and `samples/step-000100-NAME.wav`, `-mel.png`, `-alignment.png`, `.txt`.
    pub fn start(directory: &Path, settings: RunLogSettings, recorder: Recorder) -> Result<RunLog, TrainError> { todo!() }
    /// A handle to send with.
    pub fn sender(&self) -> LogSender { todo!() }
    /// Writes what is queued and ends the thread. Call it before the recording is finished: what was lost goes there as a warning.
    pub fn finish(self) -> LogEnding { todo!() }
}

impl LogSender {
    /// A sender that logs nothing.
    pub fn off() -> LogSender { todo!() }
    /// Sends a message. Never waits: without room it is dropped and counted.
    pub fn send(&self, message: LogMessage) { todo!() }
}
