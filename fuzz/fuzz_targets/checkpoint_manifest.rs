//! Arbitrary bytes as the manifest of a checkpoint: see `tandem_fuzz::targets::checkpoint_manifest`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tandem_fuzz::targets::checkpoint_manifest(bytes));
