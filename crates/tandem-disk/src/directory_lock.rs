//! One writer per directory: the process that builds a cache, or that trains in a run directory.
//!
//! In: a directory. Out: the lock, or a description of the process that holds it. The system's file
//! lock ends with its process, however that ends. The text in the file is only for people who wait.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The lock on one directory, until dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
    path: PathBuf,
}

/// The result of [`DirectoryLock::try_take`].
#[derive(Debug)]
pub enum Attempt {
    Held(DirectoryLock),
    /// Another process holds it; described like `process 812, for 14 s`.
    Busy(String),
}

impl DirectoryLock {
    /// Takes the lock if it is free. A caller that wants to wait calls again: a wait inside the
    /// system call could not be cancelled.
    pub fn try_take(directory: &Path) -> io::Result<Attempt> {
        let path = lock_path(directory);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Ok(()) => {
                // The note is for people. If it cannot be written (a full disk), the first write that
                // matters reports the error.
                let _ = file.set_len(0);
                let _ = writeln!(file, "{} {}", std::process::id(), now());
                Ok(Attempt::Held(DirectoryLock { file, path }))
            }
            Err(TryLockError::WouldBlock) => Ok(Attempt::Busy(owner(&mut file))),
            Err(TryLockError::Error(source)) => Err(source),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The file that is locked for a directory.
pub fn lock_path(directory: &Path) -> PathBuf {
    directory.join("lock")
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing the file would be enough; the explicit unlock makes the order clear.
        let _ = self.file.unlock();
    }
}

fn owner(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(100).read_to_string(&mut text).map(|_| ()));
    let mut words = text.split_whitespace();
    match (read, words.next(), words.next().and_then(|since| since.parse::<u64>().ok())) {
        (Ok(()), Some(process), Some(since)) => {
            format!("process {process}, for {} s", now().saturating_sub(since))
        }
        _ => "another process".into(),
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_writer_learns_who_the_first_is_and_gets_the_lock_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let Attempt::Held(first) = DirectoryLock::try_take(dir.path()).unwrap() else {
            panic!("no other process holds it")
        };
        match DirectoryLock::try_take(dir.path()).unwrap() {
            Attempt::Busy(who) => {
                assert!(who.contains(&std::process::id().to_string()), "{who}");
            }
            Attempt::Held(_) => panic!("two writers at once"),
        }
        drop(first);
        assert!(matches!(DirectoryLock::try_take(dir.path()).unwrap(), Attempt::Held(_)));
    }
}
