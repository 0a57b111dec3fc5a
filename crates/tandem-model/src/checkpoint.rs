//! Checkpoints: a voice and its training state on disk, complete or not at all.
//!
//! In: [`Contents`], named tensors and documents in host memory. Out: one directory per checkpoint,
//! and the same [`Contents`] back, bit for bit, after every checksum was verified. A kill at any
//! moment leaves the last complete checkpoint; a damaged one is skipped and reported. Knows no
//! device and starts no thread. What the tensors mean is up to `tandem-train`.
//!
//! ```text
//! RUN/
//!   lock                     locked by the one process that writes here, and names it
//!   best.json                the best checkpoint so far, and its score
//!   step-00001200/           appears by one rename, when all of its files are on disk
//!     manifest.json          version, step; size and checksum of every other file
//!     weights.safetensors    one file per tensor set
//!     state.json             one file per document
//!   .step-00001300.draft-77  being written, or left by a killed process
//!   aside-step-00001400      newer than the checkpoint that the run was resumed from
//! ```
//!
//! The trainer owns a [`Checkpoints`]. Commands that only read use [`load`], [`load_newest`],
//! [`load_best`] and [`find`], also while a run is writing. Where the files are stored is decided in
//! `store.rs`.

mod contents; // 1. what a checkpoint contains
mod sealed; // 2. small JSON files with their own checksum
mod manifest; // 3. the list of a checkpoint's files
mod tensor_file; // 4. tensors as a file, and back
mod store; // 5. where files are stored: the trait, the local directory
mod write; // 6. contents to a store
mod read; // 7. a store to contents, each file verified
mod best; // 8. the mark of the best checkpoint
mod retention; // 9. which checkpoints are removed
mod fault; // what can be wrong with its files
mod error; // what can fail, with a hint
#[cfg(test)]
mod tests;

pub use best::Best;
pub use contents::{Contents, HostTensor, TensorSet, Values};
pub use error::{Broken, CheckpointError, Fault};
pub use manifest::FILE_NAME as MANIFEST;
pub use read::{Loaded, Parts, find, find_usable, load, load_best, load_newest};

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use store::local::LocalStore;
use store::{CheckpointId, CheckpointStore};
use tandem_units::Bytes;

/// Which checkpoints stay, besides the best one and the pinned ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// How many of the newest; the one just written stays even with 0.
    pub last: usize,
}

/// What a new checkpoint is, besides the newest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    Last,
    Best {
        /// Lower is better. The caller compares scores.
        score: f64,
    },
}

/// Whether [`Checkpoints::mark_best`] marked a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a best score whose checkpoint was removed must not be reported as saved"]
pub enum Marked {
    /// `best.json` names the checkpoint now.
    Yes,
    /// There is no checkpoint of this step any more; the mark is unchanged.
    Gone,
}

/// The checkpoints of one run, for the one process that writes them.
#[derive(Debug)]
pub struct Checkpoints {
    store: Box<dyn CheckpointStore>,
    keep: Keep,
    pinned: BTreeSet<u64>,
    /// Which rows the scores of marks are measured on.
    rows: Option<String>,
    /// Raised with every write to a file.
    progress: Arc<AtomicU64>,
}

/// A checkpoint that was written durably.
#[derive(Debug)]
pub struct Saved {
    pub path: PathBuf,
    /// Size of all files together.
    pub bytes: Bytes,
    pub took: Duration,
    /// What happened to other checkpoints.
    pub tidied: Tidied,
}

/// What happened to other checkpoints when one was written. Nothing here endangers the new one.
#[derive(Debug, Default)]
pub struct Tidied {
    /// Removed by retention.
    pub removed: Vec<PathBuf>,
    /// New paths of checkpoints that claimed to be newer than the one just written: damaged ones
    /// that were skipped, or steps after an earlier checkpoint that was resumed. Renamed, so that
    /// none of them is loaded as the newest.
    pub set_aside: Vec<PathBuf>,
    /// What could not be removed or renamed.
    pub failed: Vec<CheckpointError>,
}

impl Checkpoints {
    /// Opens a directory for writing, and creates it if needed. An error while another process
    /// writes there. Removes the drafts of killed processes.
    pub fn open(directory: &Path, keep: Keep) -> Result<Checkpoints, CheckpointError> {
        Ok(Checkpoints::in_store(Box::new(LocalStore::lock(directory)?), keep))
    }

    fn in_store(store: Box<dyn CheckpointStore>, keep: Keep) -> Checkpoints {
        let (pinned, progress) = (BTreeSet::new(), Arc::default());
        Checkpoints { store, keep, pinned, rows: None, progress }
    }

    pub fn directory(&self) -> &Path {
        self.store.root()
    }

    /// A counter that every write to a file raises: others see whether a long save makes progress.
    pub fn progress(&self) -> Arc<AtomicU64> {
        self.progress.clone()
    }

    /// The paths of all checkpoints, oldest first, usable or damaged.
    pub fn list(&self) -> Result<Vec<PathBuf>, CheckpointError> {
        let ids = self.store.list()?;
        Ok(ids.into_iter().map(|id| id.path(self.store.root())).collect())
    }

    /// Writes a checkpoint. After an error the older ones are unchanged, and no draft is left.
    pub fn save(&mut self, contents: &Contents, mark: Mark) -> Result<Saved, CheckpointError> {
        let started = Instant::now();
        let store = &*self.store;
        let revision = newest_of_step(store, contents.step)?.map_or(1, |id| id.revision + 1);
        let id = CheckpointId { step: contents.step, revision };
        let bytes = write::write(store, id, contents, &self.progress)?;
        // The mark comes before the removal of the former best one.
        if let Mark::Best { score } = mark {
            best::mark_best(store, id, score, self.rows.clone())?;
        }
        let tidied = retention::tidy(store, id, self.keep, &self.pinned);
        Ok(Saved { path: id.path(store.root()), bytes, took: started.elapsed(), tidied })
    }

    /// Protects the newest checkpoint of this step from retention, for as long as a caller may
    /// still mark it with [`Checkpoints::mark_best`]. Pins end with the process.
    pub fn pin(&mut self, step: u64) {
        self.pinned.insert(step);
    }

    /// Ends the protection. The next save removes the checkpoint, if it is neither among the newest
    /// nor the best.
    pub fn unpin(&mut self, step: u64) {
        self.pinned.remove(&step);
    }

    /// Marks a checkpoint that was saved earlier as the best one.
    pub fn mark_best(&mut self, step: u64, score: f64) -> Result<Marked, CheckpointError> {
        let Some(id) = newest_of_step(&*self.store, step)? else {
            return Ok(Marked::Gone);
        };
        best::mark_best(&*self.store, id, score, self.rows.clone())?;
        Ok(Marked::Yes)
    }

    /// From now on, scores are measured on these rows. A mark stores that: scores of other rows cannot be compared.
    pub fn set_rows(&mut self, rows: &str) {
        self.rows = Some(rows.to_string());
    }

    /// The steps that were validated after the best one and were not better: stored with the mark, so that a resumed
    /// run counts the same validations.
    pub fn set_worse(&mut self, steps: BTreeSet<u64>) -> Result<(), CheckpointError> {
        best::set_worse(&*self.store, steps)
    }

    /// The best checkpoint so far, or `None` if none is marked.
    pub fn best(&self) -> Result<Option<Best>, CheckpointError> {
        Ok(best::best(&*self.store)?.map(|(_, best)| best))
    }

    /// The newest usable checkpoint with all of its parts, and the newer ones that are damaged.
    /// `None` if there is no checkpoint. An error if there are checkpoints and none is usable: to
    /// start over must be the user's decision.
    pub fn load_newest(&self) -> Result<Option<Loaded>, CheckpointError> {
        read::newest(&*self.store, Parts::All)
    }
}

fn newest_of_step(
    store: &dyn CheckpointStore,
    step: u64,
) -> Result<Option<CheckpointId>, CheckpointError> {
    Ok(store.list()?.into_iter().rfind(|id| id.step == step))
}
