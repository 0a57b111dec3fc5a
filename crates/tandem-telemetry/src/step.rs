//! One training step, with losses that may still be on the device.
//!
//! In: times from the consumer and [`Pending`] losses. Out: [`Step`], which the writer
//! delays until its losses have arrived. Nothing here waits.

use crate::clock::Nanos;
use crate::event::Name;
use crate::pending::{Pending, Poll};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tandem_units::Ticket;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Number of the step, from 1; continues after a resume.
    pub step: u64,
    pub ticket: Ticket,
    /// From the end of the step before (or the start of the model) to the end of this one,
    /// waiting included.
    pub took: Nanos,
    /// The part of `took` in which the consumer had no batch: the stall.
    pub waited: Nanos,
    pub items: u32,
    /// Mel frames in the batch that are real, not padding.
    pub frames: u64,
    /// Padded shape: items, symbols, frames.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shape: Option<[u32; 3]>,
    /// Padded shapes of all batches of the step, where it has several; `shape` is that of the last.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub batches: Vec<[u32; 3]>,
    /// Time that each stage worked on the batches of this step.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub work: BTreeMap<Name, Nanos>,
    /// CPU time of all threads of the process during the step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu: Option<Nanos>,
    /// How often the system took a CPU from a thread of the process during the step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub preempted: Option<u32>,
    /// Losses and other numbers of the step by name; they may arrive later.
    #[serde(with = "losses", skip_serializing_if = "Vec::is_empty", default)]
    pub losses: Vec<Loss>,
}

/// A named value.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Such as `total`.
    pub name: Name,
    /// Its value, now or later.
    pub value: Pending<f32>,
}

impl Step {
    /// Whether a loss is still pending.
    pub fn is_waiting(&self) -> bool {
        self.losses.iter().any(|loss| loss.value.poll() == Poll::Waiting)
    }
}

/// Losses are an object in JSON, in the order they were given.
mod losses {
    use super::{Loss, Pending};
    use serde::de::{Deserializer, MapAccess, Visitor};
    use serde::ser::{SerializeMap, Serializer};
    use std::fmt;

    pub fn serialize<S: Serializer>(losses: &[Loss], serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(losses.len()))?;
        for loss in losses {
            map.serialize_entry(&loss.name, &loss.value)?;
        }
        map.end()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Loss>, D::Error> {
        deserializer.deserialize_map(Entries)
    }

    struct Entries;

    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<Loss>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("losses by name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut losses = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, Pending<f32>>()? {
                losses.push(Loss { name: name.into(), value });
            }
            Ok(losses)
        }
    }
}
