//! What a person looks at while a voice learns: curves, pictures, sound, words.
//!
//! In: [`LogMessage`]s from any thread through [`LogSender::send`], which never waits. Out: an event
//! file for TensorBoard and files under `samples/` in the run's directory, written by one thread
//! of its own ([`worker`]). That thread waits for losses that are still on the device; nobody else
//! does. What finds no room is dropped and counted; a disk that fails costs one warning, never the
//! run.

mod worker; // the thread that draws and writes
mod wave; // audio files
pub mod picture; // mel frames and alignments, drawn

use crate::TrainError;
use crate::log::picture::Alignment;
use crossbeam_queue::ArrayQueue;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;
use tandem_data::audio::mel::MelConfig;
use tandem_telemetry::event::{Loss, Warning};
use tandem_telemetry::tensorboard::EventFile;
use tandem_telemetry::{Ending, Recorder, TelemetryError};
use tandem_units::{Bytes, SampleRate};
use worker::LogWorker;

/// One thing to log. Steps are counted from one.
#[derive(Clone, Debug)]
pub enum LogMessage {
    /// Points of curves by name, such as `loss/total`; their values may arrive later.
    Scalars {
        /// At this step.
        step: u64,
        /// Names and values.
        values: Vec<Loss>,
    },
    /// Mel features. Shape: `[frames, bands]`, frame after frame.
    Mel {
        /// At this step.
        step: u64,
        /// Whose, such as `en`.
        name: String,
        /// The values.
        frames: Vec<f32>,
    },
    /// Which frames belong to which symbol.
    Alignment {
        /// At this step.
        step: u64,
        /// Whose.
        name: String,
        /// The path or the weights.
        alignment: Alignment,
    },
    /// One channel of sound; full scale is one, what is louder is cut.
    Audio {
        /// At this step.
        step: u64,
        /// Whose.
        name: String,
        /// Samples per second.
        rate: SampleRate,
        /// The samples.
        samples: Vec<f32>,
    },
    /// Words.
    Text {
        /// At this step.
        step: u64,
        /// Whose.
        name: String,
        /// The words.
        text: String,
    },
}

/// How a log is kept.
#[derive(Clone, Debug)]
pub struct RunLogSettings {
    /// What mel frames mean: the axes of pictures.
    pub mel: MelConfig,
    /// The first step of this run: 1, or the one after the checkpoint it goes on from.
    pub first_step: u64,
    /// The most messages that wait.
    pub queue: usize,
    /// The most bytes they may hold.
    pub queue_bytes: Bytes,
    /// The longest a point waits for its value.
    pub values_within: Duration,
    /// The longest closing the log may take.
    pub close_within: Duration,
}

impl RunLogSettings {
    /// The usual ones, for a run that starts afresh.
    pub fn new(mel: MelConfig) -> RunLogSettings {
        RunLogSettings {
            mel,
            first_step: 1,
            queue: 1024,
            queue_bytes: Bytes::mib(64),
            values_within: Duration::from_secs(10),
            close_within: Duration::from_secs(10),
        }
    }
}

/// Owns the log's thread. Dropping it closes the log as [`RunLog::finish`] does.
pub struct RunLog {
    sender: LogSender,
    recorder: Recorder,
    close_within: Duration,
    thread: Option<JoinHandle<()>>,
    // Its other end is dropped when the thread ends, however it ends.
    ended: Receiver<()>,
}

/// Sends messages to a log. Cheap to clone; every thread may have its own.
#[derive(Clone)]
pub struct LogSender(Option<Arc<Tray>>);

/// What senders, the thread and the owner share: messages that wait, and counts.
struct Tray {
    messages: ArrayQueue<LogMessage>,
    writer: OnceLock<Thread>,
    closing: AtomicBool,
    room: u64,
    waiting: AtomicU64,
    written: AtomicU64,
    dropped: AtomicU64,
    late: AtomicU64,
    errors: AtomicU64,
    first_error: OnceLock<String>,
}

/// How a log ended.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEnding {
    /// Messages that were written whole.
    pub written: u64,
    /// Messages that found no room.
    pub dropped: u64,
    /// Values that did not come in time.
    pub late: u64,
    /// Messages that could not be drawn or written.
    pub errors: u64,
    /// The first reason.
    pub first_error: Option<String>,
    /// Whether all of it is on disk.
    pub ending: Ending,
}

impl RunLog {
    /// Starts a log in the run's directory, which must exist. Event files of earlier runs stay as
    /// they are; a sample of the same step and name is replaced.
    pub fn start(
        directory: &Path,
        settings: RunLogSettings,
        recorder: Recorder,
    ) -> Result<RunLog, TrainError> {
        let events = EventFile::create(directory, settings.first_step)?;
        let tray = Arc::new(Tray::new(settings.queue, settings.queue_bytes));
        let close_within = settings.close_within;
        let samples = directory.join("samples");
        let mut worker =
            LogWorker::new(samples, events, settings, Arc::clone(&tray), recorder.clone());
        let (end, ended): (SyncSender<()>, _) = sync_channel(0);
        let thread = std::thread::Builder::new()
            .name("tandem-log".into())
            .spawn(move || {
                let _end = end;
                worker.run();
            })
            .map_err(|source| TelemetryError::Thread { what: "writes the run's log", source })?;
        // One thread per tray: a second name cannot come.
        let _ = tray.writer.set(thread.thread().clone());
        let sender = LogSender(Some(tray));
        Ok(RunLog { sender, recorder, close_within, thread: Some(thread), ended })
    }

    /// A handle to send with.
    pub fn sender(&self) -> LogSender {
        self.sender.clone()
    }

    /// Writes what is queued and ends the thread, within [`RunLogSettings::close_within`]. What was
    /// lost goes to the record as a warning, so finish the recording after this.
    pub fn finish(mut self) -> LogEnding {
        self.close()
    }

    fn close(&mut self) -> LogEnding {
        let Some(tray) = &self.sender.0 else { return LogEnding::nothing() };
        let Some(thread) = self.thread.take() else { return tray.ending(Ending::Whole) };
        tray.closing.store(true, Ordering::Release);
        tray.wake();
        let waited = self.ended.recv_timeout(self.close_within);
        let ending = match waited {
            // A disk that does not answer keeps its thread: it is left behind, not waited for.
            Err(RecvTimeoutError::Timeout) => tray.ending(Ending::Cut),
            _ => tray.ending(if thread.join().is_ok() { Ending::Whole } else { Ending::Cut }),
        };
        if !ending.is_whole() {
            let text = ending.to_string();
            self.recorder.send(Warning { code: "run_log".into(), text });
        }
        ending
    }
}

impl Drop for RunLog {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.close();
        }
    }
}

impl LogSender {
    /// A sender that logs nothing, for code that runs without a log.
    pub fn off() -> LogSender {
        LogSender(None)
    }

    /// Sends a message. Never waits: without room the message is dropped and counted.
    pub fn send(&self, message: LogMessage) {
        let Some(tray) = &self.0 else { return };
        let size = message.size().0;
        // Pictures and sound may fill three quarters: curves always have the rest to themselves.
        let room = match message {
            LogMessage::Scalars { .. } => tray.room,
            _ => tray.room / 4 * 3,
        };
        let taken = tray.waiting.fetch_add(size, Ordering::AcqRel) + size <= room
            && !tray.closing.load(Ordering::Acquire)
            && tray.messages.push(message).is_ok();
        if !taken {
            tray.waiting.fetch_sub(size, Ordering::AcqRel);
            tray.dropped.fetch_add(1, Ordering::Relaxed);
        }
        // The thread looks by itself; waking it is a call to the system, for when room runs out.
        if tray.messages.len() * 2 == tray.messages.capacity() {
            tray.wake();
        }
    }
}

impl LogMessage {
    /// What it holds while it waits.
    pub fn size(&self) -> Bytes {
        let held = match self {
            LogMessage::Scalars { values, .. } => Bytes::of_slice(values),
            LogMessage::Mel { frames, .. } => Bytes::of_slice(frames),
            LogMessage::Alignment { alignment: Alignment::Path(lengths), .. } => {
                Bytes::of_slice(lengths)
            }
            LogMessage::Alignment { alignment: Alignment::Soft { weights, .. }, .. } => {
                Bytes::of_slice(weights)
            }
            LogMessage::Audio { samples, .. } => Bytes::of_slice(samples),
            LogMessage::Text { text, .. } => Bytes::of_slice(text.as_bytes()),
        };
        held + Bytes(size_of::<LogMessage>() as u64)
    }
}

impl Tray {
    fn new(messages: usize, room: Bytes) -> Tray {
        Tray {
            messages: ArrayQueue::new(messages.max(2)),
            writer: OnceLock::new(),
            closing: AtomicBool::new(false),
            room: room.0,
            waiting: AtomicU64::new(0),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            late: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            first_error: OnceLock::new(),
        }
    }

    fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    fn ending(&self, ending: Ending) -> LogEnding {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LogEnding {
            written: count(&self.written),
            dropped: count(&self.dropped),
            late: count(&self.late),
            errors: count(&self.errors),
            first_error: self.first_error.get().cloned(),
            ending,
        }
    }
}

impl LogEnding {
    fn nothing() -> LogEnding {
        Tray::new(2, Bytes(0)).ending(Ending::Whole)
    }

    /// Whether everything that was sent is on disk.
    pub fn is_whole(&self) -> bool {
        self.dropped + self.late + self.errors == 0 && self.ending == Ending::Whole
    }
}

impl fmt::Display for LogEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_whole() {
            return write!(f, "the run's log is complete: {} messages", self.written);
        }
        let mut lost = Vec::new();
        if self.dropped > 0 {
            lost.push(format!("{} messages found no room", self.dropped));
        }
        if self.errors > 0 {
            let first = self.first_error.as_deref().unwrap_or("no reason given");
            lost.push(format!("{} could not be written, first: {first}", self.errors));
        }
        if self.late > 0 {
            lost.push(format!("{} values came too late", self.late));
        }
        if self.ending == Ending::Cut {
            lost.push("the disk did not answer in time".into());
        }
        write!(f, "the run's log is incomplete: {}", lost.join("; "))
    }
}

#[cfg(test)]
mod tests;
