//! Which checkpoints stay when a new one was written.
//!
//! In: the checkpoint just written, how many to keep, the pinned steps. Out: [`Tidied`], what was
//! removed, set aside, or could not be. Never removes the newest, a pinned one, or the best one.

use super::best::best;
use super::error::CheckpointError;
use super::store::{CheckpointId, CheckpointStore};
use super::{Keep, Tidied};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Removes older checkpoints than the `keep` newest, and sets aside those that claim to be newer
/// than the one just written. The pinned steps and the best one stay.
pub fn tidy(
    store: &dyn CheckpointStore,
    newest: CheckpointId,
    keep: Keep,
    pinned: &BTreeSet<u64>,
) -> Tidied {
    let mut tidied = Tidied::default();
    let (ids, best) = match (store.list(), best(store)) {
        (Ok(ids), Ok(best)) => (ids, best.map(|(id, _)| id)),
        // Nothing is removed while it is unknown which one is the best.
        (ids, best) => {
            tidied.failed.extend(ids.err().into_iter().chain(best.err()));
            return tidied;
        }
    };
    let mut kept = 0;
    let mut previous_step = None;
    for id in ids.into_iter().rev() {
        let is_best = best == Some(id);
        // Newest first: a pin protects the last revision of a step.
        let last_revision = previous_step.replace(id.step) != Some(id.step);
        let is_pinned = last_revision && pinned.contains(&id.step);
        if id > newest {
            if !is_pinned {
                let moved = set_aside(store, id, is_best);
                tidied.record(moved, |tidied| &mut tidied.set_aside);
            }
        } else if last_revision && kept < keep.last.max(1) {
            kept += 1;
        } else if !is_best && !is_pinned {
            let removed = store.remove(id).map(|()| id.path(store.root()));
            tidied.record(removed, |tidied| &mut tidied.removed);
        }
    }
    tidied
}

/// The mark of the best one is removed first, so that it never names a checkpoint that is not there.
fn set_aside(
    store: &dyn CheckpointStore,
    id: CheckpointId,
    is_best: bool,
) -> Result<PathBuf, CheckpointError> {
    if is_best {
        store.remove_best()?;
    }
    store.set_aside(id)
}

impl Tidied {
    fn record(
        &mut self,
        done: Result<PathBuf, CheckpointError>,
        list: impl Fn(&mut Tidied) -> &mut Vec<PathBuf>,
    ) {
        match done {
            Ok(path) => list(self).push(path),
            Err(error) => self.failed.push(error),
        }
    }
}
