//! CPU and memory of this process and of the whole machine.
//!
//! In: the CPU clock of the process and the counters of the system. Out: two devices with the host role,
//! `process` and `machine`. Utilisation is a difference of two samples: the first has none.

use super::processor_share::ProcessorShare;
use super::{SampleError, Source};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use sysinfo::{MemoryRefreshKind, Pid, ProcessRefreshKind, ProcessesToUpdate, System};
use tandem_telemetry::event::{DeviceRole, DeviceSample};
use tandem_units::Bytes;

/// This process: utilisation of the CPUs it may use, and resident memory.
#[derive(Default)]
pub struct Process {
    system: Option<System>,
    share: ProcessorShare,
}

impl Process {
    pub fn new() -> Process {
        Process::default()
    }

    fn memory(&mut self) -> Result<Bytes, SampleError> {
        let system = opened(&mut self.system)?;
        let own = Pid::from_u32(std::process::id());
        let memory = ProcessRefreshKind::nothing().with_memory().without_tasks();
        let only = ProcessesToUpdate::Some(&[own]);
        system.refresh_processes_specifics(only, false, memory);
        system.process(own).map(|process| Bytes(process.memory())).ok_or(SampleError::Process)
    }
}

impl Source for Process {
    fn name(&self) -> &str {
        "process"
    }

    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError> {
        let sample = DeviceSample {
            memory_used: Some(self.memory()?),
            utilisation: processor_time()
                .and_then(|used| self.share.since_last(Instant::now(), used, processors())),
            ..DeviceSample::new("process".into(), DeviceRole::Host)
        };
        Ok(Some(sample))
    }
}

/// The counters of the system, opened at the first sample.
fn opened(system: &mut Option<System>) -> Result<&mut System, SampleError> {
    match system {
        Some(system) => Ok(system),
        None => Ok(system.insert(System::new().map_err(SampleError::System)?)),
    }
}

/// CPUs that this process may use in parallel.
pub(super) fn processors() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64)
}

/// CPU time of all threads of this process.
fn processor_time() -> Option<Duration> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
}

/// The whole machine, including other processes.
#[derive(Default)]
pub struct Machine {
    system: Option<System>,
    // The first sample has nothing to compare with.
    looked: bool,
}

impl Machine {
    pub fn new() -> Machine {
        Machine::default()
    }
}

impl Source for Machine {
    fn name(&self) -> &str {
        "machine"
    }

    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError> {
        let looked = std::mem::replace(&mut self.looked, true);
        let system = opened(&mut self.system)?;
        system.refresh_cpu_usage();
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        let total = system.total_memory();
        let used = total.saturating_sub(system.available_memory());
        let sample = DeviceSample {
            utilisation: looked.then(|| system.global_cpu_usage() / 100.0),
            memory_used: (total > 0).then_some(Bytes(used)),
            memory_total: (total > 0).then_some(Bytes(total)),
            ..DeviceSample::new("machine".into(), DeviceRole::Host)
        };
        Ok((!sample.is_empty()).then_some(sample))
    }
}
