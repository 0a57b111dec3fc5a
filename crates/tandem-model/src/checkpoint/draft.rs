//! A checkpoint being written: a directory beside its place, put there by one rename.
//!
//! Every file is on the disk before the manifest lists it, the manifest before the rename, the rename
//! before [`Draft::write`] returns. A draft that does not get so far is removed.

use super::contents::{Contents, TensorSet};
use super::error::CheckpointError;
use super::manifest::{self, FileEntry, Manifest};
use super::{sealed, tensor_file};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tandem_disk::File;
use tandem_disk::replace_file;
use tandem_units::Bytes;

/// What is collected before it goes to the disk.
const BUFFER: usize = 1 << 20;

/// A checkpoint on its way.
pub struct Draft {
    directory: PathBuf,
    place: PathBuf,
}

impl Draft {
    /// Makes the draft's directory for a checkpoint that will be at `place`.
    pub fn begin(place: &Path) -> Result<Draft, CheckpointError> {
        let directory = replace_file::draft_path(place);
        let made = match tandem_disk::create_dir(&directory) {
            // A draft that could not be removed after an earlier failure.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                tandem_disk::remove_dir_all(&directory)
                    .and_then(|()| tandem_disk::create_dir(&directory))
            }
            made => made,
        };
        made.map_err(|source| CheckpointError::Write { path: directory.clone(), source })?;
        Ok(Draft { directory, place: place.to_path_buf() })
    }

    /// Writes everything and puts it in its place: that place, and the bytes of all files.
    pub fn write(mut self, contents: &Contents) -> Result<(PathBuf, Bytes), CheckpointError> {
        match self.write_all(contents) {
            Ok(bytes) => Ok((self.place, bytes)),
            Err(error) => {
                // Of no use any more, and its room is wanted; what cannot be removed now is
                // removed when the run is opened again.
                let _ = tandem_disk::remove_dir_all(&self.directory);
                Err(error)
            }
        }
    }

    fn write_all(&mut self, contents: &Contents) -> Result<Bytes, CheckpointError> {
        let mut files = Vec::new();
        for (stem, tensors) in &contents.tensors {
            files.push(self.write_tensors(stem, tensors)?);
        }
        for (stem, document) in &contents.documents {
            files.push(self.write_document(stem, document)?);
        }
        let listed: u64 = files.iter().map(|file| file.bytes).sum();
        let program = env!("CARGO_PKG_VERSION").to_string();
        let manifest = Manifest { program, step: contents.step, files };
        let document = |source| CheckpointError::Document { name: "manifest".into(), source };
        let text = sealed::seal(&manifest).map_err(document)?;
        let manifest = self.write_file(manifest::FILE_NAME, &mut |out| out.write_all(&text))?;
        self.commit()?;
        Ok(Bytes(listed + manifest.bytes))
    }

    fn write_tensors(
        &mut self,
        stem: &str,
        tensors: &TensorSet,
    ) -> Result<FileEntry, CheckpointError> {
        let name = file_name(stem, manifest::TENSORS)?;
        self.write_file(&name, &mut |out| tensor_file::write(tensors, out))
    }

    fn write_document(
        &mut self,
        stem: &str,
        document: &serde_json::Value,
    ) -> Result<FileEntry, CheckpointError> {
        let name = file_name(stem, manifest::DOCUMENT)?;
        let text = serde_json::to_vec_pretty(document)
            .map_err(|source| CheckpointError::Document { name: stem.into(), source })?;
        self.write_file(&name, &mut |out| out.write_all(&text))
    }

    /// Writes one file to the disk, and says what the manifest is to say of it.
    fn write_file(
        &mut self,
        name: &str,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<FileEntry, CheckpointError> {
        let path = self.directory.join(name);
        let written = File::create_new(&path).and_then(|file| {
            let mut out = Hashed::over(BufWriter::with_capacity(BUFFER, file));
            fill(&mut out)?;
            out.finish()
        });
        let (bytes, blake3) = written.map_err(|source| CheckpointError::Write { path, source })?;
        Ok(FileEntry { name: name.into(), bytes, blake3 })
    }

    fn commit(&mut self) -> Result<(), CheckpointError> {
        let failed = |path: &Path, source| CheckpointError::Write { path: path.into(), source };
        tandem_disk::sync_directory(&self.directory)
            .map_err(|source| failed(&self.directory, source))?;
        tandem_disk::rename(&self.directory, &self.place)
            .map_err(|source| failed(&self.place, source))?;
        // From here on it is a checkpoint; syncing makes its name survive a power loss.
        replace_file::sync_directory(&self.place).map_err(|source| failed(&self.place, source))
    }
}

fn file_name(stem: &str, end: &str) -> Result<String, CheckpointError> {
    match manifest::check_stem(stem) {
        Ok(()) => Ok(format!("{stem}{end}")),
        Err(why) => Err(CheckpointError::PartName { name: stem.into(), why }),
    }
}

/// Counts and hashes what goes through.
struct Hashed {
    out: BufWriter<File>,
    hash: blake3::Hasher,
    bytes: u64,
}

impl Hashed {
    fn over(out: BufWriter<File>) -> Hashed {
        Hashed { out, hash: blake3::Hasher::new(), bytes: 0 }
    }

    /// Waits until all of it is on the disk: its size and checksum.
    fn finish(self) -> io::Result<(u64, String)> {
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok((self.bytes, self.hash.finalize().to_hex().to_string()))
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
