//! A pipeline of overlapping stages: bounded in bytes, in order, measured.
//!
//! In: a source of items and [`Stage`]s that process them. Out: a [`Feed`] from which one consumer
//! takes the results in the order of the source. The pipeline owns all threads. It knows nothing of
//! speech, devices or Burn. Modules are listed in the order in which an item passes them.

mod sync; // the locks that all modules use
pub mod payload; // 1. what can travel
pub mod stage; // 2. one processing stage
pub mod budget; // 3. how many bytes may be in flight
pub mod queue_limits; // 3. the limits of one queue
mod slot_pool; // 3. the numbered slots of a queue
mod queue; // 4. the queue that restores the order
pub mod slots; // 4. the slots at the end of a route, for observers
pub mod pool; // 4. reusable memory
mod permits; // 5. how many workers are active
pub mod thread_priority; // 5. a lower priority for stages on the CPU that trains
mod worker; // 5. the loop of a worker's thread
pub mod route; // 6. the stages in order
mod run; // 7. starts and joins the threads
pub mod feed; // 8. the consumer's end
pub mod control; // 9. the handle for other threads
pub mod meter; // 9. what a worker does, and for how long
pub mod intervals; // 9. how long each stage worked on each item
mod monitor; // 10. the monitor thread
pub mod watchdog; // 10. finds the stage that hangs, and the run in which nothing moves
pub mod adapt; // 10. decides the numbers of workers and slots
pub mod slow; // 10. slows stages on purpose
pub mod stop; // 11. stops a run and ends every wait
pub mod error; // 11. why a run ended early
pub mod cost; // not on the path: random costs of a stage
pub mod simulate; // predicts a run with such costs
pub mod rehearse; // measures such a run on real threads

pub use adapt::Adapt;
pub use budget::Budget;
pub use control::Control;
pub use error::PipelineError;
pub use feed::{Delivery, Ended, Ending, Feed};
pub use intervals::Interval;
pub use payload::{Payload, Ticketed};
pub use pool::{Pool, Pooled};
pub use queue::Level;
pub use queue_limits::QueueLimits;
pub use route::{Crew, Route, Setup};
pub use slots::{SlotState, Slots};
pub use slow::{Slowdown, Slowdowns};
pub use stage::{BoxError, Emitter, Stage, StageError};
pub use stop::CancelToken;
pub use thread_priority::ThreadPriority;
pub use watchdog::{Frozen, Stalled, Watch};
