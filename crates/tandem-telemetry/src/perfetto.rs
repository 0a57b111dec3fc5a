//! A trace of stages, slots and steps that opens in the Perfetto UI (<https://ui.perfetto.dev>).
//!
//! In: events, from the record's thread or from a record with spans. Out: one file in
//! Perfetto's own protobuf format. Only the newest part is held in memory, 64 MB by
//! default; the file is written whole, at the end. Track names and interned strings are stored
//! outside of the ring and written first, so the file stays readable after drops.

use crate::clock::Nanos;
use crate::error::TelemetryError;
use crate::event::{
    Decision, DeviceSample, Doing, Event, Kernels, Name, QueueLevel, SlotChange, SlotState, Span,
    Stamped, Step,
};
use crate::perfetto_messages::{
    CounterUnit, DebugAnnotation, EventType, NEEDS_STATE, Trace as TraceMessage, TracePacket,
    TrackEvent,
};
use crate::perfetto_tracks::{Annotation, SEQUENCE, Strings, Tracks, Unit};
use crate::trace_ring::TraceRing;
use prost::Message;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tandem_disk::File;
use tandem_units::{Bytes, Ticket};

/// A trace under way.
pub struct Trace {
    ring: TraceRing,
    tracks: Tracks,
    strings: Strings,
    // The state each slot is in, since when, with which batch.
    slots: BTreeMap<u32, (Nanos, SlotChange)>,
    // End of the last slice on a track: slices there follow each other, never overlap.
    ends: BTreeMap<u64, Nanos>,
    scratch: Vec<u8>,
    last_at: Nanos,
}

/// How much of a run a trace file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceExtent {
    /// Size of the file.
    pub bytes: Bytes,
    /// Older events that were dropped.
    pub dropped: u64,
}

impl Trace {
    /// The promised limit.
    pub const LIMIT: Bytes = Bytes(64_000_000);

    /// An empty trace that never grows over `limit`.
    pub fn new(limit: Bytes) -> Trace {
        Trace {
            ring: TraceRing::new(usize::try_from(limit.0).unwrap_or(usize::MAX)),
            tracks: Tracks::default(),
            strings: Strings::default(),
            slots: BTreeMap::new(),
            ends: BTreeMap::new(),
            scratch: Vec::new(),
            last_at: Nanos(0),
        }
    }

    /// Draws an event.
    pub fn add(&mut self, stamped: &Stamped) {
        let at = stamped.at;
        self.last_at = self.last_at.max(at);
        match &stamped.event {
            Event::Span(span) => self.span(span),
            Event::Step(step) => self.step(at, step),
            Event::Slot(change) => self.slot(at, change),
            Event::Queue(level) => self.queue(at, level),
            Event::Device(sample) => self.device(at, sample),
            Event::Stage(interval) => {
                let track = self.tracks.counter("workers", &interval.stage, Unit::Count);
                self.count(at, track, f64::from(interval.workers));
            }
            Event::Decision(decision) => self.note(at, "decision", decided(decision)),
            Event::Skipped(skipped) => {
                self.note(at, "skipped", format!("{}: {}", skipped.stage, skipped.why));
            }
            Event::Checkpoint(checkpoint) => {
                self.note(at, "checkpoint", format!("step {}", checkpoint.step));
            }
            Event::Validation(validation) => {
                self.note(at, "validation", format!("step {}", validation.step));
            }
            Event::Warning(warning) => self.note(at, "warning", warning.text.clone()),
            Event::WarmUp(warm_up) => {
                self.note(at, "warm-up", format!("shape {} of {}", warm_up.number, warm_up.total));
            }
            Event::Kernels(kernels) => {
                let Kernels { tuned, compiled, took, .. } = kernels;
                self.note(at, "kernels", format!("{tuned} tuned, {compiled} compiled in {took}"));
            }
            Event::Graphs(graphs) => self.note(at, "graphs", graphs.to_string()),
            Event::Started(started) => {
                self.note(at, "started", format!("waited {}", started.waited));
            }
            Event::EmptyStep(empty) => {
                self.note(at, "empty step", format!("step {}", empty.step));
            }
            Event::Run(_)
            | Event::Data(_)
            | Event::Ranks(_)
            | Event::Health(_)
            | Event::Final(_) => {}
        }
    }

    /// Closes what is open and writes the file; readers see all of it or nothing.
    pub fn write(mut self, path: &Path) -> Result<TraceExtent, TelemetryError> {
        let failed = |source| TelemetryError::Write { path: path.to_path_buf(), source };
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".part");
        let draft = path.with_file_name(name);
        let written = self.write_draft(&draft).and_then(|extent| {
            tandem_disk::rename(&draft, path)?;
            Ok(extent)
        });
        if written.is_err() {
            // The write error matters more than an error of the clean-up.
            let _ = tandem_disk::remove_file(&draft);
        }
        written.map_err(failed)
    }

    /// The file's contents in memory.
    pub fn encode(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to memory cannot fail.
        let _ = self.write_to(&mut bytes);
        bytes
    }

    fn write_draft(&mut self, draft: &Path) -> io::Result<TraceExtent> {
        let mut out = BufWriter::new(File::create(draft)?);
        self.write_to(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(TraceExtent { bytes: Bytes(file.metadata()?.len()), dropped: self.ring.dropped() })
    }

    fn write_to(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for (_, (since, change)) in std::mem::take(&mut self.slots) {
            self.slot_slice(since, self.last_at, &change);
        }
        if self.ring.dropped() > 0 {
            let text = format!("{} older events were dropped", self.ring.dropped());
            self.note(self.last_at, "trace is truncated", text);
        }
        let head: Vec<TracePacket> =
            self.tracks.packets().into_iter().chain([self.strings.packet()]).collect();
        out.write_all(&TraceMessage { packet: head }.encode_to_vec())?;
        self.ring.write_to(out)
    }

    fn span(&mut self, span: &Span) {
        let track = self.tracks.worker(&span.stage, span.worker);
        let name: Name = match span.doing {
            Doing::Busy => span.stage.clone(),
            Doing::Starved => "starved".into(),
            Doing::Blocked => "blocked".into(),
        };
        let notes = span.ticket.map(|ticket| ("ticket", Annotation::Number(ticket.seq)));
        self.slice(track, &name, span.begin, span.end, notes.into_iter().collect());
    }

    fn step(&mut self, at: Nanos, step: &Step) {
        let track = self.tracks.steps();
        let begin = at.less(step.took).max(self.end_of(track));
        let wait_over = (begin + step.waited).min(at);
        let notes = vec![
            ("step", Annotation::Number(step.step)),
            ("ticket", Annotation::Number(step.ticket.seq)),
            ("items", Annotation::Number(step.items.into())),
            ("frames", Annotation::Number(step.frames)),
        ];
        let mut packets = vec![self.begin(track, "step", begin, notes)];
        if step.waited.0 > 0 {
            packets.push(self.begin(track, "waited", begin, vec![]));
            packets.push(end(track, wait_over));
        }
        packets.push(end(track, at.max(begin)));
        self.ends.insert(track, at.max(begin));
        self.put(packets);
        for loss in &step.losses {
            if let Some(value) = loss.value.value().filter(|value| value.is_finite()) {
                let track = self.tracks.counter("loss", &loss.name, Unit::Plain);
                self.count(at, track, value.into());
            }
        }
    }

    fn slot(&mut self, at: Nanos, change: &SlotChange) {
        if let Some((since, before)) = self.slots.insert(change.slot, (at, change.clone())) {
            self.slot_slice(since, at, &before);
        }
    }

    fn slot_slice(&mut self, begin: Nanos, end: Nanos, change: &SlotChange) {
        let track = self.tracks.slot(change.slot);
        let name = match change.state {
            SlotState::Preparing => "PREPARING",
            SlotState::Ready => "READY",
            SlotState::Training => "TRAINING",
        };
        let seq = |ticket: Ticket| ("ticket", Annotation::Number(ticket.seq));
        self.slice(track, name, begin, end, change.ticket.map(seq).into_iter().collect());
    }

    fn queue(&mut self, at: Nanos, level: &QueueLevel) {
        let track = self.tracks.counter("queue", &level.queue, Unit::Bytes);
        self.count(at, track, level.bytes.0 as f64);
    }

    fn device(&mut self, at: Nanos, sample: &DeviceSample) {
        if let Some(share) = sample.utilisation {
            let track = self.tracks.counter("busy", &sample.device, Unit::Percent);
            self.count(at, track, f64::from(share) * 100.0);
        }
        if let Some(used) = sample.memory_used {
            let track = self.tracks.counter("memory", &sample.device, Unit::Bytes);
            self.count(at, track, used.0 as f64);
        }
        if let Some(share) = sample.activity {
            let track = self.tracks.counter("active", &sample.device, Unit::Percent);
            self.count(at, track, f64::from(share) * 100.0);
        }
    }

    fn note(&mut self, at: Nanos, name: &str, text: String) {
        let track = self.tracks.notes();
        let mut packet = self.begin(track, name, at, vec![("text", Annotation::Text(text))]);
        if let Some(event) = &mut packet.track_event {
            event.r#type = Some(EventType::Instant.into());
        }
        self.put(vec![packet]);
    }

    fn count(&mut self, at: Nanos, track: u64, value: f64) {
        let whole = value.fract() == 0.0 && value.abs() < 9e15;
        let event = TrackEvent {
            r#type: Some(EventType::Counter.into()),
            track_uuid: Some(track),
            counter_value: whole.then_some(value as i64),
            double_counter_value: (!whole).then_some(value),
            ..TrackEvent::default()
        };
        self.put(vec![packet(at, event)]);
    }

    fn slice(
        &mut self,
        track: u64,
        name: &str,
        from: Nanos,
        until: Nanos,
        notes: Vec<(&'static str, Annotation)>,
    ) {
        // Times read shortly after each other may overlap slightly, which would nest the slices.
        let from = from.max(self.end_of(track));
        let until = until.max(from);
        self.ends.insert(track, until);
        let begin = self.begin(track, name, from, notes);
        self.put(vec![begin, end(track, until)]);
    }

    fn begin(
        &mut self,
        track: u64,
        name: &str,
        at: Nanos,
        notes: Vec<(&'static str, Annotation)>,
    ) -> TracePacket {
        let debug_annotations: Vec<DebugAnnotation> =
            notes.into_iter().map(|(name, value)| self.strings.annotation(name, value)).collect();
        let event = TrackEvent {
            r#type: Some(EventType::SliceBegin.into()),
            name_iid: Some(self.strings.name(name)),
            track_uuid: Some(track),
            debug_annotations,
            ..TrackEvent::default()
        };
        packet(at, event)
    }

    fn end_of(&self, track: u64) -> Nanos {
        self.ends.get(&track).copied().unwrap_or_default()
    }

    fn put(&mut self, packets: Vec<TracePacket>) {
        self.scratch.clear();
        // A vector grows as needed, so there is always room.
        let _ = TraceMessage { packet: packets }.encode(&mut self.scratch);
        self.ring.push(&self.scratch, self.tracks.size() + self.strings.size());
    }
}

fn end(track: u64, at: Nanos) -> TracePacket {
    let event = TrackEvent {
        r#type: Some(EventType::SliceEnd.into()),
        track_uuid: Some(track),
        ..TrackEvent::default()
    };
    packet(at, event)
}

fn packet(at: Nanos, event: TrackEvent) -> TracePacket {
    TracePacket {
        timestamp: Some(at.0),
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(NEEDS_STATE),
        track_event: Some(event),
        ..TracePacket::default()
    }
}

fn decided(decision: &Decision) -> String {
    let stage = decision.stage.as_deref().unwrap_or("run");
    format!("{} of {stage}: {} -> {}", decision.what, decision.from, decision.to)
}

impl Unit {
    pub(crate) fn number(self) -> Option<i32> {
        match self {
            Unit::Bytes => Some(CounterUnit::SizeBytes.into()),
            Unit::Count => Some(CounterUnit::Count.into()),
            Unit::Percent | Unit::Plain => None,
        }
    }
}
