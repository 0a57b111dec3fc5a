//! Tuning results and compiled kernels, stored by one process for the next.

use crate::{BACKEND, in_child, product_error};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use tandem_device::backend::{
    DeviceId, F32Products, KernelReport, kernel_report, open_for, store_kernels_in,
};
use tandem_telemetry::event::Kernels;

const NAME: &str = "gpu::kernel_cache::tuning_is_kept_for_exactly_these_cards_driver_and_precision";
const DIRECTORY: &str = "TANDEM_TEST_KERNELS";
const PRECISION: &str = "TANDEM_TEST_PRECISION";

#[test]
fn tuning_is_kept_for_exactly_these_cards_driver_and_precision() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return multiply(Path::new(&directory));
    }
    let _alone = crate::alone();
    let directory = tempfile::tempdir().unwrap();
    let drivers = env::var("CUDA_STAND_IN_DRIVERS").expect("xtask/tests/cuda_tests.sh sets it");
    let older = format!("{drivers}/12.0");
    let start = |variables: &[(&str, &str)]| {
        let kept = [(DIRECTORY, directory.path().to_str().unwrap())];
        Start::read(&in_child(NAME, &[&kept, variables].concat()))
    };

    let first = start(&[]);
    assert!(first.stored == 0 && first.tuned > 0 && first.compiled > 0, "{first:?}");
    let second = start(&[]);
    assert_eq!((second.stored, second.tuned, second.compiled), (first.tuned, 0, 0), "{second:?}");
    assert!(second.said.contains(" saved; none new"), "{second:?}");

    // Another driver, and TF32, which has other kernels.
    let other_driver = start(&[("LD_LIBRARY_PATH", &older)]);
    assert!(other_driver.stored == 0 && other_driver.tuned > 0, "{other_driver:?}");
    let tf32 = start(&[(PRECISION, "tf32")]);
    assert!(tf32.stored == 0 && tf32.tuned > 0, "{tf32:?}");
    let full_again = start(&[]);
    assert_eq!((full_again.stored, full_again.tuned), (first.tuned, 0), "{full_again:?}");

    // A damaged file is a warning, and its place is taken by a new one.
    let damaged = files(directory.path());
    assert!(damaged.len() >= 3, "{damaged:?}");
    for file in &damaged {
        fs::write(file, vec![0x5a; 40_000]).unwrap();
    }
    let after = start(&[]);
    assert!(after.said.contains("unreadable and were moved to"), "{after:?}");
    assert!(after.stored == 0 && after.tuned > 0, "{after:?}");
    let repaired = start(&[]);
    assert_eq!((repaired.stored, repaired.tuned), (after.tuned, 0), "{repaired:?}");
    assert!(repaired.said.contains("fault: none"), "{repaired:?}");
}

/// In a process of its own: one product, and what it cost.
fn multiply(directory: &Path) {
    store_kernels_in(directory);
    let id = DeviceId { backend: BACKEND, index: 0 };
    let is_tf32 = env::var(PRECISION).is_ok_and(|precision| precision == "tf32");
    let products = if is_tf32 { F32Products::Tf32 } else { F32Products::Full };
    let off = product_error(&open_for(id, products).unwrap());
    assert_eq!(off > 2e-6, is_tf32, "{off}");
    let KernelReport { kernels, fault } = kernel_report().expect("a device is open");
    let Kernels { cached_tuned, tuned, compiled, .. } = kernels;
    let fault = fault.unwrap_or_else(|| "none".into());
    eprintln!("counts: {cached_tuned} {tuned} {compiled}");
    eprintln!("kernels: {kernels}; fault: {fault}");
}

#[derive(Debug)]
struct Start {
    stored: u64,
    tuned: u64,
    compiled: u64,
    said: String,
}

impl Start {
    fn read(said: &str) -> Start {
        let line = said.lines().find_map(|line| line.strip_prefix("counts: ")).expect("counts");
        let counts: Vec<u64> = line.split(' ').map(|count| count.parse().unwrap()).collect();
        let [stored, tuned, compiled] = counts[..] else { panic!("{line}") };
        Start { stored, tuned, compiled, said: said.into() }
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "db")).collect()
}
