//! Where the checkpoints of a run are stored: everything that this module needs from a storage.
//!
//! In: the files of one checkpoint after another. Out: their bytes. A store knows nothing about
//! tensors, checksums or retention. [`local::LocalStore`] is a directory; checkpoints in an object
//! storage would be another implementation next to it. Next: [`super::write`] and [`super::read`].

pub mod local; // a directory
#[cfg(test)]
pub mod memory; // for tests of what is above the store

use super::error::{CheckpointError, Fault};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const NAME: &str = "step-";

/// The name of a checkpoint. Ordered by step, then by revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckpointId {
    /// Optimizer steps done.
    pub step: u64,
    /// 1 for the first checkpoint of this step, 2 when the step is saved again. A checkpoint is
    /// never overwritten: replacing one directory by another is not atomic on every file system.
    pub revision: u32,
}

/// A file of a store, opened for reading.
pub struct StoredFile {
    pub reader: Box<dyn Read>,
    pub bytes: u64,
}

/// Fills one file of a checkpoint.
pub type Fill<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

/// The storage of one run's checkpoints. Each method is atomic for readers: a checkpoint is listed
/// when all of its files are stored durably, and its files never change afterwards.
pub trait CheckpointStore: fmt::Debug + Send {
    /// Where the store is, for messages and for paths that are reported.
    fn root(&self) -> &Path;

    /// All checkpoints, oldest first, usable or damaged.
    fn list(&self) -> Result<Vec<CheckpointId>, CheckpointError>;

    fn contains(&self, id: CheckpointId) -> bool;

    /// Starts a checkpoint. It is not listed before [`CheckpointDraft::commit`].
    fn begin(&self, id: CheckpointId) -> Result<Box<dyn CheckpointDraft>, CheckpointError>;

    fn open_file(&self, id: CheckpointId, name: &str) -> Result<StoredFile, Fault>;

    fn remove(&self, id: CheckpointId) -> Result<(), CheckpointError>;

    /// Renames a checkpoint so that it is not listed any more. Returns the new path.
    fn set_aside(&self, id: CheckpointId) -> Result<PathBuf, CheckpointError>;

    /// Opens the mark of the best checkpoint. [`Fault::Missing`] if there is none.
    fn open_best(&self) -> Result<StoredFile, Fault>;

    /// Replaces the mark of the best checkpoint atomically and durably.
    fn replace_best(&self, text: &[u8]) -> Result<(), CheckpointError>;

    /// Removes the mark of the best checkpoint durably.
    fn remove_best(&self) -> Result<(), CheckpointError>;
}

/// A checkpoint that is being written. Dropping it without a commit removes its files.
pub trait CheckpointDraft {
    /// Writes one file. It is durable when this returns.
    fn write_file(&mut self, name: &str, fill: Fill<'_>) -> Result<(), CheckpointError>;

    /// Lists the checkpoint under its id, durably.
    fn commit(self: Box<Self>) -> Result<(), CheckpointError>;
}

impl CheckpointId {
    pub fn name(self) -> String {
        match self.revision {
            1 => format!("{NAME}{:08}", self.step),
            revision => format!("{NAME}{:08}-{revision}", self.step),
        }
    }

    /// The checkpoint that a directory name stands for; `None` for any other name.
    pub fn parse(name: &str) -> Option<CheckpointId> {
        let numbers = name.strip_prefix(NAME)?;
        let (step, revision) = numbers.split_once('-').unwrap_or((numbers, "1"));
        let id = CheckpointId { step: step.parse().ok()?, revision: revision.parse().ok()? };
        // One name for one id: no signs, no additional zeros.
        (id.name() == name).then_some(id)
    }

    pub fn path(self, root: &Path) -> PathBuf {
        root.join(self.name())
    }
}
