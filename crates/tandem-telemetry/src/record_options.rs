//! Options of a record, and its listener.
//!
//! In: choices of the program. Out: [`RecordOptions`] for [`crate::record::Recording`].

use crate::event::Stamped;
use crate::perfetto::Trace;
use crate::periodic::PeriodicLine;
use crate::rules::Rules;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tandem_units::Bytes;

/// Options of a record.
#[derive(Debug)]
pub struct RecordOptions {
    pub spans: Spans,
    /// Writes a trace in addition to the record.
    pub trace: Option<TraceOptions>,
    /// When the periodic line comes and when it warns.
    pub rules: Rules,
    /// Receives every recorded event, on the writer thread.
    pub listener: Option<Listener>,
    /// The longest an event waits before it is written.
    pub flush_every: Duration,
    /// The longest a step waits for its losses before it is written with `null`.
    pub loss_within: Duration,
    /// The most steps that wait for losses at once; the oldest goes when there are more.
    pub loss_window: usize,
    /// Queue length for events that reports need.
    pub essential_room: usize,
    /// Queue length for frequent events.
    pub bulk_room: usize,
    /// Bytes of finished lines that wait while the disk fails.
    pub outbox: usize,
    /// Time between two attempts on a failing disk.
    pub retry_every: Duration,
    /// The longest closing the record may take.
    pub close_within: Duration,
    /// The longest writing the trace may take after that.
    pub trace_within: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spans {
    /// Nowhere: they are not queued. With a trace this means `Traced`.
    #[default]
    Dropped,
    /// Into the trace.
    Traced,
    /// Into the record too, so that a trace can be drawn from it later.
    Recorded,
}

/// A trace in addition to the record.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// The file, written at the end.
    pub path: PathBuf,
    /// Size limit; the oldest events are dropped.
    pub limit: Bytes,
}

impl TraceOptions {
    /// A trace within the promised 64 MB.
    pub fn to(path: PathBuf) -> TraceOptions {
        TraceOptions { path, limit: Trace::LIMIT }
    }
}

/// What a listener receives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Update<'a> {
    /// An event as it goes into the record, with its losses where they arrived.
    Event(&'a Stamped),
    /// The line every hundred steps.
    Periodic(&'a PeriodicLine),
}

/// Receives every recorded event: a progress bar, a log, a live page. Runs on the writer thread, so a
/// slow listener causes dropped events, which are counted, but never costs training time.
pub struct Listener(Box<dyn FnMut(Update<'_>) + Send>);

impl Listener {
    /// Calls this for every event.
    pub fn new(call: impl FnMut(Update<'_>) + Send + 'static) -> Listener {
        Listener(Box::new(call))
    }

    pub(crate) fn call(&mut self, update: Update<'_>) {
        (self.0)(update);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

impl RecordOptions {
    /// Where spans really go.
    pub(crate) fn spans_wanted(&self) -> Spans {
        match (self.spans, &self.trace) {
            (Spans::Dropped, Some(_)) => Spans::Traced,
            (Spans::Traced, None) => Spans::Dropped,
            (spans, _) => spans,
        }
    }
}

impl Default for RecordOptions {
    fn default() -> RecordOptions {
        RecordOptions {
            spans: Spans::Dropped,
            trace: None,
            rules: Rules::default(),
            listener: None,
            flush_every: Duration::from_millis(200),
            loss_within: Duration::from_secs(10),
            loss_window: 1024,
            essential_room: 8192,
            bulk_room: 16384,
            outbox: 8 << 20,
            retry_every: Duration::from_secs(1),
            close_within: Duration::from_secs(5),
            trace_within: Duration::from_secs(30),
        }
    }
}
