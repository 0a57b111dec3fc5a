//! The CPU: its name, cores, memory and vector extensions.
//!
//! In: `/proc` on Linux. Out: [`Processor`]. Facts that the system does not report are absent.

use serde::Serialize;
use std::fs;
use std::thread;
use tandem_units::Bytes;

/// The CPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Processor {
    pub name: String,
    /// Threads that this process may run in parallel.
    pub threads: usize,
    pub memory: Option<Bytes>,
    /// Vector extensions that the CPU backend and the mel kernel use, widest last.
    pub vector_units: Vec<&'static str>,
}

impl Processor {
    pub fn here() -> Processor {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Processor {
            name: name_in(&cpuinfo).unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            threads: thread::available_parallelism().map_or(1, usize::from),
            memory: memory_in(&meminfo),
            vector_units: vector_units(),
        }
    }
}

/// The model name in `/proc/cpuinfo`; ARM uses other keys.
fn name_in(cpuinfo: &str) -> Option<String> {
    let value = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    value("model name").or_else(|| value("Hardware")).or_else(|| value("Model"))
}

/// `MemTotal:       24580000 kB`
fn memory_in(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let count = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes::kib(count))
}

#[cfg(target_arch = "x86_64")]
fn vector_units() -> Vec<&'static str> {
    let known = [
        ("SSE4.2", is_x86_feature_detected!("sse4.2")),
        ("AVX", is_x86_feature_detected!("avx")),
        ("AVX2", is_x86_feature_detected!("avx2")),
        ("FMA", is_x86_feature_detected!("fma")),
        ("AVX-512", is_x86_feature_detected!("avx512f")),
    ];
    known.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

#[cfg(target_arch = "aarch64")]
fn vector_units() -> Vec<&'static str> {
    let known = [
        ("NEON", std::arch::is_aarch64_feature_detected!("neon")),
        ("SVE", std::arch::is_aarch64_feature_detected!("sve")),
    ];
    known.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn vector_units() -> Vec<&'static str> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_read_from_each_format() {
        let intel = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) @ 2.80GHz\n";
        assert_eq!(name_in(intel).as_deref(), Some("Intel(R) Xeon(R) @ 2.80GHz"));
        let pi = "processor\t: 0\nHardware\t: BCM2835\nModel\t: Raspberry Pi 4\n";
        assert_eq!(name_in(pi).as_deref(), Some("BCM2835"));
        assert_eq!(name_in("flags : fpu"), None);
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        let text = "MemTotal:       24580000 kB\nMemFree: 1 kB\n";
        assert_eq!(memory_in(text), Some(Bytes(24_580_000 * 1024)));
        assert_eq!(memory_in("MemTotal: much"), None);
    }

    #[test]
    fn this_machine_has_at_least_one_thread_and_a_name() {
        let here = Processor::here();
        assert!(here.threads >= 1 && !here.name.is_empty(), "{here:?}");
    }
}
