//! Checkpoints in a directory of the local file system.
//!
//! In: files of checkpoints. Out: one directory per checkpoint, which appears by one rename when
//! all of its files are on disk. A removal starts with a rename too, so that a killed process never
//! leaves half a checkpoint under a valid name. Every change goes through [`tandem_disk`], where
//! tests interrupt it.

use super::{CheckpointDraft, CheckpointId, CheckpointStore, Fill, StoredFile};
use crate::checkpoint::error::{CheckpointError, Fault};
use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use tandem_disk::directory_lock::{self, Attempt, DirectoryLock};
use tandem_disk::replace_file::{self, draft_path, replace_file};

/// The file that names the best checkpoint.
pub const BEST: &str = "best.json";
const ASIDE: &str = "aside-";
/// Bytes collected before a write to the disk.
const BUFFER: usize = 1 << 20;

/// The checkpoints of a run directory.
#[derive(Debug)]
pub struct LocalStore {
    directory: PathBuf,
    /// `None` for reading.
    _lock: Option<DirectoryLock>,
}

impl LocalStore {
    /// For reading, also while another process writes.
    pub fn read_only(directory: &Path) -> LocalStore {
        LocalStore { directory: directory.to_path_buf(), _lock: None }
    }

    /// For writing. Creates the directory if needed, locks it, and removes the drafts that killed
    /// processes left. An error while another process holds the lock.
    pub fn lock(directory: &Path) -> Result<LocalStore, CheckpointError> {
        let failed = |source| CheckpointError::Write { path: directory.to_path_buf(), source };
        tandem_disk::create_dir_all(directory).map_err(failed)?;
        let lock = match DirectoryLock::try_take(directory) {
            Ok(Attempt::Held(lock)) => lock,
            Ok(Attempt::Busy(owner)) => {
                return Err(CheckpointError::Busy { directory: directory.to_path_buf(), owner });
            }
            Err(source) => {
                let path = directory_lock::lock_path(directory);
                return Err(CheckpointError::Write { path, source });
            }
        };
        let store = LocalStore { directory: directory.to_path_buf(), _lock: Some(lock) };
        // The lock proves that no living process is writing them.
        store.remove_drafts()?;
        Ok(store)
    }

    fn remove_drafts(&self) -> Result<(), CheckpointError> {
        for name in self.names()?.iter().filter(|name| is_draft(name)) {
            let path = self.directory.join(name);
            let removed = match fs::symlink_metadata(&path) {
                Ok(entry) if entry.is_dir() => tandem_disk::remove_dir_all(&path),
                _ => tandem_disk::remove_file(&path),
            };
            removed.map_err(|source| CheckpointError::Write { path, source })?;
        }
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>, CheckpointError> {
        let failed = |source| CheckpointError::Read { path: self.directory.clone(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            // A name that is not UTF-8 is none of ours.
            names.extend(entry.map_err(failed)?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn best_path(&self) -> PathBuf {
        self.directory.join(BEST)
    }
}

impl CheckpointStore for LocalStore {
    fn root(&self) -> &Path {
        &self.directory
    }

    fn list(&self) -> Result<Vec<CheckpointId>, CheckpointError> {
        let names = self.names()?;
        let mut ids: Vec<_> = names.iter().filter_map(|name| CheckpointId::parse(name)).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    fn contains(&self, id: CheckpointId) -> bool {
        id.path(&self.directory).exists()
    }

    fn begin(&self, id: CheckpointId) -> Result<Box<dyn CheckpointDraft>, CheckpointError> {
        let target = id.path(&self.directory);
        let directory = draft_path(&target);
        let created = match tandem_disk::create_dir(&directory) {
            // A draft that could not be removed after an earlier failure.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                tandem_disk::remove_dir_all(&directory)
                    .and_then(|()| tandem_disk::create_dir(&directory))
            }
            created => created,
        };
        created.map_err(|source| CheckpointError::Write { path: directory.clone(), source })?;
        Ok(Box::new(LocalDraft { directory, target, committed: false }))
    }

    fn open_file(&self, id: CheckpointId, name: &str) -> Result<StoredFile, Fault> {
        open_file(&id.path(&self.directory), name)
    }

    fn remove(&self, id: CheckpointId) -> Result<(), CheckpointError> {
        let path = id.path(&self.directory);
        let draft = draft_path(&path);
        tandem_disk::rename(&path, &draft)
            .and_then(|()| tandem_disk::remove_dir_all(&draft))
            .map_err(|source| CheckpointError::Write { path, source })
    }

    fn set_aside(&self, id: CheckpointId) -> Result<PathBuf, CheckpointError> {
        let from = id.path(&self.directory);
        let free = |number: u32| {
            let suffix = if number == 1 { String::new() } else { format!(".{number}") };
            let to = self.directory.join(format!("{ASIDE}{}{suffix}", id.name()));
            (!to.exists()).then_some(to)
        };
        let moved = match (1..1000).find_map(free) {
            Some(to) => tandem_disk::rename(&from, &to)
                .and_then(|()| replace_file::sync_directory(&to))
                .map(|()| to),
            None => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
        };
        moved.map_err(|source| CheckpointError::Write { path: from, source })
    }

    fn open_best(&self) -> Result<StoredFile, Fault> {
        open_file(&self.directory, BEST)
    }

    fn replace_best(&self, text: &[u8]) -> Result<(), CheckpointError> {
        let path = self.best_path();
        replace_file(&path, text).map_err(|source| CheckpointError::Write { path, source })
    }

    fn remove_best(&self) -> Result<(), CheckpointError> {
        let path = self.best_path();
        tandem_disk::remove_file(&path)
            .and_then(|()| replace_file::sync_directory(&path))
            .map_err(|source| CheckpointError::Write { path, source })
    }
}

/// A directory next to the final one, renamed on commit.
struct LocalDraft {
    directory: PathBuf,
    target: PathBuf,
    committed: bool,
}

impl CheckpointDraft for LocalDraft {
    fn write_file(&mut self, name: &str, fill: Fill<'_>) -> Result<(), CheckpointError> {
        let path = self.directory.join(name);
        let written = tandem_disk::File::create_new(&path).and_then(|file| {
            let mut out = BufWriter::with_capacity(BUFFER, file);
            fill(&mut out)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
        });
        written.map_err(|source| CheckpointError::Write { path, source })
    }

    fn commit(mut self: Box<Self>) -> Result<(), CheckpointError> {
        let failed = |path: &Path, source| CheckpointError::Write { path: path.into(), source };
        tandem_disk::sync_directory(&self.directory)
            .map_err(|source| failed(&self.directory, source))?;
        tandem_disk::rename(&self.directory, &self.target)
            .map_err(|source| failed(&self.target, source))?;
        self.committed = true;
        // It is listed from here on; the sync makes its name survive a power loss.
        replace_file::sync_directory(&self.target).map_err(|source| failed(&self.target, source))
    }
}

impl Drop for LocalDraft {
    fn drop(&mut self) {
        if !self.committed {
            // Its disk space may be needed now. What cannot be removed here is removed when the
            // run is opened again.
            let _ = tandem_disk::remove_dir_all(&self.directory);
        }
    }
}

/// Opens a regular file of a checkpoint's directory. A named pipe would block the reader for ever.
pub fn open_file(directory: &Path, name: &str) -> Result<StoredFile, Fault> {
    let path = directory.join(name);
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => Fault::Missing { file: name.into() },
        _ => Fault::Unreadable { file: name.into(), source },
    };
    if !fs::metadata(&path).map_err(unreadable)?.is_file() {
        return Err(Fault::Invalid { file: name.into(), why: "it is not a file".into() });
    }
    let file = fs::File::open(&path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    Ok(StoredFile { reader: Box::new(file), bytes })
}

/// `.step-00001200.draft-812` or `.best.json.draft-812-6f2a90c1b3d4e587`. Other files are not ours to remove.
fn is_draft(name: &str) -> bool {
    let parts = name.strip_prefix('.').and_then(|name| name.split_once(".draft-"));
    parts.is_some_and(|(of, process)| {
        (of == BEST || CheckpointId::parse(of).is_some())
            && process.starts_with(|sign: char| sign.is_ascii_digit())
            && process.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    })
}
