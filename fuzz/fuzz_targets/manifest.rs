//! Arbitrary bytes as a corpus manifest: see `tandem_fuzz::targets::manifest`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tandem_fuzz::targets::manifest(bytes));
