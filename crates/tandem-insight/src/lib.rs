//! Judgements about runs: what holds one back, how two differ, what another setting would give.
//!
//! In: run records, read by `tandem-telemetry`. Out: plain answers that the program prints, draws
//! or writes as JSON. Never: a run, a device, a thread; what was not measured is not predicted.

pub mod measured; // a record of one run -> what each batch cost in each phase
pub mod predict; // measured costs, other workers and depth -> the step time to expect
pub mod profile; // several runs of one setting -> everything a profile says
mod profile_rules; // against the promised thresholds
mod profile_verdict; // what holds the run back, in one sentence
mod recommend; // what to change, by predicted gain
pub mod plan; // profiles -> which mode, workers, depth and batch to use
mod plan_error; // what was not measured
mod batch_fit; // batches of another size
mod presets; // the configuration matrix
pub mod plan_check; // predictions against runs
pub mod plan_past; // predictions against runs that are over
pub mod measured_run; // what a record says about pace and devices, step by step
pub mod bootstrap; // how far a figure could be off, for numbers that follow each other
pub mod compare; // two runs side by side, and whether they differ
pub mod readiness; // whether settings are ready for a run
pub mod myxtts; // settings of another program, and what they mean here
pub mod scaling; // runs by batch size, and where a larger one stops paying
pub mod chart; // measured points as SVG and PNG
pub mod redact; // what of a text should not be shared
