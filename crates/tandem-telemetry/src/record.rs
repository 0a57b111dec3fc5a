//! The handle that sends events, and the owner of the record they go to.
//!
//! In: [`Event`]s from any thread through [`Recorder::send`], which never waits: about a tenth
//! of a microsecond, whatever the disk does. Out: a JSON Lines file, written by one thread
//! of its own ([`crate::writer`]), complete up to a fraction of a second before a kill.
//! Trouble with the disk never reaches the sender; [`Recorder::health`] and the final
//! report tell of it. Next: [`crate::reader`].

use crate::clock::{Nanos, RunClock};
use crate::error::TelemetryError;
use crate::event::{Event, Health, Kind, RunHeader, Stamped};
use crate::intake::Intake;
use crate::record_file::{MemoryFile, RecordFile};
use crate::writer::{Watch, Writer};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sends events to a record. Cheap to clone; every thread has its own.
#[derive(Clone)]
pub struct Recorder(Option<Arc<Shared>>);

/// What senders and the writer share.
pub(crate) struct Shared {
    pub(crate) clock: RunClock,
    pub(crate) intake: Intake,
    pub(crate) watch: Watch,
    pub(crate) closing: AtomicBool,
    spans: Spans,
}

/// Owns the record's thread. Dropping it closes the record as [`Recording::finish`] does.
pub struct Recording {
    recorder: Recorder,
    close_within: Duration,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// How a record is kept.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Where spans go.
    pub spans: Spans,
    /// The longest an event waits before it is written.
    pub flush_every: Duration,
    /// The longest a step waits for its losses before it is written with `null`.
    pub loss_within: Duration,
    /// The most steps that wait for losses at once; the oldest goes when there are more.
    pub loss_window: usize,
    /// Room for events that reports need.
    pub essential_room: usize,
    /// Room for events that come in masses.
    pub bulk_room: usize,
    /// Bytes of finished lines that wait while the disk fails.
    pub outbox: usize,
    /// Time between two attempts on a failing disk.
    pub retry_every: Duration,
    /// The longest closing may take.
    pub close_within: Duration,
}

/// Where spans go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spans {
    /// Nowhere: they are not even queued.
    #[default]
    Dropped,
    /// Into the record.
    Recorded,
}

impl Default for RecordOptions {
    fn default() -> RecordOptions {
        RecordOptions {
            spans: Spans::Dropped,
            flush_every: Duration::from_millis(200),
            loss_within: Duration::from_secs(10),
            loss_window: 1024,
            essential_room: 8192,
            bulk_room: 16384,
            outbox: 8 << 20,
            retry_every: Duration::from_secs(1),
            close_within: Duration::from_secs(5),
        }
    }
}

/// How closing a record went.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// Losses and errors over the whole run.
    pub health: Health,
    /// Whether all of it is on disk.
    pub ending: Ending,
}

/// Whether a record was closed whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every line is on disk, and synced.
    Whole,
    /// The disk refused the last lines, or did not answer in time.
    Cut,
}

impl Recording {
    /// Starts a record in a new file. An existing one is an error, never overwritten.
    pub fn create(
        path: &Path,
        header: RunHeader,
        options: RecordOptions,
    ) -> Result<Recording, TelemetryError> {
        let file = File::create_new(path)
            .map_err(|source| TelemetryError::Open { path: path.to_path_buf(), source })?;
        Recording::start(Box::new(file), header, options)
    }

    /// Starts a record in memory; the second value shows what was written.
    pub fn in_memory(header: RunHeader) -> Result<(Recording, MemoryFile), TelemetryError> {
        let file = MemoryFile::default();
        let recording = Recording::start(Box::new(file.clone()), header, RecordOptions::default())?;
        Ok((recording, file))
    }

    /// Starts a record on anything that behaves like a file.
    pub fn start(
        file: Box<dyn RecordFile>,
        header: RunHeader,
        options: RecordOptions,
    ) -> Result<Recording, TelemetryError> {
        let shared = Arc::new(Shared {
            clock: RunClock::start(),
            intake: Intake::new(options.essential_room, options.bulk_room),
            watch: Watch::default(),
            closing: AtomicBool::new(false),
            spans: options.spans,
        });
        let close_within = options.close_within;
        let writer = Writer::new(Arc::clone(&shared), file, header, options);
        let thread = std::thread::Builder::new()
            .name("tandem-record".into())
            .spawn(move || writer.run())
            .map_err(|source| TelemetryError::Thread { source })?;
        shared.intake.serve(thread.thread().clone());
        Ok(Recording { recorder: Recorder(Some(shared)), close_within, thread: Some(thread) })
    }

    /// A handle to send with.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Writes what is queued, syncs and ends the thread, within
    /// [`RecordOptions::close_within`]. Events sent afterwards count as lost.
    pub fn finish(mut self) -> Closed {
        self.close()
    }

    fn close(&mut self) -> Closed {
        let Some(shared) = &self.recorder.0 else {
            return Closed { health: Health::default(), ending: Ending::Whole };
        };
        let Some(thread) = self.thread.take() else {
            return Closed { health: self.recorder.health(), ending: shared.watch.ending() };
        };
        shared.closing.store(true, Ordering::Release);
        shared.intake.wake();
        // A disk that does not answer keeps its thread: it is left behind, not waited for.
        let ending = shared.watch.wait_for_end(self.close_within);
        if ending == Ending::Whole {
            let _ = thread.join();
        }
        Closed { health: self.recorder.health(), ending }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.close();
    }
}

impl Recorder {
    /// A recorder that records nothing, for code that runs without one.
    pub fn off() -> Recorder {
        Recorder(None)
    }

    /// Sends an event, stamped with the present moment. Never waits: without room the event is
    /// lost and counted.
    pub fn send(&self, event: impl Into<Event>) {
        if let Some(shared) = &self.0 {
            shared.send(shared.clock.now(), event.into());
        }
    }

    /// Sends an event that happened at a moment already measured.
    pub fn send_at(&self, at: Nanos, event: impl Into<Event>) {
        if let Some(shared) = &self.0 {
            shared.send(at, event.into());
        }
    }

    /// The run's clock; `None` where nothing is recorded.
    pub fn clock(&self) -> Option<RunClock> {
        self.0.as_ref().map(|shared| shared.clock)
    }

    /// Whether anybody wants spans. Stages ask once and save themselves the work.
    pub fn spans(&self) -> Spans {
        self.0.as_ref().map_or(Spans::Dropped, |shared| shared.spans)
    }

    /// Losses and errors so far, known even where the disk takes nothing.
    pub fn health(&self) -> Health {
        self.0.as_ref().map_or_else(Health::default, |shared| shared.health())
    }
}

impl Shared {
    fn send(&self, at: Nanos, event: Event) {
        let kind = event.kind();
        if kind == Kind::Span && self.spans == Spans::Dropped {
            return;
        }
        if self.closing.load(Ordering::Relaxed) {
            self.intake.count_lost(kind);
            return;
        }
        self.intake.push(Stamped { at, event });
    }

    pub(crate) fn health(&self) -> Health {
        self.watch.health(self.intake.lost(), self.clock.now())
    }
}
