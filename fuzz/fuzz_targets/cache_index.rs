//! Arbitrary bytes as the index of a cache: see `tandem_fuzz::targets::cache_index`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tandem_fuzz::targets::cache_index(bytes));
