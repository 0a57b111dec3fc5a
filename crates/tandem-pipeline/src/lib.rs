//! Stages that truly overlap, bounded in bytes, exact in order, measured all the time.
//!
//! In: a source of items and [`Stage`]s that work on them. Out: a [`Feed`] from which one
//! consumer takes the results in the order of the source. The pipeline owns all threads; it has
//! never heard of speech, of devices or of Burn. Modules are listed in the order an item takes.

mod sync; // the locks all of it is built on
pub mod payload; // 1. what may travel
pub mod stage; // 2. one kind of work
pub mod budget; // 3. how many bytes may be on their way
pub mod hold; // 3. the bounds of one queue
mod places; // 3. the numbered places of a queue
mod link; // 4. the queue that restores the order
pub mod slots; // 4. the places at the end, for all to see
pub mod pool; // 4. memory that is used again
mod gate; // 5. how many workers are at work
pub mod thread_priority; // 5. stages below the consumer, on the CPU that trains
mod worker; // 5. what a worker's thread does
pub mod route; // 6. the path, written down once
mod run; // 7. threads, and how they end
pub mod feed; // 8. the consumer's end
pub mod control; // 9. everyone else's handle
pub mod meter; // 9. what a worker does, and for how long
mod monitor; // 10. the thread that looks after a run
pub mod watchdog; // 10. finds the stage that hangs, and the run in which nothing moves
pub mod adapt; // 10. decides about workers and depth
pub mod slow; // 10. stages slowed on purpose
pub mod stop; // 11. one cause, nobody left waiting
pub mod error; // 11. what is told
pub mod cost; // beside the path: what a stage costs, drawn from a seed
pub mod simulate; // what the queues will do, computed
pub mod rehearse; // the same on real threads, measured

pub use adapt::Adapt;
pub use budget::Budget;
pub use control::Control;
pub use error::PipelineError;
pub use feed::{Delivery, Ended, Ending, Feed};
pub use hold::Hold;
pub use link::Level;
pub use payload::{Payload, Ticketed};
pub use pool::{Pool, Pooled};
pub use route::{Crew, Route, Setup};
pub use slots::{SlotState, Slots};
pub use slow::Slowdowns;
pub use stage::{BoxError, Outlet, Stage, Trouble};
pub use stop::CancelToken;
pub use thread_priority::ThreadPriority;
pub use watchdog::{Frozen, Stalled, Watch};
