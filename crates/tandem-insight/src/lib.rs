//! Judgements about runs: what holds one back, how two differ, what another setting would give.
//!
//! In: run records, read by `tandem-telemetry`. Out: plain answers that the program prints, draws
//! or writes as JSON. Never: a run, a device, a thread; what was not measured is not predicted.

pub mod measured_run; // what a record says about pace and devices, step by step
pub mod bootstrap; // how far a figure could be off, for numbers that follow each other
pub mod compare; // two runs side by side, and whether they differ
pub mod readiness; // whether settings are ready for a run
pub mod myxtts; // settings of another program, and what they mean here
pub mod scaling; // runs by batch size, and where a larger one stops paying
pub mod chart; // measured points as SVG and PNG
pub mod redact; // what of a text should not be shared
