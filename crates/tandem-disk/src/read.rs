//! Reads of the user's files, where a test can inject errors and delays.
//!
//! In: a path. Out: an open regular file, its bytes, or the result of a `stat`. A FIFO or a device
//! is an error at once: it is never waited for. Retries nothing itself; see [`mod@crate::retry`].

use crate::operation::short;
use crate::watch::before_read;
use rustix::fs::OFlags;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A read that is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access<'a> {
    pub kind: AccessKind,
    /// As the caller gave it. A `stat` below an open directory has a relative path.
    pub path: &'a Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Stat,
    List,
    Open,
    Read,
}

impl Access<'_> {
    /// A name that is the same in every run: `open wavs/clip_001.wav`.
    pub fn name(&self) -> String {
        let kind = match self.kind {
            AccessKind::Stat => "stat",
            AccessKind::List => "list",
            AccessKind::Open => "open",
            AccessKind::Read => "read",
        };
        format!("{kind} {}", short(self.path).display())
    }
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct ReadFile<'p> {
    inner: fs::File,
    path: &'p Path,
    len: u64,
}

impl<'p> ReadFile<'p> {
    /// Opens a regular file. Anything else is an error with the kind `InvalidInput`.
    pub fn open(path: &'p Path) -> io::Result<ReadFile<'p>> {
        before_read(&Access { kind: AccessKind::Open, path })?;
        // Without O_NONBLOCK, opening a FIFO without a writer would block for ever. For a
        // regular file the flag has no effect.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let inner = opened.map_err(|error| match rustix::io::Errno::from_io_error(&error) {
            // A socket, or a device without a driver.
            Some(rustix::io::Errno::NXIO) => not_regular(),
            _ => error,
        })?;
        let meta = inner.metadata()?;
        if !meta.is_file() {
            return Err(not_regular());
        }
        Ok(ReadFile { inner, path, len: meta.len() })
    }

    /// The size in bytes when the file was opened.
    pub fn size(&self) -> u64 {
        self.len
    }

    /// The plain file, without hooks.
    pub fn into_inner(self) -> fs::File {
        self.inner
    }
}

impl Read for ReadFile<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        before_read(&Access { kind: AccessKind::Read, path: self.path })?;
        self.inner.read(bytes)
    }
}

/// Runs a `stat` or a directory listing of `path` after the hooks have seen it.
pub fn look_up<T>(
    kind: AccessKind,
    path: &Path,
    operation: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    before_read(&Access { kind, path })?;
    operation()
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_fifo_a_socket_a_device_and_a_directory_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo.wav");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
        let socket = dir.path().join("socket.wav");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [fifo.as_path(), &socket, Path::new("/dev/zero"), dir.path()] {
            let error = ReadFile::open(path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", path.display());
            assert_eq!(error.to_string(), "it is not a regular file");
        }
    }

    #[test]
    fn a_hook_sees_reads_under_its_root_and_may_fail_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clip.wav");
        std::fs::write(&path, b"sound").unwrap();
        let hook: crate::watch::ReadHook = Arc::new(|access| match access.kind {
            AccessKind::Read => Err(io::Error::from_raw_os_error(5)),
            _ => Ok(()),
        });
        let watch = crate::watch_reads(dir.path(), hook);
        let mut file = ReadFile::open(&path).unwrap();
        let mut bytes = [0; 5];
        assert_eq!(file.read(&mut bytes).unwrap_err().raw_os_error(), Some(5));
        drop(watch);
        assert_eq!((file.read(&mut bytes).unwrap(), file.size()), (5, 5));
        assert_eq!(&bytes, b"sound");
    }

    #[test]
    fn an_access_has_a_name_without_the_way_to_the_corpus() {
        let path = Path::new("/data/corpus/wavs/a.wav");
        assert_eq!(Access { kind: AccessKind::Open, path }.name(), "open wavs/a.wav");
    }
}
