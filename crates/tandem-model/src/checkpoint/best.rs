//! The mark of the best checkpoint: which one it is, its score, and what was validated after it.
//!
//! In: a checkpoint and its score. Out: [`Best`]. The mark is written after the checkpoint and
//! removed before it, so that it never names a checkpoint that does not exist. It is all that a resumed
//! run knows about earlier validations.

use super::error::{CheckpointError, Fault};
use super::store::local::BEST;
use super::store::{CheckpointId, CheckpointStore};
use super::{read, sealed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The best checkpoint so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Best {
    pub path: PathBuf,
    /// Optimizer steps it was trained for.
    pub step: u64,
    /// Lower is better.
    pub score: f64,
    /// Steps that were validated after it and were not better.
    pub worse: BTreeSet<u64>,
    /// Which rows it was validated on; none in files of earlier versions.
    pub rows: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct BestMark {
    step: u64,
    // Its name in files that are already written.
    #[serde(rename = "turn")]
    revision: u32,
    score: f64,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    worse: BTreeSet<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows: Option<String>,
}

/// The best checkpoint, or `None` if none is marked.
pub fn best(store: &dyn CheckpointStore) -> Result<Option<(CheckpointId, Best)>, CheckpointError> {
    let mark = match store.open_best().and_then(|file| read::small_file(file, BEST)) {
        Err(Fault::Missing { .. }) => return Ok(None),
        text => text.and_then(|text| sealed::open::<BestMark>(BEST, &text)),
    };
    let BestMark { step, revision, score, worse, rows } = mark.map_err(|fault| {
        CheckpointError::BestUnreadable { path: store.root().join(BEST), fault }
    })?;
    let id = CheckpointId { step, revision };
    Ok(Some((id, Best { path: id.path(store.root()), step, score, worse, rows })))
}

/// Marks a checkpoint as the best one, atomically. Nothing was validated after it yet.
pub fn mark_best(
    store: &dyn CheckpointStore,
    id: CheckpointId,
    score: f64,
    rows: Option<String>,
) -> Result<(), CheckpointError> {
    if !score.is_finite() {
        return Err(CheckpointError::Score { score });
    }
    let CheckpointId { step, revision } = id;
    replace(store, &BestMark { step, revision, score, worse: BTreeSet::new(), rows })
}

/// Replaces the steps that were validated after the best one and were not better. Without a mark nothing is stored.
pub fn set_worse(store: &dyn CheckpointStore, worse: BTreeSet<u64>) -> Result<(), CheckpointError> {
    let Some((CheckpointId { step, revision }, best)) = best(store)? else { return Ok(()) };
    let Best { score, rows, .. } = best;
    replace(store, &BestMark { step, revision, score, worse, rows })
}

fn replace(store: &dyn CheckpointStore, mark: &BestMark) -> Result<(), CheckpointError> {
    let text = sealed::seal(mark)
        .map_err(|source| CheckpointError::Document { name: "best".into(), source })?;
    store.replace_best(&text)
}
