//! Whether what this process prints reaches a terminal.
//!
//! In: a stream. Out: yes or no. Open MPI gives its ranks a terminal of its own and passes on what they print, also where
//! `mpirun` itself prints to a file. So for a rank the stream of its launcher decides: that of the first process above
//! it which prints to another place. A launcher that cannot be asked has no terminal: on another machine, or without
//! `/proc`.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use tandem_cluster::Launch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout = 1,
    Stderr = 2,
}

pub fn reaches_terminal(stream: Stream) -> bool {
    let is_terminal = match stream {
        Stream::Stdout => io::stdout().is_terminal(),
        Stream::Stderr => io::stderr().is_terminal(),
    };
    let launched = || Launch::of_this_process().is_some();
    let launcher = || launcher_has_terminal(Path::new("/proc"), std::process::id(), stream);
    is_terminal && (!launched() || launcher().unwrap_or(false))
}

/// Processes between a rank and its launcher, at most: shells, `numactl`, `time`.
const BETWEEN: usize = 16;

/// None where the processes cannot be seen.
fn launcher_has_terminal(proc: &Path, rank: u32, stream: Stream) -> Option<bool> {
    let prints_to = |process: u32| -> Option<PathBuf> {
        proc.join(format!("{process}/fd/{}", stream as u32)).read_link().ok()
    };
    let own = prints_to(rank)?;
    let mut process = rank;
    for _ in 0..BETWEEN {
        process = parent(proc, process)?;
        let place = prints_to(process)?;
        if place != own {
            let names = ["/dev/pts/", "/dev/tty", "/dev/console"];
            return Some(names.iter().any(|name| place.to_string_lossy().starts_with(name)));
        }
    }
    None
}

/// The fourth field of `stat`, after a name in parentheses that may have spaces.
fn parent(proc: &Path, process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(proc.join(format!("{process}/stat"))).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Each process is the child of the next one, and prints to this place.
    #[track_caller]
    fn check(places: &[&str], expected: Option<bool>) {
        let proc = tempfile::tempdir().unwrap();
        for (process, place) in (10..).zip(places) {
            let directory = proc.path().join(process.to_string());
            std::fs::create_dir_all(directory.join("fd")).unwrap();
            symlink(place, directory.join("fd/1")).unwrap();
            let stat = format!("{process} (a (b) c) S {} 1 1", process + 1);
            std::fs::write(directory.join("stat"), stat).unwrap();
        }
        assert_eq!(launcher_has_terminal(proc.path(), 10, Stream::Stdout), expected, "{places:?}");
    }

    #[test]
    fn the_launcher_decides_and_not_the_terminal_that_it_made() {
        check(&["/dev/pts/7", "/home/a/out.txt", "/dev/pts/0"], Some(false));
        check(&["/dev/pts/7", "pipe:[123]", "/dev/pts/0"], Some(false));
        check(&["/dev/pts/7", "/dev/pts/0", "/dev/pts/0"], Some(true));
        check(&["/dev/pts/7", "/dev/tty1"], Some(true));
    }

    #[test]
    fn processes_between_rank_and_launcher_are_passed_over() {
        check(&["/dev/pts/7", "/dev/pts/7", "/dev/pts/7", "/home/a/out.txt"], Some(false));
        check(&["/dev/pts/7", "/dev/pts/7", "/dev/pts/0"], Some(true));
    }

    #[test]
    fn a_launcher_that_cannot_be_seen_is_unknown() {
        check(&["/dev/pts/7"], None);
        check(&["/dev/pts/7"; 30], None);
        check(&[], None);
    }
}
