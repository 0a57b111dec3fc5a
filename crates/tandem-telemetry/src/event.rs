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
    EmptyStep, Final, Graphs, Health, Kernels, QueueLevel, RunOutcome, Skipped, SlotChange,
    SlotState, Span, StageInterval, StartReason, Started, Validation, WarmUp, Warning,
};
pub use crate::header::{HostFacts, RunHeader, Schema};
pub use crate::ranks::RankInterval;
pub use crate::step::{Loss, Step};

/// A name. Static strings cost no allocation to send.
pub type Name = Cow<'static, str>;

/// Defines [`Event`], its [`Kind`] and all conversions from one list.
macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident($fact:ty) = $tag:literal,)*) => {
        /// One fact about a run. The tag in the record is the variant in snake case.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "event", rename_all = "snake_case")]
        pub enum Event {
            $($(#[$doc])* $variant($fact),)*
        }

        /// Which event it is, without its contents.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($variant,)*
        }

        impl Kind {
            /// All kinds, in the order of [`Event`].
            pub const ALL: [Kind; [$($tag),*].len()] = [$(Kind::$variant),*];

            /// The tag in the record.
            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$variant => $tag,)*
                }
            }
        }

        impl Event {
            pub fn kind(&self) -> Kind {
                match self {
                    $(Event::$variant(_) => Kind::$variant,)*
                }
            }
        }

        $(impl From<$fact> for Event {
            fn from(fact: $fact) -> Event {
                Event::$variant(fact)
            }
        })*
    };
}

events! {
    /// First line: what runs, where, with which settings.
    Run(Box<RunHeader>) = "run",
    /// What the run found in its corpus at the start.
    Data(Data) = "data",
    /// A padded shape was run once before step 1.
    WarmUp(WarmUp) = "warm_up",
    /// Kernels tuned and compiled before step 1.
    Kernels(Kernels) = "kernels",
    /// Steps as CUDA graphs: what was captured before step 1, and at the end how many steps they did.
    Graphs(Graphs) = "graphs",
    /// The controlled start ended.
    Started(Started) = "started",
    /// What a stage did since its last such line.
    Stage(StageInterval) = "stage",
    /// One piece of work, starvation or blocking on one worker.
    Span(Span) = "span",
    /// One training step is over.
    Step(Step) = "step",
    /// An optimizer step all of whose batches were skipped: the weights did not change.
    EmptyStep(EmptyStep) = "empty_step",
    /// What the ranks of a data-parallel run did since the last such line.
    Ranks(RankInterval) = "ranks",
    /// A batch slot changed its state.
    Slot(SlotChange) = "slot",
    /// How full a queue is.
    Queue(QueueLevel) = "queue",
    /// The adaptive controller tried, kept or reverted a change.
    Decision(Decision) = "decision",
    /// An item was skipped.
    Skipped(Skipped) = "skipped",
    /// A sample of a device.
    Device(DeviceSample) = "device",
    /// A checkpoint is on disk.
    Checkpoint(Checkpoint) = "checkpoint",
    /// Validation metrics on held-out rows.
    Validation(Validation) = "validation",
    /// A warning for the user.
    Warning(Warning) = "warning",
    /// Health of the record itself; written by the record's own thread.
    Health(Health) = "health",
    /// The run is over; absent where it was killed.
    Final(Final) = "final",
}

/// An [`Event`] and the moment it was sent: one line of the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// Nanoseconds since the start of the run.
    pub at: Nanos,
    #[serde(flatten)]
    pub event: Event,
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
    pub fn lane(self) -> Lane {
        match self {
            Kind::Span | Kind::Slot | Kind::Queue | Kind::Device => Lane::Bulk,
            _ => Lane::Essential,
        }
    }
}

impl Event {
    /// Whether a value inside is still pending.
    pub fn is_waiting(&self) -> bool {
        match self {
            Event::Step(step) => step.is_waiting(),
            _ => false,
        }
    }
}
