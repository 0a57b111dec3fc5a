//! What the stand-in driver counts: `tools/cuda-stand-in`.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Sub;

/// Calls since the program started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCounts {
    pub launches: u64,
    pub copies_to_device: u64,
    pub copies_to_host: u64,
    pub copies_on_device: u64,
    pub synchronisations: u64,
    pub allocations: u64,
    pub bytes_to_device: u64,
}

impl DriverCounts {
    pub fn now() -> DriverCounts {
        let mut counts = [0u64; 9];
        // SAFETY: the function of driver.c fills at most as many numbers as it is told.
        let known = unsafe {
            let read: extern "C" fn(*mut u64, c_int) -> c_int =
                std::mem::transmute(function(c"cuda_stand_in_counts"));
            read(counts.as_mut_ptr(), counts.len() as c_int)
        };
        assert_eq!(known as usize, counts.len(), "the order of `Count` in driver.h");
        let [launches, to_device, to_host, on_device, sync, alloc, _, bytes, _] = counts;
        DriverCounts {
            launches,
            copies_to_device: to_device,
            copies_to_host: to_host,
            copies_on_device: on_device,
            synchronisations: sync,
            allocations: alloc,
            bytes_to_device: bytes,
        }
    }
}

impl Sub for DriverCounts {
    type Output = DriverCounts;

    fn sub(self, before: DriverCounts) -> DriverCounts {
        DriverCounts {
            launches: self.launches - before.launches,
            copies_to_device: self.copies_to_device - before.copies_to_device,
            copies_to_host: self.copies_to_host - before.copies_to_host,
            copies_on_device: self.copies_on_device - before.copies_on_device,
            synchronisations: self.synchronisations - before.synchronisations,
            allocations: self.allocations - before.allocations,
            bytes_to_device: self.bytes_to_device - before.bytes_to_device,
        }
    }
}

/// From now on launches are checked and counted, and kernels not computed: results are meaningless.
pub fn stop_computing() {
    // SAFETY: the function of modules.c takes nothing and returns nothing.
    unsafe {
        let stop: extern "C" fn() = std::mem::transmute(function(c"cuda_stand_in_stop_computing"));
        stop();
    }
}

fn function(name: &CStr) -> *mut c_void {
    // SAFETY: the library is loaded already, and both strings end with a zero.
    let found = unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "the stand-in driver is not loaded");
        libc::dlsym(library, name.as_ptr())
    };
    assert!(!found.is_null(), "{name:?}: the driver is not the stand-in of this version");
    found
}
