//! What an allocator says it holds, where it says so.

use burn::tensor::Device;
use serde::Serialize;
use std::fs;
use tandem_units::Bytes;

/// Memory of one device, as its allocator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryFigures {
    /// Taken by tensors that live.
    pub in_use: Bytes,
    /// Taken from the device, pages kept for later included.
    pub reserved: Bytes,
}

/// The figures of a device. For the processor they are the process's own: resident now, and the
/// most it ever was; none where neither is known.
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
    fn the_processor_answers_with_the_process_itself() {
        let figures = figures_of(&Device::flex()).expect("Linux tells");
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
