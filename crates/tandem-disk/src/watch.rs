//! Hooks that see disk operations before they happen.
//!
//! In: a hook and the directory it watches. Out: the hook's answer, where an error takes the place
//! of the operation. Without a hook an operation costs one relaxed atomic load.
//! Next: [`crate::File`] calls the hooks of writes, [`crate::read`] those of reads.

use crate::Operation;
use crate::read::Access;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Called before a change. It may end the process. If it returns an error, the caller of the
/// operation gets that error and the change does not happen.
pub type Hook = Arc<dyn Fn(&Operation<'_>) -> io::Result<()> + Send + Sync>;

/// Called before a read. It may sleep; an error that it returns replaces the read.
pub type ReadHook = Arc<dyn Fn(&Access<'_>) -> io::Result<()> + Send + Sync>;

static CHANGES: Hooks<Hook> = Hooks::new();
static READS: Hooks<ReadHook> = Hooks::new();
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A registered hook. Dropping it removes the hook.
#[derive(Debug)]
#[must_use = "the hook is removed when this is dropped"]
pub struct Watch {
    number: u64,
}

/// Calls `hook` before every change under `root`, on the thread that makes the change. The empty
/// path means the whole disk.
pub fn watch(root: &Path, hook: Hook) -> Watch {
    CHANGES.add(root, hook)
}

/// Calls `hook` before every read under `root` that goes through [`crate::read`]. The empty path
/// means the whole disk.
pub fn watch_reads(root: &Path, hook: ReadHook) -> Watch {
    READS.add(root, hook)
}

impl Drop for Watch {
    fn drop(&mut self) {
        CHANGES.remove(self.number);
        READS.remove(self.number);
    }
}

pub(crate) fn changes_are_watched() -> bool {
    CHANGES.any()
}

pub(crate) fn before_change(operation: &Operation<'_>) -> io::Result<()> {
    if !CHANGES.any() {
        return Ok(());
    }
    CHANGES.under(operation.path()).iter().try_for_each(|hook| hook(operation))
}

pub(crate) fn before_read(access: &Access<'_>) -> io::Result<()> {
    if !READS.any() {
        return Ok(());
    }
    READS.under(access.path).iter().try_for_each(|hook| hook(access))
}

struct Hooks<H> {
    any: AtomicBool,
    entries: RwLock<Vec<WatchEntry<H>>>,
}

struct WatchEntry<H> {
    number: u64,
    root: PathBuf,
    hook: H,
}

impl<H: Clone> Hooks<H> {
    const fn new() -> Self {
        Self { any: AtomicBool::new(false), entries: RwLock::new(Vec::new()) }
    }

    // Relaxed is enough: the lock orders access to the entries, and a thread that must be watched
    // is started, or handed its work, after the hook was added.
    fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    fn add(&self, root: &Path, hook: H) -> Watch {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.push(WatchEntry { number, root: root.to_path_buf(), hook });
        self.any.store(true, Ordering::Relaxed);
        Watch { number }
    }

    fn remove(&self, number: u64) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.number != number);
        self.any.store(!entries.is_empty(), Ordering::Relaxed);
    }

    /// Copies of the hooks that watch `path`: a hook may run long and must not hold the lock.
    fn under(&self, path: &Path) -> Vec<H> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let watching = entries.iter().filter(|entry| path.starts_with(&entry.root));
        watching.map(|entry| entry.hook.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_hook_sees_changes_under_its_root_before_they_happen_and_may_refuse_them() {
        let dir = tempfile::tempdir().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&seen);
        let watched = dir.path().join("watched");
        let watch = watch(
            &watched,
            Arc::new(move |operation| {
                list.lock().unwrap().push((operation.name(), operation.path().exists()));
                match operation {
                    Operation::Write { .. } => Err(io::ErrorKind::StorageFull.into()),
                    _ => Ok(()),
                }
            }),
        );
        crate::create_dir_all(&watched).unwrap();
        let refused = crate::write(&watched.join("a"), b"text").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        crate::write(&dir.path().join("elsewhere"), b"text").unwrap();
        drop(watch);
        crate::write(&watched.join("b"), b"text").unwrap();
        let seen = seen.lock().unwrap().clone();
        let names: Vec<&str> =
            seen.iter().map(|(name, _)| name.split_once(' ').unwrap().0).collect();
        assert_eq!(names, ["make", "create", "write"]);
        assert_eq!(
            seen.iter().map(|(_, exists)| *exists).collect::<Vec<_>>(),
            [false, false, true]
        );
    }
}
