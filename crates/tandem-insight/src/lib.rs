//! Analysis of runs: bottlenecks, comparisons, and predictions for other settings.
//!
//! In: run records, read by `tandem-telemetry`. Out: results that the program prints, draws or
//! writes as JSON. Never starts a run, a device or a thread; what was not measured is not predicted.

pub mod measured; // a record of one run -> what each batch cost in each phase
pub mod predict; // measured costs, other workers and depth -> predicted step time
pub mod profile; // several runs of one setting -> the profile
mod profile_rules; // which of the promised thresholds a run violates
mod profile_verdict; // the bottleneck, in one sentence
pub mod batch_advice; // batch size and memory, from runs of several sizes
mod recommend; // recommended changes, by predicted gain
pub mod plan; // profiles -> which mode, workers, depth and batch to use
pub mod reduce_cost; // what a sum of gradients over several ranks costs
mod plan_error; // what was not measured
mod batch_fit; // batches of another size
mod presets; // the configuration matrix
pub mod plan_check; // predictions against runs
pub mod plan_past; // predictions against finished runs
pub mod measured_run; // what a record says about pace and devices, step by step
pub mod run_log; // what a run printed
pub mod run_source; // a run by its record, its directory or its output
pub mod bootstrap; // confidence intervals for correlated series
pub mod compare; // whether two runs differ
pub mod readiness; // whether settings are ready for a run
pub mod myxtts; // settings of another program and their equivalents
pub mod scaling; // throughput by batch size, and where it stops growing
pub mod redact; // removal of private data from text
