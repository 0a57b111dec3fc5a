//! Who a rank is: host, process and cores.
//!
//! In: `/proc` of this machine. Out: [`Identity`], which every rank sends to all others once. Where two
//! ranks see the same process table, a dead process is noticed at once, long before its silence is.

use serde::{Deserialize, Serialize};

/// What the other ranks know about a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub host: String,
    pub process: u32,
    /// Start time of the process in clock ticks: with it, a process number is unique.
    pub started: Option<u64>,
    /// The cores that the process may use, as the system lists them.
    pub cores: String,
    /// Name and version of the program.
    pub program: String,
}

impl Identity {
    /// This process.
    pub fn of_this_process(program: &str) -> Identity {
        let process = std::process::id();
        Identity {
            host: host_name(),
            process,
            started: start_time(process),
            cores: allowed_cores(),
            program: program.to_string(),
        }
    }

    /// Whether that process can be watched from here: the same process table shows it.
    pub(crate) fn is_visible(&self) -> bool {
        self.started.is_some() && start_time(self.process) == self.started
    }
}

pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = name.ok().or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    match name.trim() {
        "" => "unknown".into(),
        name => name.to_string(),
    }
}

/// The start time of a process that runs; `None` for one that ended, or where there is no `/proc`.
fn start_time(process: u32) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain spaces.
    let mut fields = line.rsplit(')').next()?.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn allowed_cores() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_default().trim().to_string()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_visible_until_it_ends() {
        assert!(Identity::of_this_process("test 1").is_visible());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (process, started) = (child.id(), start_time(child.id()));
        let identity = Identity { process, started, ..Identity::default() };
        assert!(identity.is_visible());
        child.kill().unwrap();
        // Dead, and not yet waited for: a zombie.
        while start_time(process).is_some() {
            std::thread::yield_now();
        }
        assert!(!identity.is_visible());
        child.wait().unwrap();
        assert!(!identity.is_visible());
    }
}
