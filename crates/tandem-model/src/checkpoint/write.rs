//! Writes a checkpoint: one file per tensor set and document, then the manifest, then the commit.
//!
//! In: [`Contents`] and a store. Out: a committed checkpoint, and its size. Every file is durable
//! before the manifest lists it, and the manifest before the commit. An error leaves no draft.

use super::contents::Contents;
use super::error::CheckpointError;
use super::manifest::{self, FileEntry, Manifest};
use super::store::{CheckpointDraft, CheckpointId, CheckpointStore, Fill};
use super::{sealed, tensor_file};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use tandem_units::Bytes;

/// Returns the size of all files together. Raises `progress` with every write.
pub fn write(
    store: &dyn CheckpointStore,
    id: CheckpointId,
    contents: &Contents,
    progress: &AtomicU64,
) -> Result<Bytes, CheckpointError> {
    let mut draft = store.begin(id)?;
    let mut files = Vec::new();
    for (stem, tensors) in &contents.tensors {
        let name = file_name(stem, manifest::TENSORS)?;
        let fill: Fill<'_> = &mut |out| tensor_file::write(tensors, out);
        files.push(write_file(&mut *draft, &name, fill, progress)?);
    }
    for (stem, document) in &contents.documents {
        let name = file_name(stem, manifest::DOCUMENT)?;
        let text = serde_json::to_vec_pretty(document)
            .map_err(|source| CheckpointError::Document { name: stem.into(), source })?;
        files.push(write_file(&mut *draft, &name, &mut |out| out.write_all(&text), progress)?);
    }
    let listed: u64 = files.iter().map(|file| file.bytes).sum();
    let program = env!("CARGO_PKG_VERSION").to_string();
    let manifest = Manifest { program, step: contents.step, files };
    let text = sealed::seal(&manifest)
        .map_err(|source| CheckpointError::Document { name: "manifest".into(), source })?;
    let fill: Fill<'_> = &mut |out| out.write_all(&text);
    let manifest = write_file(&mut *draft, manifest::FILE_NAME, fill, progress)?;
    draft.commit()?;
    Ok(Bytes(listed + manifest.bytes))
}

/// Writes one file and returns its entry for the manifest.
fn write_file(
    draft: &mut dyn CheckpointDraft,
    name: &str,
    fill: Fill<'_>,
    progress: &AtomicU64,
) -> Result<FileEntry, CheckpointError> {
    let (mut hash, mut bytes) = (blake3::Hasher::new(), 0);
    draft.write_file(name, &mut |out| {
        fill(&mut Hashed { out, hash: &mut hash, bytes: &mut bytes, progress })
    })?;
    Ok(FileEntry { name: name.into(), bytes, blake3: hash.finalize().to_hex().to_string() })
}

fn file_name(stem: &str, extension: &str) -> Result<String, CheckpointError> {
    match manifest::check_stem(stem) {
        Ok(()) => Ok(format!("{stem}{extension}")),
        Err(why) => Err(CheckpointError::PartName { name: stem.into(), why }),
    }
}

/// Counts and hashes the bytes that pass through.
struct Hashed<'a> {
    out: &'a mut dyn Write,
    hash: &'a mut blake3::Hasher,
    bytes: &'a mut u64,
    progress: &'a AtomicU64,
}

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        *self.bytes += written as u64;
        self.progress.fetch_add(1, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
