//! Arbitrary bytes as a configuration file: see `tandem_fuzz::targets::config_file`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tandem_fuzz::targets::config_file(bytes));
