//! Arbitrary bytes as a recording: see `tandem_fuzz::targets::audio`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tandem_fuzz::targets::audio(bytes));
