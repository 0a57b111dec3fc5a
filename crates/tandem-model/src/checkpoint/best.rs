//! The mark of the best checkpoint: which one it is, and its score.
//!
//! In: a checkpoint and its score. Out: [`Best`]. The mark is written after the checkpoint and
//! removed before it, so that it never names a checkpoint that does not exist.

use super::error::{CheckpointError, Fault};
use super::store::local::BEST;
use super::store::{CheckpointId, CheckpointStore};
use super::{read, sealed};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The best checkpoint so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    pub path: PathBuf,
    /// Optimizer steps it was trained for.
    pub step: u64,
    /// Lower is better.
    pub score: f64,
}

#[derive(Serialize, Deserialize)]
struct BestMark {
    step: u64,
    // Its name in files that are already written.
    #[serde(rename = "turn")]
    revision: u32,
    score: f64,
}

/// The best checkpoint, or `None` if none is marked.
pub fn best(store: &dyn CheckpointStore) -> Result<Option<(CheckpointId, Best)>, CheckpointError> {
    let mark = match store.open_best().and_then(|file| read::small_file(file, BEST)) {
        Err(Fault::Missing { .. }) => return Ok(None),
        text => text.and_then(|text| sealed::open::<BestMark>(BEST, &text)),
    };
    let BestMark { step, revision, score } = mark.map_err(|fault| {
        CheckpointError::BestUnreadable { path: store.root().join(BEST), fault }
    })?;
    let id = CheckpointId { step, revision };
    Ok(Some((id, Best { path: id.path(store.root()), step, score })))
}

/// Marks a checkpoint as the best one, atomically.
pub fn mark_best(
    store: &dyn CheckpointStore,
    id: CheckpointId,
    score: f64,
) -> Result<(), CheckpointError> {
    if !score.is_finite() {
        return Err(CheckpointError::Score { score });
    }
    let mark = BestMark { step: id.step, revision: id.revision, score };
    let text = sealed::seal(&mark)
        .map_err(|source| CheckpointError::Document { name: "best".into(), source })?;
    store.replace_best(&text)
}
