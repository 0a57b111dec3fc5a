//! Remembers which entries of a file were verified, until the file changes.
//!
//! In: reads of entries. Out: whether the bytes just read can be used. Cached epochs read the same
//! entries again and again: their checksums cost as much time as the copies themselves.
//!
//! A change shows in the stamp of the open file: size, and the times of the last change of contents and
//! attributes. A file that changed in the last [`SETTLED`] is always verified, because the times of two
//! changes within one tick of the system's clock are equal.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::File;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, SystemTime};

/// Longer than any tick of a file system's clock, and than a write that is under way.
const SETTLED: Duration = Duration::from_secs(2);

/// The verified entries of one file.
#[derive(Debug, Default)]
pub(super) struct Verified {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Of the file when the entries were verified.
    stamp: Option<FileStamp>,
    offsets: HashSet<u64>,
}

/// What changes with the bytes of a file, also if another program changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    inode: u64,
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

/// A read that is under way.
pub(super) struct Check<'v> {
    verified: &'v Verified,
    offset: u64,
    /// The stamp before the read; none for an entry that is known.
    before: Option<FileStamp>,
    is_known: bool,
}

impl Verified {
    /// Must be called before the entry is read.
    pub(super) fn before_read(&self, file: &File, offset: u64) -> Check<'_> {
        let is_known = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            known.offsets.contains(&offset)
        };
        let before = if is_known { None } else { FileStamp::of(file) };
        Check { verified: self, offset, before, is_known }
    }
}

impl Check<'_> {
    /// Whether the bytes that were read can be used: they were verified before and the file did not change
    /// since, or `matches` verifies them now.
    pub(super) fn after_read(self, file: &File, matches: impl FnOnce() -> bool) -> bool {
        let after = FileStamp::of(file);
        if self.is_known {
            let known = self.verified.known.read().unwrap_or_else(PoisonError::into_inner);
            if after.is_some() && known.stamp == after && known.offsets.contains(&self.offset) {
                return true;
            }
        }
        if !matches() {
            return false;
        }
        // An entry is remembered only if the file was the same before and after it was read.
        let stamp = after.filter(|after| Some(*after) == self.before && after.is_settled());
        if let Some(stamp) = stamp {
            let mut known = self.verified.known.write().unwrap_or_else(PoisonError::into_inner);
            if known.stamp != Some(stamp) {
                *known = Known { stamp: Some(stamp), offsets: HashSet::new() };
            }
            known.offsets.insert(self.offset);
        } else if self.is_known {
            let mut known = self.verified.known.write().unwrap_or_else(PoisonError::into_inner);
            known.offsets.remove(&self.offset);
        }
        true
    }
}

impl FileStamp {
    pub(super) fn of(file: &File) -> Option<FileStamp> {
        let stat = rustix::fs::fstat(file).ok()?;
        Some(FileStamp {
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as u64),
        })
    }

    /// Neither time is recent, nor in the future.
    pub(super) fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let limit = now.saturating_sub(SETTLED).as_secs() as i64;
        self.modified.0 < limit && self.changed.0 < limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::time::Instant;

    fn read(verified: &Verified, file: &File, checks: &mut u32) {
        let check = verified.before_read(file, 64);
        assert!(check.after_read(file, || {
            *checks += 1;
            true
        }));
    }

    #[test]
    fn a_settled_file_is_verified_once_and_again_after_each_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        std::fs::write(&path, b"entry").unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let (verified, mut checks) = (Verified::default(), 0);
        // A file that was just written is verified at every read.
        read(&verified, &file, &mut checks);
        read(&verified, &file, &mut checks);
        assert_eq!(checks, 2);
        let limit = Instant::now() + Duration::from_secs(30);
        while !FileStamp::of(&file).unwrap().is_settled() {
            assert!(Instant::now() < limit, "the clock stands still");
            std::thread::sleep(Duration::from_millis(50));
        }
        (0..3).for_each(|_| read(&verified, &file, &mut checks));
        assert_eq!(checks, 3, "one check, then none");
        file.write_all_at(b"E", 0).unwrap();
        (0..2).for_each(|_| read(&verified, &file, &mut checks));
        assert_eq!(checks, 5, "the file changed, and has not settled");
    }

    #[test]
    fn bytes_that_do_not_match_are_refused_and_not_remembered() {
        let file = tempfile::tempfile().unwrap();
        let verified = Verified::default();
        for _ in 0..2 {
            assert!(!verified.before_read(&file, 64).after_read(&file, || false));
        }
        assert!(verified.known.read().unwrap().offsets.is_empty());
    }
}
