//! What the fuzz targets run, as functions: the fuzzer calls them, and so does an ordinary test
//! (`crates/tandem/tests/fuzz_corpora.rs`) with the inputs that are checked in and many like them.

pub mod targets; // one function for each thing that reads foreign bytes
