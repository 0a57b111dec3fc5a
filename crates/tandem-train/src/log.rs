//! The log of a run for people: curves, pictures, sound and text.
//!
//! In: [`LogMessage`]s from any thread through [`LogSender::send`], which never waits. Out: an event
//! file for TensorBoard and files under `samples/` in the run's directory, written by one thread
//! ([`worker`]). Only that thread waits for losses that are still on the device. A message that
//! finds the queue full is dropped and counted. A disk error causes a warning and never stops the
//! run.

mod worker; // the thread that draws and writes
pub mod picture; // plots of mel frames and alignments

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
use tandem_audio::mel::MelConfig;
use tandem_telemetry::event::{Loss, Warning};
use tandem_telemetry::tensorboard::EventFile;
use tandem_telemetry::{Ending, Recorder, TelemetryError};
use tandem_units::{Bytes, SampleRate};
use worker::LogWorker;

/// One message to log. Steps are counted from 1.
#[derive(Clone, Debug)]
pub enum LogMessage {
    /// Points of curves by name, such as `loss/total`; their values may arrive later.
    Scalars {
        step: u64,
        values: Vec<Loss>,
    },
    /// Mel features. Shape: `[frames, bands]`, frame after frame.
    Mel {
        step: u64,
        /// Name of the sample, such as `en`.
        name: String,
        frames: Vec<f32>,
    },
    /// Which frames belong to which symbol.
    Alignment {
        step: u64,
        name: String,
        alignment: Alignment,
    },
    /// One channel of sound. Full scale is 1.0; louder samples are clipped.
    Audio {
        step: u64,
        name: String,
        rate: SampleRate,
        samples: Vec<f32>,
    },
    Text {
        step: u64,
        name: String,
        text: String,
    },
}

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct RunLogSettings {
    /// Gives the axes of pictures their units.
    pub mel: MelConfig,
    /// The first step of this run: 1, or the step after the checkpoint that is resumed.
    pub first_step: u64,
    /// Capacity of the queue, in messages.
    pub queue: usize,
    /// Capacity of the queue, in bytes.
    pub queue_bytes: Bytes,
    /// Maximum wait for the value of a point.
    pub values_within: Duration,
    /// Maximum duration of closing the log.
    pub close_within: Duration,
}

impl RunLogSettings {
    /// Default settings for a new run.
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
pub struct LogSender(Option<Arc<LogQueue>>);

/// Shared by senders, the log thread and the owner: waiting messages and counters.
struct LogQueue {
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
    /// Messages that were written completely.
    pub written: u64,
    /// Messages that were dropped: the queue or the event file's buffer was full, or the log was closing.
    pub dropped: u64,
    /// Values that did not arrive in time.
    pub late: u64,
    /// Messages that could not be drawn or written.
    pub errors: u64,
    /// The first of these errors.
    pub first_error: Option<String>,
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
        let queue = Arc::new(LogQueue::new(settings.queue, settings.queue_bytes));
        let close_within = settings.close_within;
        let samples = directory.join("samples");
        let mut worker =
            LogWorker::new(samples, events, settings, Arc::clone(&queue), recorder.clone());
        let (end, ended): (SyncSender<()>, _) = sync_channel(0);
        let thread = std::thread::Builder::new()
            .name("tandem-log".into())
            .spawn(move || {
                let _end = end;
                worker.run();
            })
            .map_err(|source| TelemetryError::Thread { what: "writes the run's log", source })?;
        // Each queue has one thread, so this cannot be set twice.
        let _ = queue.writer.set(thread.thread().clone());
        let sender = LogSender(Some(queue));
        Ok(RunLog { sender, recorder, close_within, thread: Some(thread), ended })
    }

    pub fn sender(&self) -> LogSender {
        self.sender.clone()
    }

    /// Writes what is queued and ends the thread, within [`RunLogSettings::close_within`]. Lost
    /// messages cause a warning in the record, so finish the recording after this.
    pub fn finish(mut self) -> LogEnding {
        self.close()
    }

    fn close(&mut self) -> LogEnding {
        let Some(queue) = &self.sender.0 else { return LogEnding::empty() };
        let Some(thread) = self.thread.take() else { return queue.ending(Ending::Whole) };
        queue.closing.store(true, Ordering::Release);
        queue.wake();
        let waited = self.ended.recv_timeout(self.close_within);
        let ending = match waited {
            // A thread that hangs on the disk is abandoned.
            Err(RecvTimeoutError::Timeout) => queue.ending(Ending::Cut),
            _ => queue.ending(if thread.join().is_ok() { Ending::Whole } else { Ending::Cut }),
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
    /// A sender that discards all messages.
    pub fn off() -> LogSender {
        LogSender(None)
    }

    /// Sends a message. Never waits: if the queue is full, the message is dropped and counted.
    pub fn send(&self, message: LogMessage) {
        let Some(queue) = &self.0 else { return };
        let size = message.size().0;
        // Pictures and sound may fill three quarters of the queue. The rest is reserved for curves.
        let room = match message {
            LogMessage::Scalars { .. } => queue.room,
            _ => queue.room / 4 * 3,
        };
        let accepted = queue.waiting.fetch_add(size, Ordering::AcqRel) + size <= room
            && !queue.closing.load(Ordering::Acquire)
            && queue.messages.push(message).is_ok();
        if !accepted {
            queue.waiting.fetch_sub(size, Ordering::AcqRel);
            queue.dropped.fetch_add(1, Ordering::Relaxed);
        }
        // The thread polls by itself. Waking it is a system call, needed only when the queue fills up.
        if queue.messages.len() * 2 == queue.messages.capacity() {
            queue.wake();
        }
    }
}

impl LogMessage {
    /// Memory in use while it waits.
    pub fn size(&self) -> Bytes {
        let contents = match self {
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
        contents + Bytes(size_of::<LogMessage>() as u64)
    }
}

impl LogQueue {
    fn new(messages: usize, room: Bytes) -> LogQueue {
        LogQueue {
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
    fn empty() -> LogEnding {
        LogQueue::new(2, Bytes(0)).ending(Ending::Whole)
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
            lost.push(format!("{} messages were dropped", self.dropped));
        }
        if self.errors > 0 {
            let first = self.first_error.as_deref().unwrap_or("no reason given");
            lost.push(format!("{} could not be written, first: {first}", self.errors));
        }
        if self.late > 0 {
            lost.push(format!("{} values arrived too late", self.late));
        }
        if self.ending == Ending::Cut {
            lost.push("the disk did not respond in time".into());
        }
        write!(f, "the run's log is incomplete: {}", lost.join("; "))
    }
}

#[cfg(test)]
mod tests;
