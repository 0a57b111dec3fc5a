//! The rows of a trace and the strings it shares.
//!
//! In: the subject of each row. Out: row ids and the packets that declare them, which are
//! written before all events. Rows have a fixed order: steps, slots, stages, then counters and notes.

use crate::perfetto_messages::{
    ChildOrder, CounterDescriptor, DebugAnnotation, InternedData, InternedString,
    ProcessDescriptor, STATE_CLEARED, TracePacket, TrackDescriptor,
};
use std::collections::BTreeMap;

/// All our packets belong to one sequence.
pub(crate) const SEQUENCE: u32 = 1;

const PROCESS: u64 = 1;

/// What a counter counts.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Bytes,
    Count,
    Percent,
    Plain,
}

/// Rows by name, with their descriptors.
#[derive(Default)]
pub(crate) struct Tracks {
    ids: BTreeMap<(u64, String), u64>,
    descriptors: Vec<TrackDescriptor>,
    size: usize,
}

impl Tracks {
    pub(crate) fn steps(&mut self) -> u64 {
        self.row(PROCESS, "steps", 0, None)
    }

    pub(crate) fn slot(&mut self, slot: u32) -> u64 {
        let group = self.row(PROCESS, "slots", 1, None);
        self.row(group, &format!("slot {slot}"), slot as i32, None)
    }

    pub(crate) fn worker(&mut self, stage: &str, worker: u32) -> u64 {
        let group = self.row(PROCESS, stage, 10, None);
        self.row(group, &format!("{stage} worker {worker}"), worker as i32, None)
    }

    pub(crate) fn counter(&mut self, kind: &str, of: &str, unit: Unit) -> u64 {
        let counter = CounterDescriptor {
            unit: unit.number(),
            unit_name: matches!(unit, Unit::Percent).then(|| "%".into()),
        };
        self.row(PROCESS, &format!("{kind}: {of}"), 1_000_000, Some(counter))
    }

    pub(crate) fn notes(&mut self) -> u64 {
        self.row(PROCESS, "notes", 2_000_000, None)
    }

    /// Declares the process, then every row after its parent.
    pub(crate) fn packets(&self) -> Vec<TracePacket> {
        let process = TrackDescriptor {
            uuid: Some(PROCESS),
            process: Some(ProcessDescriptor { pid: Some(1), process_name: Some("tandem".into()) }),
            child_ordering: Some(ChildOrder::Explicit.into()),
            ..TrackDescriptor::default()
        };
        std::iter::once(&process).chain(&self.descriptors).cloned().map(describes).collect()
    }

    /// About how many bytes the descriptors take.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Stages keep the order in which they were first seen: `rank` is raised by their number.
    fn row(
        &mut self,
        parent: u64,
        name: &str,
        rank: i32,
        counter: Option<CounterDescriptor>,
    ) -> u64 {
        if let Some(id) = self.ids.get(&(parent, name.to_string())) {
            return *id;
        }
        let id = PROCESS + 1 + self.descriptors.len() as u64;
        let late = if parent == PROCESS && rank >= 10 { self.descriptors.len() as i32 } else { 0 };
        self.ids.insert((parent, name.to_string()), id);
        self.descriptors.push(TrackDescriptor {
            uuid: Some(id),
            name: Some(name.to_string()),
            parent_uuid: Some(parent),
            counter,
            child_ordering: Some(ChildOrder::Explicit.into()),
            sibling_order_rank: Some(rank + late),
            ..TrackDescriptor::default()
        });
        self.size += name.len() + 64;
        id
    }
}

fn describes(descriptor: TrackDescriptor) -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        track_descriptor: Some(descriptor),
        ..TracePacket::default()
    }
}

/// A value attached to an event.
pub(crate) enum Annotation {
    Number(u64),
    Text(String),
}

/// Strings that are written once and named by number afterwards.
#[derive(Default)]
pub(crate) struct Strings {
    names: BTreeMap<String, u64>,
    annotations: BTreeMap<&'static str, u64>,
    size: usize,
}

impl Strings {
    pub(crate) fn name(&mut self, name: &str) -> u64 {
        if let Some(id) = self.names.get(name) {
            return *id;
        }
        let id = self.names.len() as u64 + 1;
        self.names.insert(name.to_string(), id);
        self.size += name.len() + 16;
        id
    }

    pub(crate) fn annotation(&mut self, name: &'static str, value: Annotation) -> DebugAnnotation {
        let next = self.annotations.len() as u64 + 1;
        let name_iid = Some(*self.annotations.entry(name).or_insert(next));
        match value {
            Annotation::Number(number) => {
                DebugAnnotation { name_iid, uint_value: Some(number), string_value: None }
            }
            Annotation::Text(text) => {
                DebugAnnotation { name_iid, uint_value: None, string_value: Some(text) }
            }
        }
    }

    /// The packet that gives every number its string.
    pub(crate) fn packet(&self) -> TracePacket {
        let string =
            |(name, iid): (String, u64)| InternedString { iid: Some(iid), name: Some(name) };
        let names = self.names.iter().map(|(name, id)| string((name.clone(), *id)));
        let notes = self.annotations.iter().map(|(name, id)| string((name.to_string(), *id)));
        TracePacket {
            timestamp: Some(0),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(STATE_CLEARED),
            interned_data: Some(InternedData {
                event_names: names.collect(),
                debug_annotation_names: notes.collect(),
            }),
            ..TracePacket::default()
        }
    }

    /// About how many bytes the strings take.
    pub(crate) fn size(&self) -> usize {
        self.size + 256
    }
}
