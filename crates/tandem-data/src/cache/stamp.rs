//! Recognises an unchanged file by its size, time and inode.
//!
//! In: a path. Out: its [`Stamp`]. Reads no file contents.

use crate::DataError;
use bytemuck::{Pod, Zeroable};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use tandem_disk::read::look_up;
use tandem_disk::{AccessKind, retry};

/// Size, time and inode of a file. Equal stamps mean that the file is unchanged. A different stamp
/// means only that its bytes must be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct Stamp {
    pub size: u64,
    /// Time of the last change of content, in nanoseconds since 1970.
    pub modified: i64,
    /// Changes if another file is moved to the same path.
    pub inode: u64,
}

impl Stamp {
    /// The stamp of a file that does not exist.
    pub const MISSING: Stamp = Stamp { size: 0, modified: 0, inode: 0 };

    /// The stamp of a file; [`Stamp::MISSING`] if it does not exist.
    pub fn of(path: &Path) -> Result<Stamp, DataError> {
        Stamp::at(CWD, path)
    }

    /// The stamp of a file below an open directory. The shorter path lookup matters for a million
    /// files.
    pub fn at(directory: impl AsFd, path: &Path) -> Result<Stamp, DataError> {
        Stamp::named(directory, path, path)
    }

    /// The stamp of `name` in an open directory; `path` is its path for hooks and errors.
    fn named(directory: impl AsFd, name: &Path, path: &Path) -> Result<Stamp, DataError> {
        let stat = retry(|| {
            look_up(AccessKind::Stat, path, || {
                Ok(rustix::fs::statat(&directory, name, AtFlags::empty())?)
            })
        });
        match stat {
            Ok(stat) => Ok(Stamp {
                size: stat.st_size as u64,
                modified: stat.st_mtime.saturating_mul(1_000_000_000) + stat.st_mtime_nsec as i64,
                inode: stat.st_ino,
            }),
            Err(error) if is_missing(&error) => Ok(Stamp::MISSING),
            Err(source) => Err(DataError::Read { path: path.to_path_buf(), source }),
        }
    }
}

/// Stamps of files in few folders below a directory. The last folder stays open: a million path lookups
/// are then shorter by one name each.
pub(super) struct FolderStamps<'d> {
    root: &'d File,
    folder: String,
    open: Option<OwnedFd>,
}

impl<'d> FolderStamps<'d> {
    pub(super) fn new(root: &'d File) -> Self {
        Self { root, folder: String::new(), open: None }
    }

    /// The stamp of a file below the directory; [`Stamp::MISSING`] if it does not exist.
    pub(super) fn of(&mut self, path: &str) -> Result<Stamp, DataError> {
        let whole = Path::new(path);
        let Some((folder, name)) = path.rsplit_once('/') else {
            return Stamp::at(self.root, whole);
        };
        if self.open.is_none() || self.folder != folder {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.open = rustix::fs::openat(self.root, folder, flags, Mode::empty()).ok();
            folder.clone_into(&mut self.folder);
        }
        match &self.open {
            Some(open) => Stamp::named(open, Path::new(name), whole),
            // The whole path has the reason.
            None => Stamp::at(self.root, whole),
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tandem_units::Hint;

    #[test]
    fn a_stat_that_fails_is_tried_again_and_then_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clip.wav");
        std::fs::write(&path, b"one").unwrap();
        let stamp = Stamp::of(&path).unwrap();
        for (failures, recovers) in [(2, true), (4, false)] {
            let tries = AtomicU32::new(0);
            let hook = move |_: &tandem_disk::Access<'_>| match tries
                .fetch_add(1, Ordering::Relaxed)
                < failures
            {
                true => Err(rustix::io::Errno::STALE.into()),
                false => Ok(()),
            };
            let _watch = tandem_disk::watch_reads(dir.path(), Arc::new(hook));
            match Stamp::of(&path) {
                Ok(found) => assert!(recovers && found == stamp),
                Err(error) => assert!(!recovers && error.hint().is_some(), "{error}"),
            }
        }
    }

    #[test]
    fn stamps_in_open_folders_are_those_of_the_paths() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["wavs", "wavs/more", "other"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("wavs", dir.path().join("linked")).unwrap();
        let root = File::open(dir.path()).unwrap();
        let mut stamps = FolderStamps::new(&root);
        let names = ["a.wav", "wavs/b.wav", "wavs/more/c.wav", "other/b.wav", "linked/d.wav"];
        for name in names {
            assert_eq!(stamps.of(name).unwrap(), Stamp::MISSING, "{name}");
            std::fs::write(dir.path().join(name), name).unwrap();
            assert_eq!(stamps.of(name).unwrap(), Stamp::of(&dir.path().join(name)).unwrap());
            assert_ne!(stamps.of(name).unwrap(), Stamp::MISSING, "{name}");
        }
        assert_eq!(stamps.of("none/b.wav").unwrap(), Stamp::MISSING);
        assert_eq!(stamps.of("a.wav/b.wav").unwrap(), Stamp::MISSING);
    }

    #[test]
    fn a_rewritten_file_gets_another_stamp_and_a_missing_one_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clip.wav");
        assert_eq!(Stamp::of(&path).unwrap(), Stamp::MISSING);
        std::fs::write(&path, b"one").unwrap();
        let first = Stamp::of(&path).unwrap();
        assert_eq!(Stamp::of(&path).unwrap(), first);
        std::fs::write(&path, b"other").unwrap();
        assert_ne!(Stamp::of(&path).unwrap(), first);
    }
}
