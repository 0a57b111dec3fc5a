//! The hidden flag `--disk-trouble`: makes the disk fail where a test wants it to.
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
//! the first two, `NAME#1-` all of them. Without a number it is the first.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tandem_disk::Watch;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What the flag asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskTrouble {
    LogChanges(PathBuf),
    LogReads(PathBuf),
    Change(Trouble, Target),
    Read(Trouble, Target),
}

/// What happens before an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
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

impl FromStr for DiskTrouble {
    type Err = String;

    fn from_str(text: &str) -> Result<DiskTrouble, String> {
        let (what, rest) = text.split_once(':').ok_or("WHAT:NAME")?;
        Ok(match what {
            "log" => DiskTrouble::LogChanges(rest.into()),
            "log-reads" => DiskTrouble::LogReads(rest.into()),
            "kill" => DiskTrouble::Change(Trouble::Kill, rest.parse()?),
            "full" => DiskTrouble::Change(Trouble::Error(ENOSPC), rest.parse()?),
            "broken" => DiskTrouble::Change(Trouble::Error(EIO), rest.parse()?),
            "read-error" => DiskTrouble::Read(Trouble::Error(EIO), rest.parse()?),
            "read-stale" => DiskTrouble::Read(Trouble::Stale, rest.parse()?),
            _ => {
                let delay = what.strip_prefix("read-delay-").and_then(|ms| ms.parse().ok());
                let delay = delay.ok_or(
                    "WHAT is log, log-reads, kill, full, broken, read-error, read-stale or \
                     read-delay-MILLISECONDS",
                )?;
                DiskTrouble::Read(Trouble::Delay(Duration::from_millis(delay)), rest.parse()?)
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

impl DiskTrouble {
    /// Adds the hook; it is removed when the result is dropped.
    pub fn begin(self) -> io::Result<Watch> {
        Ok(match self {
            DiskTrouble::LogChanges(path) => on_changes(logging(path)?),
            DiskTrouble::LogReads(path) => on_reads(logging(path)?),
            DiskTrouble::Change(trouble, target) => on_changes(failing(trouble, target)),
            DiskTrouble::Read(trouble, target) => on_reads(failing(trouble, target)),
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

fn failing(trouble: Trouble, target: Target) -> impl Fn(&str) -> io::Result<()> + Send + Sync {
    let seen = AtomicU64::new(0);
    move |name: &str| {
        let concerned = target.is_named(name)
            && (target.first..=target.last).contains(&(seen.fetch_add(1, Ordering::Relaxed) + 1));
        if concerned { trouble.happen() } else { Ok(()) }
    }
}

/// A single write, so that lines of several threads do not mix.
fn append(mut log: &File, name: &str) -> io::Result<()> {
    log.write_all(format!("{name}\n").as_bytes())
}

impl Trouble {
    fn happen(self) -> io::Result<()> {
        match self {
            Trouble::Kill => {
                let killed = signal_hook::low_level::raise(signal_hook::consts::SIGKILL);
                // Not reached; if it is, the test must notice.
                killed.and(Err(io::Error::other("SIGKILL had no effect")))
            }
            Trouble::Error(errno) => Err(io::Error::from_raw_os_error(errno)),
            Trouble::Stale => Err(io::ErrorKind::StaleNetworkFileHandle.into()),
            Trouble::Delay(delay) => {
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
        let change = |trouble, turn| Ok(DiskTrouble::Change(trouble, target(name, turn, turn)));
        assert_eq!("kill:write run/run.jsonl".parse(), change(Trouble::Kill, 1));
        assert_eq!("full:write run/run.jsonl#12".parse(), change(Trouble::Error(ENOSPC), 12));
        assert_eq!("log:changes".parse(), Ok(DiskTrouble::LogChanges("changes".into())));
        assert!("kill".parse::<DiskTrouble>().is_err());
        assert!("melt:disk".parse::<DiskTrouble>().is_err());
        assert!("kill:write x#y".parse::<DiskTrouble>().is_err());
    }

    #[test]
    fn reads_fail_or_wait_in_a_range_of_turns() {
        let read = |trouble, target| Ok(DiskTrouble::Read(trouble, target));
        let first_two = target("open wavs/a.wav", 1, 2);
        assert_eq!("read-error:open wavs/a.wav#1-2".parse(), read(Trouble::Error(EIO), first_two));
        let all = target("read *", 1, u64::MAX);
        let delay = Trouble::Delay(Duration::from_millis(250));
        assert_eq!("read-delay-250:read *#1-".parse(), read(delay, all));
        let hook = failing(Trouble::Stale, target("open *", 2, 3));
        let failed: Vec<bool> = ["open a", "read a", "open b", "open c", "open d"]
            .map(|name| hook(name).is_err())
            .into();
        assert_eq!(failed, [false, false, true, true, false]);
    }
}
