//! A voice and its training on disk, whole or not at all.
//!
//! In: [`Contents`], named tensors and documents in host memory. Out: one directory per checkpoint,
//! and the same [`Contents`] back, to the last bit, after every checksum fitted. A kill at any moment
//! leaves the last good checkpoint; a broken one is passed over, and that is said. Knows no device,
//! starts no thread. What the tensors mean is the trainer's business.
//!
//! ```text
//! RUN/
//!   lock                     held by the one run that writes here; says which
//!   best.json                which checkpoint is the best so far, and its score
//!   step-00001200/           appears by one rename, when all of it is on the disk
//!     manifest.json          version, step; size and checksum of every other file
//!     weights.safetensors    one file per set of tensors
//!     state.json             one file per document
//!   .step-00001300.draft-77  being written, or left over from a killed run
//!   aside-step-00001400      claimed to be newer than what the run went on from
//! ```
//!
//! The trainer holds a [`Checkpoints`]; commands that only read use [`load`], [`load_newest`],
//! [`load_best`] and [`find`], also while a run is writing.

mod contents; // 1. what a checkpoint holds
mod sealed; // 2. small JSON files with their own checksum
mod manifest; // 3. the list of a checkpoint's files
mod tensor_file; // 4. tensors as a file, and back
mod draft; // 5. a checkpoint being written
mod read; // 6. a checkpoint being read, file by file, each checked
mod directory; // 7. the checkpoints of a run: names, best, retention
mod fault; // what can be wrong with its files
mod error; // what can go wrong, with the way out
#[cfg(test)]
mod tests;

pub use contents::{Contents, HostTensor, TensorSet, Values};
pub use directory::Best;
pub use error::{Broken, CheckpointError, Fault};
pub use read::{Loaded, Parts, find, load, load_best, load_newest};

use draft::Draft;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tandem_disk::directory_lock::{self, Attempt, DirectoryLock};
use tandem_units::Bytes;

/// Which checkpoints stay. The best one always does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// So many of the newest; the one just written stays even with 0.
    pub last: usize,
}

/// What a checkpoint is, besides the newest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// Nothing more.
    Last,
    /// The best so far.
    Best {
        /// How good; lower is better. Comparing is the caller's business.
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
    directory: PathBuf,
    keep: Keep,
    pinned: BTreeSet<u64>,
    _lock: DirectoryLock,
}

/// A checkpoint that is on the disk.
#[derive(Debug)]
pub struct Saved {
    /// Its directory.
    pub path: PathBuf,
    /// All its files together.
    pub bytes: Bytes,
    /// How long it took.
    pub took: Duration,
    /// What became of others.
    pub tidied: Tidied,
}

/// What became of other checkpoints when one was written. Nothing here endangers the new one.
#[derive(Debug, Default)]
pub struct Tidied {
    /// Removed, since newer ones are there.
    pub removed: Vec<PathBuf>,
    /// Claimed to be newer than the one just written: broken ones that were passed over, or a
    /// course that was given up. Renamed to these, so that nobody takes them for the newest.
    pub set_aside: Vec<PathBuf>,
    /// What could not be done.
    pub failed: Vec<CheckpointError>,
}

impl Checkpoints {
    /// Opens a directory for writing, made where there is none. Refused while another process
    /// writes there. What killed runs left half written is removed.
    pub fn open(directory: &Path, keep: Keep) -> Result<Checkpoints, CheckpointError> {
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
        // The lock proves that nobody alive is writing them.
        directory::remove_drafts(directory)?;
        let pinned = BTreeSet::new();
        Ok(Checkpoints { directory: directory.to_path_buf(), keep, pinned, _lock: lock })
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// All checkpoints by name, oldest first, good or broken.
    pub fn list(&self) -> Result<Vec<PathBuf>, CheckpointError> {
        let found = directory::list(&self.directory)?;
        Ok(found.into_iter().map(|place| place.path(&self.directory)).collect())
    }

    /// Writes a checkpoint. After an error the old ones are what they were, and no draft is left.
    pub fn save(&mut self, contents: &Contents, mark: Mark) -> Result<Saved, CheckpointError> {
        let begun = Instant::now();
        let place = directory::next_place(&self.directory, contents.step)?;
        let draft = Draft::begin(&place.path(&self.directory))?;
        let (path, bytes) = draft.write(contents)?;
        if let Mark::Best { score } = mark {
            directory::mark_best(&self.directory, place, score)?;
        }
        let tidied = directory::tidy(&self.directory, place, self.keep, &self.pinned);
        Ok(Saved { path, bytes, took: begun.elapsed(), tidied })
    }

    /// Protects the newest checkpoint of this step from retention, for as long as something may
    /// still call [`Checkpoints::mark_best`] for it. Pins end with the process.
    pub fn pin(&mut self, step: u64) {
        self.pinned.insert(step);
    }

    /// Ends the protection. The checkpoint is removed by the next save, if it is neither among the
    /// newest nor the best.
    pub fn unpin(&mut self, step: u64) {
        self.pinned.remove(&step);
    }

    /// Marks a checkpoint that was saved earlier as the best one.
    pub fn mark_best(&mut self, step: u64, score: f64) -> Result<Marked, CheckpointError> {
        let found = directory::list(&self.directory)?;
        let Some(place) = found.into_iter().rfind(|place| place.step == step) else {
            return Ok(Marked::Gone);
        };
        directory::mark_best(&self.directory, place, score)?;
        Ok(Marked::Yes)
    }

    /// Which one is the best so far; none where none was marked.
    pub fn best(&self) -> Result<Option<Best>, CheckpointError> {
        directory::best(&self.directory)
    }

    /// The newest that is whole, with all of its parts, and the newer ones that are not. None: the
    /// directory holds no checkpoint. An error where it does and not one can be used: starting
    /// over must be the user's decision.
    pub fn load_newest(&self) -> Result<Option<Loaded>, CheckpointError> {
        load_newest(&self.directory, Parts::All)
    }
}
