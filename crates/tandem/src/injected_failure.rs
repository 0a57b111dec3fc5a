//! The hidden flag `--inject-failure`: makes the disk fail where a test wants it to.
//!
//! In: `WHAT:NAME`. Out: hooks on the disk, or none without the flag.
//!
//! | WHAT | effect |
//! |---|---|
//! | `log`, `log-reads` | NAME is a file; each change (or read) is appended to it by name |
//! | `kill` | the process ends by SIGKILL before the change NAME |
//! | `full`, `broken` | the change NAME fails with ENOSPC or EIO |
//! | `read-error`, `read-stale` | the read NAME fails with EIO or ESTALE |
//! | `read-delay-250` | the read NAME takes 250 ms longer |
//!
//! A change is named like `write run/run.jsonl`, a read like `open wavs/a.wav` (`stat`, `list`,
//! `open` or `read`; `open *` is any file). `NAME#3` is the third operation of that name, `NAME#1-2`
//! the first two, `NAME#1-` all of them. Without a number it is the first. A failure is announced on stderr when it happens.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tandem_disk::Watch;

/// Announces a failure; the name of the operation follows.
const HAPPENED: &str = "injected failure: ";
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What the flag asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InjectedFailure {
    LogChanges(PathBuf),
    LogReads(PathBuf),
    Change(DiskFailure, Target),
    Read(DiskFailure, Target),
}

/// What happens before an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFailure {
    Kill,
    Error(i32),
    Stale,
    Delay(Duration),
}

/// The operations that are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    name: String,
    /// The first and the last operation of that name, counted from 1.
    first: u64,
    last: u64,
}

impl FromStr for InjectedFailure {
    type Err = String;

    fn from_str(text: &str) -> Result<InjectedFailure, String> {
        let (what, rest) = text.split_once(':').ok_or("WHAT:NAME")?;
        Ok(match what {
            "log" => InjectedFailure::LogChanges(rest.into()),
            "log-reads" => InjectedFailure::LogReads(rest.into()),
            "kill" => InjectedFailure::Change(DiskFailure::Kill, rest.parse()?),
            "full" => InjectedFailure::Change(DiskFailure::Error(ENOSPC), rest.parse()?),
            "broken" => InjectedFailure::Change(DiskFailure::Error(EIO), rest.parse()?),
            "read-error" => InjectedFailure::Read(DiskFailure::Error(EIO), rest.parse()?),
            "read-stale" => InjectedFailure::Read(DiskFailure::Stale, rest.parse()?),
            _ => {
                let delay = what.strip_prefix("read-delay-").and_then(|ms| ms.parse().ok());
                let delay = delay.ok_or(
                    "WHAT is log, log-reads, kill, full, broken, read-error, read-stale or \
                     read-delay-MILLISECONDS",
                )?;
                InjectedFailure::Read(
                    DiskFailure::Delay(Duration::from_millis(delay)),
                    rest.parse()?,
                )
            }
        })
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let (name, turns) = text.rsplit_once('#').unwrap_or((text, "1"));
        let (first, last) = turns.split_once('-').unwrap_or((turns, turns));
        let number = |text: &str| text.parse().map_err(|_| "NAME#NUMBER or NAME#FIRST-LAST");
        let last = if last.is_empty() { u64::MAX } else { number(last)? };
        Ok(Target { name: name.into(), first: number(first)?, last })
    }
}

impl Target {
    fn is_named(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == self.name,
        }
    }
}

impl InjectedFailure {
    /// Adds the hook; it is removed when the result is dropped.
    pub fn begin(self) -> io::Result<Watch> {
        Ok(match self {
            InjectedFailure::LogChanges(path) => on_changes(logging(path)?),
            InjectedFailure::LogReads(path) => on_reads(logging(path)?),
            InjectedFailure::Change(failure, target) => on_changes(failing(failure, target)),
            InjectedFailure::Read(failure, target) => on_reads(failing(failure, target)),
        })
    }
}

fn on_changes(hook: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Watch {
    tandem_disk::watch(Path::new(""), Arc::new(move |change| hook(&change.name())))
}

fn on_reads(hook: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Watch {
    tandem_disk::watch_reads(Path::new(""), Arc::new(move |access| hook(&access.name())))
}

fn logging(path: PathBuf) -> io::Result<impl Fn(&str) -> io::Result<()> + Send + Sync> {
    let log = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(move |name: &str| append(&log, name))
}

fn failing(failure: DiskFailure, target: Target) -> impl Fn(&str) -> io::Result<()> + Send + Sync {
    let seen = AtomicU64::new(0);
    move |name: &str| {
        let concerned = target.is_named(name)
            && (target.first..=target.last).contains(&(seen.fetch_add(1, Ordering::Relaxed) + 1));
        if !concerned {
            return Ok(());
        }
        // Which operations a run reaches depends on time; a test must know whether the failure happened.
        let _ = io::stderr().write_all(format!("{HAPPENED}{name}\n").as_bytes());
        failure.happen()
    }
}

/// A single write, so that lines of several threads do not mix.
fn append(mut log: &File, name: &str) -> io::Result<()> {
    log.write_all(format!("{name}\n").as_bytes())
}

impl DiskFailure {
    fn happen(self) -> io::Result<()> {
        match self {
            DiskFailure::Kill => {
                let killed = signal_hook::low_level::raise(signal_hook::consts::SIGKILL);
                // Not reached; if it is, the test must notice.
                killed.and(Err(io::Error::other("SIGKILL had no effect")))
            }
            DiskFailure::Error(errno) => Err(io::Error::from_raw_os_error(errno)),
            DiskFailure::Stale => Err(io::ErrorKind::StaleNetworkFileHandle.into()),
            DiskFailure::Delay(delay) => {
                std::thread::sleep(delay);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str, first: u64, last: u64) -> Target {
        Target { name: name.into(), first, last }
    }

    #[test]
    fn an_operation_is_given_by_name_and_number() {
        let name = "write run/run.jsonl";
        let change = |failure, turn| Ok(InjectedFailure::Change(failure, target(name, turn, turn)));
        assert_eq!("kill:write run/run.jsonl".parse(), change(DiskFailure::Kill, 1));
        assert_eq!("full:write run/run.jsonl#12".parse(), change(DiskFailure::Error(ENOSPC), 12));
        assert_eq!("log:changes".parse(), Ok(InjectedFailure::LogChanges("changes".into())));
        assert!("kill".parse::<InjectedFailure>().is_err());
        assert!("melt:disk".parse::<InjectedFailure>().is_err());
        assert!("kill:write x#y".parse::<InjectedFailure>().is_err());
    }

    #[test]
    fn reads_fail_or_wait_in_a_range_of_turns() {
        let read = |failure, target| Ok(InjectedFailure::Read(failure, target));
        let first_two = target("open wavs/a.wav", 1, 2);
        assert_eq!(
            "read-error:open wavs/a.wav#1-2".parse(),
            read(DiskFailure::Error(EIO), first_two)
        );
        let all = target("read *", 1, u64::MAX);
        let delay = DiskFailure::Delay(Duration::from_millis(250));
        assert_eq!("read-delay-250:read *#1-".parse(), read(delay, all));
        let hook = failing(DiskFailure::Stale, target("open *", 2, 3));
        let failed: Vec<bool> = ["open a", "read a", "open b", "open c", "open d"]
            .map(|name| hook(name).is_err())
            .into();
        assert_eq!(failed, [false, false, true, true, false]);
    }
}
