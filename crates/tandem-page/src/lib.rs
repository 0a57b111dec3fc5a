//! Pages about runs: one self-contained HTML file, a live page on loopback, a terminal view.
//!
//! In: run records and answers of `tandem-insight`. Out: pages. Never: a judgement of its own, a
//! request to another host, a way to change the run.
