//! Checkpoints in memory, for tests of what is above the store.
//!
//! In: files of checkpoints. Out: the same bytes. Nothing survives the process.

use super::{CheckpointDraft, CheckpointId, CheckpointStore, Fill, StoredFile};
use crate::checkpoint::error::{CheckpointError, Fault};
use std::collections::BTreeMap;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

type Files = BTreeMap<String, Vec<u8>>;

/// Clones share their contents.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Stored>>);

#[derive(Debug, Default)]
struct Stored {
    checkpoints: BTreeMap<CheckpointId, Files>,
    aside: Vec<(CheckpointId, Files)>,
    best: Option<Vec<u8>>,
}

impl MemoryStore {
    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().unwrap()
    }

    fn take(&self, id: CheckpointId) -> Result<Files, CheckpointError> {
        self.stored().checkpoints.remove(&id).ok_or_else(|| CheckpointError::Write {
            path: id.path(self.root()),
            source: io::ErrorKind::NotFound.into(),
        })
    }
}

impl CheckpointStore for MemoryStore {
    fn root(&self) -> &Path {
        Path::new("memory")
    }

    fn list(&self) -> Result<Vec<CheckpointId>, CheckpointError> {
        Ok(self.stored().checkpoints.keys().copied().collect())
    }

    fn contains(&self, id: CheckpointId) -> bool {
        self.stored().checkpoints.contains_key(&id)
    }

    fn begin(&self, id: CheckpointId) -> Result<Box<dyn CheckpointDraft>, CheckpointError> {
        Ok(Box::new(MemoryDraft { store: self.clone(), id, files: Files::new() }))
    }

    fn open_file(&self, id: CheckpointId, name: &str) -> Result<StoredFile, Fault> {
        let stored = self.stored();
        opened(stored.checkpoints.get(&id).and_then(|files| files.get(name)), name)
    }

    fn remove(&self, id: CheckpointId) -> Result<(), CheckpointError> {
        self.take(id).map(|_| ())
    }

    fn set_aside(&self, id: CheckpointId) -> Result<PathBuf, CheckpointError> {
        let files = self.take(id)?;
        let mut stored = self.stored();
        stored.aside.push((id, files));
        Ok(self.root().join(format!("aside-{}", stored.aside.len())))
    }

    fn open_best(&self) -> Result<StoredFile, Fault> {
        opened(self.stored().best.as_ref(), "best.json")
    }

    fn replace_best(&self, text: &[u8]) -> Result<(), CheckpointError> {
        self.stored().best = Some(text.to_vec());
        Ok(())
    }

    fn remove_best(&self) -> Result<(), CheckpointError> {
        self.stored().best = None;
        Ok(())
    }
}

struct MemoryDraft {
    store: MemoryStore,
    id: CheckpointId,
    files: Files,
}

impl CheckpointDraft for MemoryDraft {
    fn write_file(&mut self, name: &str, fill: Fill<'_>) -> Result<(), CheckpointError> {
        let mut bytes = Vec::new();
        fill(&mut bytes).map_err(|source| CheckpointError::Write { path: name.into(), source })?;
        self.files.insert(name.into(), bytes);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), CheckpointError> {
        let MemoryDraft { store, id, files } = *self;
        store.stored().checkpoints.insert(id, files);
        Ok(())
    }
}

fn opened(bytes: Option<&Vec<u8>>, name: &str) -> Result<StoredFile, Fault> {
    let bytes = bytes.ok_or_else(|| Fault::Missing { file: name.into() })?.clone();
    Ok(StoredFile { bytes: bytes.len() as u64, reader: Box::new(Cursor::new(bytes)) })
}
