//! The trace decoded by wire type and published field number, without the types that wrote it.
//!
//! Numbers: Perfetto's `trace.proto`, `trace_packet.proto`, `track_event.proto`,
//! `track_descriptor.proto`, `interned_data.proto`, `debug_annotation.proto`.

use std::collections::BTreeMap;
use tandem_telemetry::event::{
    Doing, Event, Loss, QueueLevel, SlotChange, SlotState, Span, Stamped, Step, Warning,
};
use tandem_telemetry::record::TraceOptions;
use tandem_telemetry::{MemoryFile, Nanos, Pending, RecordOptions, Recording, Trace};
use tandem_units::{Bytes, Ticket};

/// A decoded protobuf message: fields by number, in order.
#[derive(Clone, Debug, Default)]
struct Message(BTreeMap<u64, Vec<Value>>);

#[derive(Clone, Debug)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Message {
    /// Panics on anything that is not protobuf.
    fn decode(mut bytes: &[u8]) -> Message {
        let mut message = Message::default();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = match key & 7 {
                0 => Value::Number(varint(&mut bytes)),
                1 => Value::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    Value::Bytes(take(&mut bytes, length).to_vec())
                }
                other => panic!("wire type {other}"),
            };
            message.0.entry(key >> 3).or_default().push(value);
        }
        message
    }

    fn number(&self, field: u64) -> Option<u64> {
        match self.0.get(&field)?.last()? {
            Value::Number(number) => Some(*number),
            Value::Bytes(_) => panic!("field {field} is not a number"),
        }
    }

    fn text(&self, field: u64) -> Option<String> {
        self.all(field).pop().map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn child(&self, field: u64) -> Option<Message> {
        self.all(field).pop().map(|bytes| Message::decode(&bytes))
    }

    fn all(&self, field: u64) -> Vec<Vec<u8>> {
        let values = self.0.get(&field).cloned().unwrap_or_default();
        values
            .into_iter()
            .map(|value| match value {
                Value::Bytes(bytes) => bytes,
                Value::Number(_) => panic!("field {field} is a number"),
            })
            .collect()
    }

    fn children(&self, field: u64) -> Vec<Message> {
        self.all(field).iter().map(|bytes| Message::decode(bytes)).collect()
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("endless varint");
}

/// What the Perfetto UI would draw.
#[derive(Debug, Default)]
struct Drawn {
    /// Row name to (begin, end, name, depth) of its slices.
    slices: BTreeMap<String, Vec<(u64, u64, String, usize)>>,
    counters: BTreeMap<String, Vec<(u64, f64)>>,
    notes: Vec<(u64, String, String)>,
}

/// Follows the rules of the format: rows declared before use and below a declared parent, names
/// looked up in the interned table of the sequence, slices nested on their row.
fn draw(trace: &[u8]) -> Drawn {
    let mut drawn = Drawn::default();
    let (mut rows, mut names, mut labels) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut open: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
    let mut events = Vec::new();
    let mut state_known = false;
    for packet in Message::decode(trace).children(1) {
        assert_ne!(packet.number(10).unwrap(), 0, "every packet is on a sequence");
        if let Some(row) = packet.child(60) {
            if let Some(parent) = row.number(5) {
                assert!(rows.contains_key(&parent), "parent first");
            }
            rows.insert(row.number(1).unwrap(), (row.text(2), row.child(8).is_some()));
        }
        if let Some(strings) = packet.child(12) {
            assert_eq!(packet.number(13), Some(1), "the table starts afresh");
            state_known = true;
            let table = |field| strings.children(field).into_iter();
            names.extend(table(2).map(|s| (s.number(1).unwrap(), s.text(2).unwrap())));
            labels.extend(table(3).map(|s| (s.number(1).unwrap(), s.text(2).unwrap())));
        }
        if let Some(event) = packet.child(11) {
            assert!(state_known && packet.number(13) == Some(2));
            events.push((packet.number(8).unwrap(), event));
        }
    }
    // As the UI does: by time, file order among equals.
    events.sort_by_key(|(at, _)| *at);
    for (at, event) in events {
        let track = event.number(11).unwrap();
        let (row, is_counter) = rows[&track].clone();
        let row = row.unwrap();
        let name = event.number(10).map(|iid| names[&iid].clone());
        match event.number(9).unwrap() {
            1 => open.entry(track).or_default().push((at, name.unwrap())),
            2 => {
                let stack = open.get_mut(&track).unwrap();
                let (begin, name) = stack.pop().expect("an end has its begin");
                let depth = stack.len();
                drawn.slices.entry(row).or_default().push((begin, at, name, depth));
            }
            3 => {
                let label = event.child(4).unwrap();
                assert_eq!(labels[&label.number(1).unwrap()], "text");
                drawn.notes.push((at, name.unwrap(), label.text(6).unwrap()));
            }
            4 => {
                assert!(is_counter, "{row} is declared as a counter");
                let whole = event.number(30).map(|number| number as i64 as f64);
                let value = whole.or_else(|| event.number(44).map(f64::from_bits));
                drawn.counters.entry(row).or_default().push((at, value.unwrap()));
            }
            other => panic!("event type {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice is closed");
    drawn
}

fn at(at: u64, event: impl Into<Event>) -> Stamped {
    Stamped { at: Nanos(at), event: event.into() }
}

fn span(stage: &'static str, doing: Doing, begin: u64, end: u64) -> Span {
    let ticket = Some(Ticket { seq: begin, ..Ticket::default() });
    Span { stage: stage.into(), worker: 1, ticket, doing, begin: Nanos(begin), end: Nanos(end) }
}

fn step(took: u64, waited: u64, loss: f32) -> Step {
    Step {
        step: 7,
        ticket: Ticket::default(),
        took: Nanos(took),
        waited: Nanos(waited),
        items: 16,
        frames: 9000,
        shape: None,
        losses: vec![Loss { name: "total".into(), value: Pending::known(loss) }],
        ..Step::default()
    }
}

fn slot(state: SlotState) -> SlotChange {
    SlotChange { slot: 2, state, ticket: None }
}

fn trace_of(events: &[Stamped]) -> Vec<u8> {
    let mut trace = Trace::new(Trace::LIMIT);
    events.iter().for_each(|event| trace.add(event));
    trace.encode()
}

#[test]
fn stages_slots_steps_and_queues_are_drawn_where_they_belong() {
    let level = QueueLevel {
        queue: "train".into(),
        items: 2,
        bytes: Bytes(5000),
        limit: Bytes(9000),
        limit_items: None,
    };
    let drawn = draw(&trace_of(&[
        at(60, span("load", Doing::Busy, 10, 60)),
        at(70, slot(SlotState::Preparing)),
        at(75, span("load", Doing::Blocked, 60, 75)),
        at(80, level),
        at(90, slot(SlotState::Ready)),
        at(100, step(100, 20, 0.25)),
        at(120, Warning { code: "x".into(), text: "«هشدار»".into() }),
    ]));
    let slice = |begin, end, name: &str, depth| (begin, end, name.to_string(), depth);
    assert_eq!(
        drawn.slices["load worker 1"],
        [slice(10, 60, "load", 0), slice(60, 75, "blocked", 0)]
    );
    assert_eq!(drawn.slices["slot 2"], [slice(70, 90, "PREPARING", 0), slice(90, 120, "READY", 0)]);
    assert_eq!(drawn.slices["steps"], [slice(0, 20, "waited", 1), slice(0, 100, "step", 0)]);
    assert_eq!(drawn.counters["queue: train"], [(80, 5000.0)]);
    assert_eq!(drawn.counters["loss: total"], [(100, 0.25)]);
    assert_eq!(drawn.notes, [(120, "warning".to_string(), "«هشدار»".to_string())]);
}

#[test]
fn slices_that_overlap_slightly_do_not_nest() {
    let drawn = draw(&trace_of(&[
        at(60, span("load", Doing::Busy, 10, 60)),
        at(75, span("load", Doing::Busy, 59, 75)),
        at(100, step(100, 0, 0.0)),
        at(199, step(101, 0, 0.0)),
    ]));
    assert!(drawn.slices.values().flatten().all(|(_, _, _, depth)| *depth == 0), "{drawn:?}");
}

#[test]
fn a_long_run_keeps_the_newest_part_within_the_limit() {
    let limit = Bytes(20_000);
    let mut trace = Trace::new(limit);
    for number in 0..5000u64 {
        let stage = if number < 10 { "early" } else { "load" };
        trace.add(&at(number * 10, span(stage, Doing::Busy, number * 10, number * 10 + 10)));
        trace.add(&at(number * 10, slot(SlotState::Ready)));
    }
    let bytes = trace.encode();
    assert!(bytes.len() as u64 <= limit.0, "{}", bytes.len());
    assert!(bytes.len() as u64 > limit.0 * 8 / 10, "{}", bytes.len());
    let drawn = draw(&bytes);
    assert_eq!(drawn.slices["load worker 1"].last().unwrap().1, 50_000);
    assert!(!drawn.slices.contains_key("early worker 1"));
    let (_, name, text) = drawn.notes.last().unwrap();
    assert_eq!(name, "trace is truncated");
    assert!(text.ends_with("older events were dropped"), "{text}");
}

#[test]
fn a_recorded_run_leaves_its_trace_beside_the_record_and_spans_out_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.pftrace");
    let file = MemoryFile::default();
    let header = tandem_telemetry::event::RunHeader::now("tandem", "0", serde_json::json!({}));
    let options =
        RecordOptions { trace: Some(TraceOptions::to(path.clone())), ..Default::default() };
    let recording = Recording::start(Box::new(file.clone()), header, options).unwrap();
    recording.recorder().send(span("load", Doing::Busy, 10, 60));
    let closed = recording.finish();
    let extent = closed.trace.unwrap().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!((extent.bytes, extent.dropped), (Bytes(bytes.len() as u64), 0));
    assert_eq!(draw(&bytes).slices["load worker 1"].len(), 1);
    assert!(!String::from_utf8(file.contents()).unwrap().contains("\"span\""));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
}

#[test]
fn a_trace_that_cannot_be_written_does_not_harm_the_record() {
    let file = MemoryFile::default();
    let header = tandem_telemetry::event::RunHeader::now("tandem", "0", serde_json::json!({}));
    let nowhere = std::path::PathBuf::from("/nonexistent/run.pftrace");
    let options = RecordOptions { trace: Some(TraceOptions::to(nowhere)), ..Default::default() };
    let closed = Recording::start(Box::new(file), header, options).unwrap().finish();
    assert_eq!(closed.ending, tandem_telemetry::Ending::Whole);
    assert!(closed.trace.unwrap().is_err());
}
