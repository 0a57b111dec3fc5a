//! What this process used of the CPUs, and how often it lost one.
//!
//! In: the system's own counters of the process. Out: [`CpuUse`], totals since the start of the
//! process; differences of two belong to a step. Costs about a microsecond.

use std::time::Duration;

/// CPU time of all threads of this process, and how often the system interrupted one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    pub time: Duration,
    /// Involuntary context switches: a thread had work and lost its CPU to another.
    pub preempted: u64,
}

impl CpuUse {
    /// The totals of this process; `None` where the system does not report them.
    pub fn now() -> Option<CpuUse> {
        // SAFETY: all fields are plain integers, for which zero is valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a valid place for the result for the time of the call.
        let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
        if result != 0 {
            return None;
        }
        let time = duration(usage.ru_utime)? + duration(usage.ru_stime)?;
        Some(CpuUse { time, preempted: u64::try_from(usage.ru_nivcsw).ok()? })
    }

    /// What was used since then.
    pub fn since(self, before: CpuUse) -> CpuUse {
        CpuUse {
            time: self.time.saturating_sub(before.time),
            preempted: self.preempted.saturating_sub(before.preempted),
        }
    }
}

fn duration(time: libc::timeval) -> Option<Duration> {
    let micros = u32::try_from(time.tv_usec).ok()?;
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, micros.checked_mul(1000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted() {
        let before = CpuUse::now().unwrap();
        let mut sum = 0u64;
        let mut used = Duration::ZERO;
        // Until the system has counted some work, however busy it is.
        while used < Duration::from_millis(5) {
            (0..100_000u64).for_each(|n| sum = std::hint::black_box(sum.wrapping_add(n)));
            used = CpuUse::now().unwrap().since(before).time;
        }
    }
}
