//! Arbitrary bytes as a run record: see `tandem_fuzz::targets::run_record`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tandem_fuzz::targets::run_record(bytes));
