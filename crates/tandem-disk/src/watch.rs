//! Who hears of a change before it is made. Nobody, in a usual run: that costs one look at a flag.

use crate::Operation;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Told of a change before it is made. It may end the process; an error that it gives is taken for
/// one of the disk's, and the change is not made.
pub type Hook = Arc<dyn Fn(&Operation<'_>) -> io::Result<()> + Send + Sync>;

static WATCHED: AtomicBool = AtomicBool::new(false);
static HOOKS: RwLock<Vec<Entry>> = RwLock::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

struct Entry {
    number: u64,
    root: PathBuf,
    hook: Hook,
}

/// Watches until dropped.
#[derive(Debug)]
#[must_use = "watching ends when this is dropped"]
pub struct Watch {
    number: u64,
}

/// Has `hook` called before every change under `root`, from whichever thread; the empty path stands
/// for all of the disk.
pub fn watch(root: &Path, hook: Hook) -> Watch {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut hooks = HOOKS.write().unwrap_or_else(PoisonError::into_inner);
    hooks.push(Entry { number, root: root.to_path_buf(), hook });
    WATCHED.store(true, Ordering::Release);
    Watch { number }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut hooks = HOOKS.write().unwrap_or_else(PoisonError::into_inner);
        hooks.retain(|entry| entry.number != self.number);
        WATCHED.store(!hooks.is_empty(), Ordering::Release);
    }
}

/// Whether anybody watches.
pub(crate) fn is_watched() -> bool {
    WATCHED.load(Ordering::Acquire)
}

/// Tells those who watch of a change.
pub(crate) fn tell(operation: &Operation<'_>) -> io::Result<()> {
    if !is_watched() {
        return Ok(());
    }
    let hooks: Vec<Hook> = {
        let hooks = HOOKS.read().unwrap_or_else(PoisonError::into_inner);
        let concerned = hooks.iter().filter(|entry| operation.path().starts_with(&entry.root));
        concerned.map(|entry| Arc::clone(&entry.hook)).collect()
    };
    hooks.iter().try_for_each(|hook| hook(operation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn changes_under_the_root_are_told_before_they_are_made_and_may_be_refused() {
        let dir = tempfile::tempdir().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&heard);
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
        let heard = heard.lock().unwrap().clone();
        let names: Vec<&str> =
            heard.iter().map(|(name, _)| name.split_once(' ').unwrap().0).collect();
        assert_eq!(names, ["make", "create", "write"]);
        assert_eq!(heard.iter().map(|(_, there)| *there).collect::<Vec<_>>(), [false, false, true]);
    }
}
