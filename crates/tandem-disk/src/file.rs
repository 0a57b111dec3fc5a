//! A file that is written: `std::fs::File`, with the hooks called before every change.
//!
//! In and out: as `std::fs::File`. Without a hook nothing is different.

use crate::Operation;
use crate::watch::{before_change, changes_are_watched};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file open for writing, and for reading back what was written.
#[derive(Debug)]
pub struct File {
    inner: fs::File,
    path: PathBuf,
}

impl File {
    /// Opens a file for writing; an existing one is truncated.
    pub fn create(path: &Path) -> io::Result<File> {
        File::open(path, OpenOptions::new().create(true).truncate(true))
    }

    /// Opens a new file for writing; an existing one is an error.
    pub fn create_new(path: &Path) -> io::Result<File> {
        File::open(path, OpenOptions::new().create_new(true))
    }

    fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
        before_change(&Operation::Create { path })?;
        let inner = options.read(true).write(true).open(path)?;
        Ok(File { inner, path: path.to_path_buf() })
    }

    /// Bytes and metadata survive a power cut afterwards; the name survives once its directory is
    /// synced.
    pub fn sync_all(&self) -> io::Result<()> {
        before_change(&Operation::Sync { path: &self.path })?;
        self.inner.sync_all()
    }

    /// The bytes survive a power cut afterwards.
    pub fn sync_data(&self) -> io::Result<()> {
        before_change(&Operation::Sync { path: &self.path })?;
        self.inner.sync_data()
    }

    /// A second handle that shares the position.
    pub fn try_clone(&self) -> io::Result<File> {
        Ok(File { inner: self.inner.try_clone()?, path: self.path.clone() })
    }

    pub fn metadata(&self) -> io::Result<fs::Metadata> {
        self.inner.metadata()
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if changes_are_watched() {
            let at = self.inner.stream_position()?;
            before_change(&Operation::Write { path: &self.path, at, bytes })?;
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Read for File {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.inner.read(bytes)
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}
