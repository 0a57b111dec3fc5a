//! A disk that fails where a test wants it to: the hidden flag `--disk-trouble`.
//!
//! In: `log:FILE`, `kill:CHANGE`, `full:CHANGE` or `broken:CHANGE`. Out: every change of the disk
//! listed in a file by name; or the process gone before a change of that name, or the change refused
//! with "no space left on device" or "input/output error". `CHANGE#3` is the third change of that name.
//! Without the flag nobody watches.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tandem_disk::Watch;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What is to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskTrouble {
    /// Nothing; every change is listed.
    Log(PathBuf),
    /// Something, before one change.
    At {
        /// What.
        trouble: Trouble,
        /// The change's name.
        name: String,
        /// Which of that name, from 1.
        turn: u64,
    },
}

/// What happens before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The process is gone.
    Kill,
    /// The disk has no room.
    Full,
    /// The disk does not work.
    Broken,
}

impl FromStr for DiskTrouble {
    type Err = String;

    fn from_str(text: &str) -> Result<DiskTrouble, String> {
        let (what, rest) = text.split_once(':').ok_or("WHAT:CHANGE")?;
        let trouble = match what {
            "log" => return Ok(DiskTrouble::Log(rest.into())),
            "kill" => Trouble::Kill,
            "full" => Trouble::Full,
            "broken" => Trouble::Broken,
            _ => return Err("WHAT is log, kill, full or broken".into()),
        };
        let (name, turn) = match rest.rsplit_once('#') {
            Some((name, turn)) => (name, turn.parse().map_err(|_| "CHANGE#NUMBER")?),
            None => (rest, 1),
        };
        Ok(DiskTrouble::At { trouble, name: name.into(), turn })
    }
}

impl DiskTrouble {
    /// Has it happen, until what is returned is dropped.
    pub fn begin(self) -> io::Result<Watch> {
        match self {
            DiskTrouble::Log(path) => {
                let log = OpenOptions::new().create(true).append(true).open(path)?;
                Ok(everywhere(move |name| list(&log, name)))
            }
            DiskTrouble::At { trouble, name: wanted, turn } => {
                let seen = AtomicU64::new(0);
                Ok(everywhere(move |name| {
                    let now = name == wanted && seen.fetch_add(1, Ordering::Relaxed) + 1 == turn;
                    if now { trouble.happen() } else { Ok(()) }
                }))
            }
        }
    }
}

fn everywhere(told: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Watch {
    tandem_disk::watch(Path::new(""), Arc::new(move |change| told(&change.name())))
}

/// One write, so that lines of several threads do not mix.
fn list(mut log: &File, name: &str) -> io::Result<()> {
    log.write_all(format!("{name}\n").as_bytes())
}

impl Trouble {
    fn happen(self) -> io::Result<()> {
        match self {
            Trouble::Kill => {
                let killed = signal_hook::low_level::raise(signal_hook::consts::SIGKILL);
                // Not reached, or the test must notice.
                killed.and(Err(io::Error::other("SIGKILL did not come")))
            }
            Trouble::Full => Err(io::Error::from_raw_os_error(ENOSPC)),
            Trouble::Broken => Err(io::Error::from_raw_os_error(EIO)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_named_with_its_turn() {
        let name = "write run/run.jsonl".to_string();
        let at = |trouble, turn| Ok(DiskTrouble::At { trouble, name: name.clone(), turn });
        assert_eq!("kill:write run/run.jsonl".parse(), at(Trouble::Kill, 1));
        assert_eq!("full:write run/run.jsonl#12".parse(), at(Trouble::Full, 12));
        assert_eq!("log:changes".parse(), Ok(DiskTrouble::Log("changes".into())));
        assert!("kill".parse::<DiskTrouble>().is_err());
        assert!("melt:disk".parse::<DiskTrouble>().is_err());
    }
}
