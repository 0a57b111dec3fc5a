//! Host memory that this process may still use.
//!
//! In: the control group, the limits of the process (`ulimit -v`, `ulimit -d`) and the free memory of the machine. Out:
//! the smallest of them ([`FreeMemory`]), counted as resident memory of this process, so that a predicted peak can be
//! compared with it. Allocates nothing that counts.

use crate::sampler::Cgroup;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use std::fs;
use std::path::Path;
use tandem_units::Bytes;

/// What limits the memory of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemorySource {
    Machine,
    ControlGroup,
    AddressSpace,
    DataSegment,
}

impl MemorySource {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => "free on this machine",
            Self::ControlGroup => "left by the memory limit of the container",
            Self::AddressSpace => "left by the limit of the address space (`ulimit -v`)",
            Self::DataSegment => "left by the limit of data (`ulimit -d`)",
        }
    }
}

/// The most that this process may have resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FreeMemory {
    pub most: Bytes,
    pub source: MemorySource,
}

/// The smallest limit; `None` if the system reports none.
pub fn free_host_memory() -> Option<FreeMemory> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let limit = |resource| getrlimit(resource).current.map(Bytes);
    let limits = ProcessLimits {
        address_space: limit(Resource::As),
        data: limit(Resource::Data),
        group_left: Cgroup::new(Path::new("/")).memory_left(),
    };
    smallest(&status, &meminfo, limits)
}

#[derive(Clone, Copy, Default)]
struct ProcessLimits {
    address_space: Option<Bytes>,
    data: Option<Bytes>,
    /// What the control group may still allocate.
    group_left: Option<Bytes>,
}

fn smallest(status: &str, meminfo: &str, limits: ProcessLimits) -> Option<FreeMemory> {
    let resident = kilobytes(status, "VmRSS:")?;
    // Mapped but not resident: stacks, reserved pages, the program itself. It stays about the same.
    let beside = |key| kilobytes(status, key).map(|all| all.0.saturating_sub(resident.0));
    let within =
        |limit: Option<Bytes>, key| Some(Bytes(limit?.0.saturating_sub(beside(key).unwrap_or(0))));
    let found = [
        (kilobytes(meminfo, "MemAvailable:").map(|free| free + resident), MemorySource::Machine),
        (limits.group_left.map(|left| left + resident), MemorySource::ControlGroup),
        (within(limits.address_space, "VmSize:"), MemorySource::AddressSpace),
        (within(limits.data, "VmData:"), MemorySource::DataSegment),
    ];
    let known =
        found.into_iter().filter_map(|(most, source)| Some(FreeMemory { most: most?, source }));
    known.min_by_key(|free| free.most)
}

fn kilobytes(text: &str, key: &str) -> Option<Bytes> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok().map(Bytes::kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "VmSize:\t 307200 kB\nVmRSS:\t 102400 kB\nVmData:\t 204800 kB\n";
    const MACHINE: &str = "MemTotal: 9999999 kB\nMemAvailable:    1048576 kB\n";

    #[track_caller]
    fn check(limits: ProcessLimits, mib: u64, source: MemorySource) {
        let found = smallest(STATUS, MACHINE, limits);
        assert_eq!(found, Some(FreeMemory { most: Bytes::mib(mib), source }));
    }

    #[test]
    fn the_smallest_limit_counts_with_what_the_process_already_uses() {
        let none = ProcessLimits::default();
        check(none, 1124, MemorySource::Machine);
        let group_left = Some(Bytes::mib(50));
        check(ProcessLimits { group_left, ..none }, 150, MemorySource::ControlGroup);
        let address_space = Some(Bytes::mib(700));
        check(ProcessLimits { address_space, ..none }, 500, MemorySource::AddressSpace);
        check(ProcessLimits { data: address_space, ..none }, 600, MemorySource::DataSegment);
    }

    #[test]
    fn this_process_has_a_limit() {
        assert!(free_host_memory().expect("Linux reports it").most > Bytes::mib(1));
    }
}
