//! Events in, run record out; reports read the record.
//!
//! Modules are listed in the order an event takes. Nothing here waits on a device, and no
//! sender ever waits for the record.

pub mod clock; // nanoseconds since the start of the run
pub mod pending; // a loss that is still on the device
pub mod header; // 1. what runs, where
pub mod facts; // 1. what each event says
pub mod step; // 1. the step and its losses
pub mod event; // 1. the closed list
mod intake; // 2. bounded queues: room or a counted loss
mod record_file; // 3. whole lines onto a disk that may fail
mod writer; // 4. the thread between the two
pub mod record; // 5. the handle that sends, the thread that writes

pub mod error; // what can go wrong, and the way out

pub use clock::{Nanos, RunClock};
pub use error::TelemetryError;
pub use event::{Event, Stamped};
pub use pending::{Pending, Promise};
pub use record::{Closed, Ending, RecordOptions, Recorder, Recording, Spans};
pub use record_file::{MemoryFile, RecordFile};
