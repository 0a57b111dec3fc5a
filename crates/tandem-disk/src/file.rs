//! A file that is written: `std::fs::File`, with every change told to those who watch.

use crate::Operation;
use crate::watch::{before_change, changes_are_watched};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file open for writing, and for reading what was written.
#[derive(Debug)]
pub struct File {
    inner: fs::File,
    path: PathBuf,
}

impl File {
    /// Opens a file for writing; an old one becomes empty.
    pub fn create(path: &Path) -> io::Result<File> {
        File::open(path, OpenOptions::new().create(true).truncate(true))
    }

    /// Opens a new file for writing; an error where there is one.
    pub fn create_new(path: &Path) -> io::Result<File> {
        File::open(path, OpenOptions::new().create_new(true))
    }

    fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
        before_change(&Operation::Create { path })?;
        let inner = options.read(true).write(true).open(path)?;
        Ok(File { inner, path: path.to_path_buf() })
    }

    /// Makes all of it survive a power cut, once its name does.
    pub fn sync_all(&self) -> io::Result<()> {
        before_change(&Operation::Sync { path: &self.path })?;
        self.inner.sync_all()
    }

    /// Makes its bytes survive a power cut.
    pub fn sync_data(&self) -> io::Result<()> {
        before_change(&Operation::Sync { path: &self.path })?;
        self.inner.sync_data()
    }

    /// Another handle with the same position.
    pub fn try_clone(&self) -> io::Result<File> {
        Ok(File { inner: self.inner.try_clone()?, path: self.path.clone() })
    }

    /// What the system knows of it.
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
