//! The contents of events: one plain struct per kind, except for the header and the step.
//!
//! In: measurements from the pipeline, the trainer and the device sampler. Out: the contents of
//! [`crate::event::Event`]. Fields that may be unknown are `Option` and absent in the record,
//! never zero. `docs/record.md` explains each field.

use crate::clock::Nanos;
use crate::event::Name;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use tandem_units::{Bytes, Ticket};

/// What a run found in its corpus at the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Rows to train on.
    pub usable: u64,
    /// Rows that cannot be used.
    pub rejected: u64,
    pub eval: u64,
    /// Path of the full list of rejected rows, where one was written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub list: Option<String>,
    pub cache: CacheState,
    /// Cache entries that were computed again.
    pub rebuilt: u64,
    /// Duration of reading the corpus and the cache.
    pub seconds: f64,
    /// Threads that did it.
    pub workers: u32,
}

/// How much of the cache of prepared rows was usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheState {
    /// Nothing was rebuilt.
    Read,
    /// Some entries were rebuilt.
    Updated,
    /// There was no usable cache: all entries were built.
    Built,
}

/// An optimizer step all of whose batches were skipped: the weights did not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmptyStep {
    pub step: u64,
    /// The last batch of the step.
    pub ticket: Ticket,
}

/// A padded shape of the batch plan, run once before step 1 so that its kernels are compiled and tuned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Rows, symbols and frames of the padded batch.
    pub shape: [u32; 3],
    /// Its place among all shapes, from one.
    pub number: u32,
    /// How many shapes there are.
    #[serde(alias = "of")]
    pub total: u32,
    /// How long one step on it took, compiling included.
    pub took: Nanos,
}

/// Kernels tuned and compiled before step 1, and those taken from the cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kernels {
    /// Tuning results of earlier starts.
    pub cached_tuned: u64,
    /// Kernels that earlier starts compiled.
    pub cached_compiled: u64,
    /// How long both took then.
    pub saved: Nanos,
    /// Tuned by this run.
    pub tuned: u64,
    /// Compiled by this run.
    pub compiled: u64,
    /// How long both took, counted once where they overlap.
    pub took: Nanos,
}

/// Training steps as CUDA graphs, on a device that can have them: after the captures, and at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Graphs {
    /// Shapes with a graph.
    pub shapes: u32,
    /// Shapes of the batch plan.
    pub planned: u32,
    /// What the graphs keep for themselves.
    pub memory: Bytes,
    /// How long the captures took.
    pub took: Nanos,
    /// Steps that a graph did.
    pub replayed: u64,
    /// Steps without one.
    pub others: u64,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why_none: Option<String>,
}

/// The end of the controlled start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// How long the model waited for its first batches.
    pub waited: Nanos,
    /// The longest it would have waited.
    pub limit: Nanos,
    /// Slots that were ready when it started.
    pub ready: u32,
    pub why: StartReason,
}

/// Why the controlled start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartReason {
    EnoughReady,
    /// The delay was over.
    DelayOver,
    /// The data ended before the buffer was full.
    EndOfData,
    /// The run was stopped meanwhile.
    Stopped,
}

/// What a stage did since its last such line, summed over its workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageInterval {
    pub stage: Name,
    /// Its workers in this interval.
    pub workers: u32,
    /// Length of the interval. `workers * interval` = busy + starved + blocked + the rest.
    #[serde(alias = "over")]
    pub interval: Nanos,
    pub busy: Nanos,
    /// Waiting for input.
    pub starved: Nanos,
    /// Waiting for room at the output.
    pub blocked: Nanos,
    pub items: u64,
}

/// One piece of work, starvation or blocking on one worker. Goes to the trace, and to the
/// record only with [`crate::record::Spans::Recorded`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    pub stage: Name,
    pub worker: u32,
    /// The item, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ticket: Option<Ticket>,
    pub doing: Doing,
    pub begin: Nanos,
    pub end: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// Working on an item.
    Busy,
    /// Waiting for input.
    Starved,
    /// Waiting for room at the output.
    Blocked,
}

/// A batch slot changed its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlotChange {
    /// Which slot, from zero.
    pub slot: u32,
    /// Its state from now on.
    pub state: SlotState,
    /// The batch in it; none while the slot waits for one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ticket: Option<Ticket>,
}

/// The states a batch slot cycles through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SlotState {
    /// Being filled, or waiting to be.
    Preparing,
    /// Filled, waiting for the model.
    Ready,
    /// The model reads it.
    Training,
}

/// How full a queue is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueLevel {
    /// The queue, by the stage it feeds.
    pub queue: Name,
    pub items: u64,
    pub bytes: Bytes,
    /// The most bytes it may hold.
    pub limit: Bytes,
    /// The most items it may hold.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit_items: Option<u64>,
}

/// What the adaptive controller did about one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The setting, such as `workers` or `depth`.
    pub what: Name,
    /// The stage it belongs to, if it belongs to one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stage: Option<Name>,
    pub from: u64,
    pub to: u64,
    /// Throughput before the change, items per second at the consumer; NaN is `null` in JSON.
    #[serde(deserialize_with = "number_or_null")]
    pub before: f64,
    /// Throughput with the change; absent while it is being tried.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<f64>,
    pub outcome: DecisionOutcome,
    pub why: String,
}

/// State of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionOutcome {
    Trying,
    Kept,
    /// No gain: the value is `from` again.
    #[serde(alias = "taken_back")]
    Reverted,
}

/// A skipped item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its place in the run, where it had one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ticket: Option<Ticket>,
    /// Its name in the corpus, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<String>,
    /// The stage that skipped it.
    pub stage: Name,
    pub why: String,
}

/// A sample of a device. Values that it does not report are absent, never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSample {
    /// The device, such as `cuda:0`.
    pub device: Name,
    /// What the run uses it for.
    pub role: DeviceRole,
    /// Share of time it was busy, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub utilisation: Option<f32>,
    /// Share of active multiprocessors, 0 to 1: a GPU with one busy thread is busy, but
    /// hardly active.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub activity: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_used: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_total: Option<Bytes>,
    /// Degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub temperature: Option<f32>,
    /// Watts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub power: Option<f32>,
}

impl DeviceSample {
    /// A sample without values.
    pub fn new(device: Name, role: DeviceRole) -> DeviceSample {
        DeviceSample {
            device,
            role,
            utilisation: None,
            activity: None,
            memory_used: None,
            memory_total: None,
            temperature: None,
            power: None,
        }
    }

    /// Whether no value is known.
    pub fn is_empty(&self) -> bool {
        let DeviceSample { device, role, .. } = self;
        *self == DeviceSample::new(device.clone(), *role)
    }
}

/// What a run uses a device for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceRole {
    /// The GPU that prepares data (`--data-gpu`).
    Data,
    /// The GPU that trains (`--model-gpu`, or the only one).
    Model,
    /// The host's CPU.
    Host,
}

impl DeviceRole {
    /// The name in the record.
    pub fn name(self) -> &'static str {
        match self {
            DeviceRole::Data => "data",
            DeviceRole::Model => "model",
            DeviceRole::Host => "host",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub step: u64,
    pub path: String,
    pub bytes: Bytes,
    /// Duration of writing, in the background.
    pub took: Nanos,
    /// Why it was written, such as `interval`, `best` or `interrupt`.
    pub why: Name,
}

/// Validation metrics on held-out rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    pub step: u64,
    /// Duration, in the background.
    pub took: Nanos,
    /// Whether it is the best so far.
    pub best: bool,
    /// Losses and other metrics, by name.
    pub values: BTreeMap<String, f64>,
}

/// A warning for the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Short and stable, for scripts: `variation`, `memory_growth`.
    pub code: Name,
    pub text: String,
}

impl Warning {
    /// Whether another warning says the same with other figures.
    pub fn is_like(&self, other: &Warning) -> bool {
        let words = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        self.code == other.code && words(&self.text) == words(&other.text)
    }
}

/// Health of the record itself. Counts are totals since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Events dropped because a queue was full, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub lost: BTreeMap<String, u64>,
    #[serde(default)]
    pub write_errors: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_error: Option<String>,
    /// The longest a single write took; a slow disk shows here.
    #[serde(default)]
    pub slowest_write: Nanos,
    /// Step lines written with `null` because a loss came too late.
    #[serde(default)]
    pub late_losses: u64,
}

impl Health {
    /// Events lost, of all kinds.
    pub fn total_lost(&self) -> u64 {
        self.lost.values().sum()
    }
}

/// How the run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Final {
    pub outcome: RunOutcome,
    /// The reason in words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why: Option<String>,
    pub steps: u64,
    /// The settings the controller ended with, as flags to type next time.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub flags: Vec<String>,
}

/// How a run ended, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// All steps done.
    Done,
    Interrupted,
    Failed,
}

impl RunOutcome {
    /// The name in the record.
    pub fn name(self) -> &'static str {
        match self {
            RunOutcome::Done => "done",
            RunOutcome::Interrupted => "interrupted",
            RunOutcome::Failed => "failed",
        }
    }
}

/// JSON has no NaN: it is written as `null` and read back as NaN.
fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl fmt::Display for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kernels { cached_tuned, cached_compiled, saved, tuned, compiled, took } = self;
        let cached = format!(
            "{cached_tuned} tuned, {cached_compiled} compiled from the cache, {saved} saved"
        );
        let new = format!("{tuned} tuned, {compiled} compiled in {took}");
        match (cached_tuned + cached_compiled > 0, tuned + compiled > 0) {
            (true, true) => write!(f, "{cached}; {new}"),
            (true, false) => write!(f, "{cached}; none new"),
            (false, true) => write!(f, "{new}, stored for the next start"),
            (false, false) => f.write_str("none tuned or compiled"),
        }
    }
}

impl fmt::Display for Graphs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Graphs { shapes, planned, memory, took, replayed, others, why_none } = self;
        if let Some(why) = why_none {
            return write!(f, "none: {why}");
        }
        write!(f, "{shapes} of {planned} shapes captured in {took}, {memory}; ")?;
        write!(f, "{replayed} of {} steps replayed", replayed + others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cached: (u64, u64, Nanos), new: (u64, u64, Nanos), text: &str) {
        let (cached_tuned, cached_compiled, saved) = cached;
        let (tuned, compiled, took) = new;
        let kernels = Kernels { cached_tuned, cached_compiled, saved, tuned, compiled, took };
        assert_eq!(kernels.to_string(), text);
    }

    #[test]
    fn a_start_says_what_the_cache_saved() {
        let none = (0, 0, Nanos(0));
        let many = (24, 99, Nanos::millis(38_100));
        let few = (1, 2, Nanos::millis(400));
        check(none, none, "none tuned or compiled");
        check(none, many, "24 tuned, 99 compiled in 38.10 s, stored for the next start");
        check(many, none, "24 tuned, 99 compiled from the cache, 38.10 s saved; none new");
        check(
            many,
            few,
            "24 tuned, 99 compiled from the cache, 38.10 s saved; 1 tuned, 2 compiled in 400.00 ms",
        );
    }

    #[test]
    fn graphs_say_how_many_steps_they_did_or_why_there_are_none() {
        let memory = tandem_units::Bytes::mib(35);
        let (shapes, planned, took) = (2, 3, Nanos::millis(1200));
        let some =
            Graphs { shapes, planned, memory, took, replayed: 95, others: 5, why_none: None };
        let text = "2 of 3 shapes captured in 1.20 s, 35.0 MiB; 95 of 100 steps replayed";
        assert_eq!(some.to_string(), text);
        let none = Graphs { why_none: Some("--no-graphs".into()), ..Graphs::default() };
        assert_eq!(none.to_string(), "none: --no-graphs");
    }
}
