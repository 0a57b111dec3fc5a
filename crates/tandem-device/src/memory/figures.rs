//! The memory figures of an allocator, if it reports any.
//!
//! In: a device. Out: [`MemoryFigures`]. Changes nothing.

use burn::tensor::Device;
use serde::Serialize;
use std::fs;
use tandem_units::Bytes;

/// Memory of one device, as its allocator reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryFigures {
    /// In use by live tensors.
    pub in_use: Bytes,
    /// Allocated from the device, including cached pages.
    pub reserved: Bytes,
}

/// The figures of a device. For the CPU they are those of the process: the resident memory now and
/// its peak. `None` if neither is known.
pub fn figures_of(device: &Device) -> Option<MemoryFigures> {
    match device.memory_pool_usage() {
        Some(usage) => Some(MemoryFigures {
            in_use: Bytes(usage.bytes_in_use),
            reserved: Bytes(usage.bytes_reserved),
        }),
        None => of_process(&fs::read_to_string("/proc/self/status").ok()?),
    }
}

/// `VmRSS` and `VmHWM` of `/proc/self/status`.
fn of_process(status: &str) -> Option<MemoryFigures> {
    let value = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok().map(Bytes::kib)
    };
    Some(MemoryFigures { in_use: value("VmRSS:")?, reserved: value("VmHWM:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_reports_the_memory_of_the_process() {
        let figures = figures_of(&Device::flex()).expect("Linux reports it");
        assert!(figures.in_use > Bytes::mib(1) && figures.reserved >= figures.in_use);
    }

    #[test]
    fn resident_memory_and_its_peak_are_read() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        let expected = MemoryFigures { in_use: Bytes::mib(1), reserved: Bytes::mib(2) };
        assert_eq!(of_process(status), Some(expected));
        assert_eq!(of_process("VmRSS: 12"), None);
    }
}
