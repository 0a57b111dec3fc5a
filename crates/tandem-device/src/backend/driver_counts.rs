//! What the driver was asked to do: launches, copies, waits, allocations.
//!
//! In: the loaded CUDA driver. Out: [`DriverCounts`] since the program started. Only the stand-in driver of
//! `tools/cuda-stand-in` counts; NVIDIA's own has no such functions. Loads nothing.

use serde::Serialize;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Sub;

/// Calls since the program started, or between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DriverCounts {
    pub launches: u64,
    pub copies_to_device: u64,
    pub copies_to_host: u64,
    pub copies_on_device: u64,
    pub synchronisations: u64,
    pub allocations: u64,
    pub bytes_to_device: u64,
    pub bytes_to_host: u64,
    /// Launches of graphs, which are part of `launches`.
    pub graphs: u64,
}

impl DriverCounts {
    /// The counts now; `None` if no driver is loaded, or one that does not count.
    pub fn now() -> Option<DriverCounts> {
        let mut counts = [0u64; 12];
        // SAFETY: the function of driver.c fills at most as many numbers as it is told.
        let known = unsafe {
            let read: extern "C" fn(*mut u64, c_int) -> c_int =
                std::mem::transmute(function(c"cuda_stand_in_counts")?);
            read(counts.as_mut_ptr(), counts.len() as c_int)
        };
        // In the order of `Count` in driver.h; a driver of another version has another number.
        if known as usize != counts.len() {
            return None;
        }
        let [launches, to_device, to_host, on_device, sync, alloc, _, sent, received, graphs, ..] =
            counts;
        Some(DriverCounts {
            launches,
            copies_to_device: to_device,
            copies_to_host: to_host,
            copies_on_device: on_device,
            synchronisations: sync,
            allocations: alloc,
            bytes_to_device: sent,
            bytes_to_host: received,
            graphs,
        })
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
            bytes_to_host: self.bytes_to_host - before.bytes_to_host,
            graphs: self.graphs - before.graphs,
        }
    }
}

/// From now on the stand-in driver checks and counts launches, and does not compute: results are meaningless.
/// Does nothing on another driver.
pub fn stop_computing() {
    // SAFETY: the function of modules.c takes nothing and returns nothing.
    unsafe {
        if let Some(stop) = function(c"cuda_stand_in_stop_computing") {
            let stop: extern "C" fn() = std::mem::transmute(stop);
            stop();
        }
    }
}

/// From now on work of the stand-in driver is late by random times of at most these, such as `launch=50us,copy=2ms`; none
/// without text. Returns whether the driver can do that.
pub fn delay_work(delays: &CStr, seed: u64) -> bool {
    // SAFETY: the function of faults.c reads a string that ends with a zero, and a number.
    unsafe {
        let Some(delay) = function(c"cuda_stand_in_delay") else { return false };
        let delay: extern "C" fn(*const c_char, u64) = std::mem::transmute(delay);
        delay(delays.as_ptr(), seed);
    }
    true
}

/// Writes the costs of every launch during `work` into the log of the stand-in driver, for
/// `xtask/measurements/kernel_report.sh`. On another driver it only does the work.
pub fn with_costs<T>(work: impl FnOnce() -> T) -> T {
    let count = |on: c_int| {
        // SAFETY: the function of modules.c takes one number and returns nothing.
        unsafe {
            if let Some(count) = function(c"cuda_stand_in_count_costs") {
                let count: extern "C" fn(c_int) = std::mem::transmute(count);
                count(on);
            }
        }
    };
    count(1);
    let done = work();
    count(0);
    done
}

/// A function of the loaded driver.
fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: both strings end with a zero; the driver is never unloaded.
    let found = unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        libc::dlsym(library, name.as_ptr())
    };
    (!found.is_null()).then_some(found)
}
