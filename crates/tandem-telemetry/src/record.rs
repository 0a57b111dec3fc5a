//! The handle that sends events, and the owner of the record they go to.
//!
//! In: [`Event`]s from any thread through [`Recorder::send`], which never waits: about a tenth
//! of a microsecond, whatever the disk does. Out: a JSON Lines file, written by one thread
//! of its own ([`crate::writer`]), complete up to a fraction of a second before a kill.
//! Disk errors never reach the sender; [`Recorder::health`] and the final report show them. Next: [`crate::reader`].

use crate::clock::{Nanos, RunClock};
use crate::error::TelemetryError;
use crate::event::{Event, Health, Kind, RunHeader, Stamped};
use crate::intake::Intake;
use crate::perfetto::TraceExtent;
use crate::record_file::{MemoryFile, RecordFile};
use crate::summary::Summary;
use crate::watch::{Ended, Watch};
use crate::writer::Writer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tandem_disk::File;

pub use crate::record_options::{Listener, RecordOptions, Spans, TraceOptions, Update};

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
    trace_within: Duration,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// How closing a record went.
#[derive(Debug)]
pub struct Closed {
    /// Losses and errors over the whole run.
    pub health: Health,
    /// Whether all of it is on disk.
    pub ending: Ending,
    /// Summary of the run, complete even where the disk failed.
    pub summary: Summary,
    /// The trace, if enabled; a failed trace does not affect the record.
    pub trace: Option<Result<TraceExtent, TelemetryError>>,
}

/// Whether the record on disk is complete.
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

    /// Starts a record on any [`RecordFile`].
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
            spans: options.spans_wanted(),
        });
        let (close_within, trace_within) = (options.close_within, options.trace_within);
        let watched = Arc::clone(&shared);
        let writer = Writer::new(Arc::clone(&shared), file, header, options);
        let thread = std::thread::Builder::new()
            .name("tandem-record".into())
            .spawn(move || {
                // After a panic of a listener, senders and `finish` must not wait for this thread.
                if catch_unwind(AssertUnwindSafe(|| writer.run())).is_err() {
                    watched.closing.store(true, Ordering::Release);
                    watched.watch.set_panicked();
                }
            })
            .map_err(|source| TelemetryError::Thread { what: "writes the run record", source })?;
        shared.intake.serve(thread.thread().clone());
        let (recorder, thread) = (Recorder(Some(shared)), Some(thread));
        Ok(Recording { recorder, close_within, trace_within, thread })
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
        if let (Some(shared), Some(thread)) = (&self.recorder.0, self.thread.take()) {
            shared.closing.store(true, Ordering::Release);
            shared.intake.wake();
            // A disk that does not answer blocks the thread: it is detached, not joined.
            let ended = shared.watch.wait_for_end(self.close_within, self.trace_within);
            if ended == Ended::Yes {
                let _ = thread.join();
                shared.intake.count_leftovers();
            }
        }
        let shared = self.recorder.0.as_ref();
        Closed {
            health: self.recorder.health(),
            ending: shared.map_or(Ending::Whole, |shared| shared.watch.ending()),
            summary: self.recorder.summary(),
            trace: shared.and_then(|shared| shared.watch.take_trace()),
        }
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

    /// Whether spans are recorded. Stages check once and skip the work otherwise.
    pub fn spans(&self) -> Spans {
        self.0.as_ref().map_or(Spans::Dropped, |shared| shared.spans)
    }

    /// Summary of the run so far, with the record's present health. Not for the training thread:
    /// it may wait briefly for a lock.
    pub fn summary(&self) -> Summary {
        let Some(shared) = &self.0 else { return Summary::default() };
        Summary { health: shared.health(), ..shared.watch.summary().clone() }
    }

    /// Waits until everything sent before this call is in the summary and was handed to the file, for
    /// at most `at_most`; whether it was. Not for the training thread.
    pub fn sync(&self, at_most: Duration) -> bool {
        let Some(shared) = &self.0 else { return true };
        shared.watch.wait_for_round(at_most, &|| shared.intake.wake())
    }

    /// Losses and errors so far, known even where the disk fails.
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
