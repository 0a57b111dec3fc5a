//! The fuzz targets as functions. The fuzzer calls them, and so does an ordinary test
//! (`crates/tandem/tests/fuzz_corpora.rs`) with the checked-in inputs and mutations of them.

pub mod targets; // one function for each parser of untrusted bytes
