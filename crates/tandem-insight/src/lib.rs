//! Judgements about runs: what holds one back, how two differ, what another setting would give.
//!
//! In: run records, read by `tandem-telemetry`. Out: plain answers that the program prints, draws
//! or writes as JSON. Never: a run, a device, a thread; what was not measured is not predicted.
