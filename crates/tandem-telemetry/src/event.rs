//! The closed list of events.
//!
//! In: measurements from the pipeline, the trainer and the device sampler. Out: [`Event`], which
//! [`crate::record`] turns into one JSON line each. `docs/record.md` explains every field;
//! a change here needs a change there and, once released, a new [`Schema`] number.
//! An event never holds a tensor, a device or a lock. Next: [`crate::intake`].

use crate::clock::Nanos;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

pub use crate::facts::{
    CacheState, Checkpoint, Data, Decision, DecisionOutcome, DeviceRole, DeviceSample, Doing,
    EmptyStep, Final, Health, QueueLevel, RunOutcome, Skipped, SlotChange, SlotState, Span,
    StageInterval, StartReason, Started, Validation, WarmUp, Warning,
};
pub use crate::header::{HostFacts, RunHeader, Schema};
pub use crate::step::{Loss, Step};

/// A name. Static strings cost no allocation to send.
pub type Name = Cow<'static, str>;

/// One fact about a run. The tag in the record is the variant in snake case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// First line: what runs, where, with which settings.
    Run(Box<RunHeader>),
    /// What the run found in its corpus at the start.
    Data(Data),
    /// A padded shape was run once before step 1.
    WarmUp(WarmUp),
    /// The controlled start ended.
    Started(Started),
    /// What a stage did since its last such line.
    Stage(StageInterval),
    /// One piece of work, starvation or blocking on one worker.
    Span(Span),
    /// One training step is over.
    Step(Step),
    /// An optimizer step all of whose batches were skipped: the weights did not change.
    EmptyStep(EmptyStep),
    /// A batch slot changed its state.
    Slot(SlotChange),
    /// How full a queue is.
    Queue(QueueLevel),
    /// The adaptive controller tried, kept or reverted a change.
    Decision(Decision),
    /// An item was skipped.
    Skipped(Skipped),
    /// A sample of a device.
    Device(DeviceSample),
    /// A checkpoint is on disk.
    Checkpoint(Checkpoint),
    /// Validation metrics on held-out rows.
    Validation(Validation),
    /// A warning for the user.
    Warning(Warning),
    /// Health of the record itself; written by the record's own thread.
    Health(Health),
    /// The run is over; absent where it was killed.
    Final(Final),
}

/// An [`Event`] and the moment it was sent: one line of the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// Nanoseconds since the start of the run.
    pub at: Nanos,
    #[serde(flatten)]
    pub event: Event,
}

/// Which event it is, without its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    Run,
    Data,
    WarmUp,
    Started,
    Stage,
    Span,
    Step,
    EmptyStep,
    Slot,
    Queue,
    Decision,
    Skipped,
    Device,
    Checkpoint,
    Validation,
    Warning,
    Health,
    Final,
}

/// Priority of an event when a queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Reports need it: it has its own queue.
    Essential,
    /// Frequent: dropped first.
    Bulk,
}

impl Kind {
    /// All kinds, in the order of [`Event`].
    pub const ALL: [Kind; 18] = [
        Kind::Run,
        Kind::Data,
        Kind::WarmUp,
        Kind::Started,
        Kind::Stage,
        Kind::Span,
        Kind::Step,
        Kind::EmptyStep,
        Kind::Slot,
        Kind::Queue,
        Kind::Decision,
        Kind::Skipped,
        Kind::Device,
        Kind::Checkpoint,
        Kind::Validation,
        Kind::Warning,
        Kind::Health,
        Kind::Final,
    ];

    /// The tag in the record.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Data => "data",
            Kind::WarmUp => "warm_up",
            Kind::Started => "started",
            Kind::Stage => "stage",
            Kind::Span => "span",
            Kind::Step => "step",
            Kind::EmptyStep => "empty_step",
            Kind::Slot => "slot",
            Kind::Queue => "queue",
            Kind::Decision => "decision",
            Kind::Skipped => "skipped",
            Kind::Device => "device",
            Kind::Checkpoint => "checkpoint",
            Kind::Validation => "validation",
            Kind::Warning => "warning",
            Kind::Health => "health",
            Kind::Final => "final",
        }
    }

    /// Which queue it takes.
    pub fn lane(self) -> Lane {
        match self {
            Kind::Span | Kind::Slot | Kind::Queue | Kind::Device => Lane::Bulk,
            _ => Lane::Essential,
        }
    }
}

impl Event {
    pub fn kind(&self) -> Kind {
        match self {
            Event::Run(_) => Kind::Run,
            Event::Data(_) => Kind::Data,
            Event::WarmUp(_) => Kind::WarmUp,
            Event::Started(_) => Kind::Started,
            Event::Stage(_) => Kind::Stage,
            Event::Span(_) => Kind::Span,
            Event::Step(_) => Kind::Step,
            Event::EmptyStep(_) => Kind::EmptyStep,
            Event::Slot(_) => Kind::Slot,
            Event::Queue(_) => Kind::Queue,
            Event::Decision(_) => Kind::Decision,
            Event::Skipped(_) => Kind::Skipped,
            Event::Device(_) => Kind::Device,
            Event::Checkpoint(_) => Kind::Checkpoint,
            Event::Validation(_) => Kind::Validation,
            Event::Warning(_) => Kind::Warning,
            Event::Health(_) => Kind::Health,
            Event::Final(_) => Kind::Final,
        }
    }

    /// Whether a value inside is still pending.
    pub fn is_waiting(&self) -> bool {
        match self {
            Event::Step(step) => step.is_waiting(),
            _ => false,
        }
    }
}

macro_rules! impl_from_fact {
    ($($variant:ident($fact:ty)),* $(,)?) => {$(
        impl From<$fact> for Event {
            fn from(fact: $fact) -> Event { Event::$variant(fact) }
        }
    )*};
}

impl_from_fact!(
    Data(Data),
    WarmUp(WarmUp),
    Started(Started),
    Stage(StageInterval),
    Span(Span),
    Step(Step),
    EmptyStep(EmptyStep),
    Slot(SlotChange),
    Queue(QueueLevel),
    Decision(Decision),
    Skipped(Skipped),
    Device(DeviceSample),
    Checkpoint(Checkpoint),
    Validation(Validation),
    Warning(Warning),
    Health(Health),
    Final(Final),
);
