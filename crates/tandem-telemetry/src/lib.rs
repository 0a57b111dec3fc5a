//! Events in, run record out; reports read the record.
//!
//! Modules are listed in the order an event takes. Nothing here waits on a device, and no
//! sender ever waits for the record.

pub mod clock; // nanoseconds since the start of the run
pub mod pending; // a loss that is still on the device
pub mod header; // 1. what runs, where
pub mod facts; // 1. contents of events
pub mod step; // 1. the step and its losses
pub mod ranks; // 1. and 8. the ranks of a data-parallel run
pub mod event; // 1. the closed list
mod intake; // 2. bounded queues that count dropped events
mod record_file; // 3. complete lines to a disk that may fail
pub mod record_options; // options and listener of a record
mod watch; // 4. status of the writer thread
mod writer; // 4. the writer thread
pub mod record; // 5. the handle that sends, the thread that writes
pub mod reader; // 6. the record read back
pub mod run_parts; // 6. which records a run has
pub mod sketch; // percentiles of a stream
pub mod stats; // mean, deviation, extremes of a stream
pub mod step_sample; // single steps and what their times depend on
mod expected_time; // what a step of a size usually takes
pub mod variation; // 8. how much step times vary beyond their shapes
pub mod variation_cause; // 8. what slow steps have in common
pub mod summary; // 7. summary of a run
pub mod rules; // every threshold
pub mod crowd; // 8. other programs on the machine
pub mod verdict; // 8. the bottleneck
mod verdict_words; // 8. the same in sentences, in each language
pub mod grade; // 8. against the targets
pub mod advice; // 8. flags to change, and what they should bring
pub mod periodic; // 8. the line every hundred steps
pub mod report; // 9. the final report
mod report_text; // 9. the report as text
pub mod perfetto; // 10. a trace for the Perfetto UI
mod perfetto_messages; // 10. its messages
mod perfetto_tracks; // 10. its rows and strings
mod trace_ring; // 10. the newest packets
pub mod metrics; // 10. current values for Prometheus
pub mod tensorboard; // 10. curves, pictures and sound for TensorBoard
pub mod error; // errors and hints

pub use clock::{Nanos, RunClock};
pub use error::TelemetryError;
pub use event::{Event, Stamped};
pub use pending::{Pending, Promise};
pub use perfetto::Trace;
pub use reader::{ReadNotes, RunRecord};
pub use record::{Closed, Ending, RecordOptions, Recorder, Recording, Spans};
pub use record_file::{MemoryFile, RecordFile};
pub use report::Report;
pub use rules::Rules;
pub use stats::{Figures, Stats};
pub use summary::Summary;
pub use variation::{Variation, variation};
