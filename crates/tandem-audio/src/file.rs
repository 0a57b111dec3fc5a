//! Reads the bytes of one recording into a buffer that is reused for the next one.
//!
//! In: a path. Out: the bytes, borrowed until the next read. A transient error is retried; a FIFO or
//! a device is refused. Decodes nothing. Next on the path: [`super::decode`].
//!
//! `read` instead of a memory map: mapping many small files does not scale over threads.

use super::{AudioConfig, AudioError};
use std::io::{self, Read};
use std::path::Path;
use tandem_disk::{ReadFile, retry};
use tandem_units::Bytes;

/// Owns the buffer; one per worker.
#[derive(Debug, Default)]
pub struct FileReader {
    buffer: Vec<u8>,
}

impl FileReader {
    /// The bytes of one file, borrowed until the next file is read.
    ///
    /// The size is checked before anything is read, and no more than that size is read: a file
    /// that grows meanwhile cannot exceed the limit.
    pub fn read(&mut self, path: &Path, limits: &AudioConfig) -> Result<&[u8], AudioError> {
        // Each try opens the file again: a stale NFS handle stays stale.
        let size = retry(|| {
            let mut file = ReadFile::open(path)?;
            let size = Bytes(file.size());
            if size <= limits.max_file {
                self.fill(&mut file, size)?;
            }
            Ok(size)
        })
        .map_err(|source| AudioError::Read { path: path.to_path_buf(), source })?;
        if size > limits.max_file {
            return Err(AudioError::FileTooLarge { size, limit: limits.max_file });
        }
        match self.buffer.len() {
            0 => Err(AudioError::EmptyFile),
            _ => Ok(&self.buffer),
        }
    }

    /// Usually one `read` for the whole file, because the length is known.
    fn fill(&mut self, file: &mut ReadFile<'_>, size: Bytes) -> io::Result<()> {
        let size = size.0 as usize;
        // Only the growth is zeroed; bytes of an earlier, longer file are overwritten.
        self.buffer.resize(size, 0);
        let mut filled = 0;
        while filled < size {
            match file.read(&mut self.buffer[filled..])? {
                0 => break,
                more => filled += more,
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tandem_disk::AccessKind;
    use tandem_units::Hint;

    const EIO: i32 = 5;

    fn reading(contents: &[u8], limits: AudioConfig) -> Result<Vec<u8>, AudioError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clip.wav");
        std::fs::write(&path, contents).unwrap();
        let mut reader = FileReader::default();
        reader.read(&path, &limits).map(<[u8]>::to_vec)
    }

    /// Reads a file of five bytes whose first `failures` accesses of one kind fail.
    fn reading_with_errors(kind: AccessKind, failures: u32) -> (Result<Vec<u8>, AudioError>, u32) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clip.wav");
        std::fs::write(&path, b"sound").unwrap();
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        let hook = move |access: &tandem_disk::Access<'_>| match access.kind == kind
            && counted.fetch_add(1, Ordering::Relaxed) < failures
        {
            true => Err(io::Error::from_raw_os_error(EIO)),
            false => Ok(()),
        };
        let _watch = tandem_disk::watch_reads(folder.path(), Arc::new(hook));
        let mut reader = FileReader::default();
        let read = reader.read(&path, &AudioConfig::default()).map(<[u8]>::to_vec);
        (read, tries.load(Ordering::Relaxed))
    }

    #[test]
    fn a_file_is_read_whole_into_the_same_buffer() {
        let folder = tempfile::tempdir().unwrap();
        let mut reader = FileReader::default();
        for contents in [&[7u8; 3000][..], &[1, 2, 3], &[9; 2000]] {
            let path = folder.path().join("clip.wav");
            std::fs::write(&path, contents).unwrap();
            assert_eq!(reader.read(&path, &AudioConfig::default()).unwrap(), contents);
        }
        assert_eq!(reader.buffer.capacity(), 3000);
    }

    #[test]
    fn empty_missing_large_and_special_files_have_different_errors() {
        let small = AudioConfig { max_file: Bytes(10), ..AudioConfig::default() };
        assert!(matches!(reading(&[], small), Err(AudioError::EmptyFile)));
        assert!(matches!(reading(&[0; 11], small), Err(AudioError::FileTooLarge { .. })));
        assert_eq!(reading(&[0; 10], small).unwrap().len(), 10);
        let mut reader = FileReader::default();
        let missing = reader.read(Path::new("no/such/file.wav"), &small);
        assert!(matches!(missing, Err(AudioError::Read { .. })));
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(reader.read(folder.path(), &small), Err(AudioError::Read { .. })));
    }

    #[test]
    fn two_io_errors_are_recovered_from() {
        for kind in [AccessKind::Open, AccessKind::Read] {
            let (read, tries) = reading_with_errors(kind, 2);
            assert_eq!((read.unwrap(), tries), (b"sound".to_vec(), 3), "{kind:?}");
        }
    }

    #[test]
    fn after_four_io_errors_the_recording_is_given_up() {
        for kind in [AccessKind::Open, AccessKind::Read] {
            let (read, tries) = reading_with_errors(kind, u32::MAX);
            let error = read.unwrap_err();
            let AudioError::Read { source, .. } = &error else { panic!("{error}") };
            assert!(source.to_string().contains("tried 4 times"), "{source}");
            assert!(error.hint().is_some_and(|hint| hint.contains("file system")));
            assert_eq!(tries, 4);
        }
    }

    #[test]
    fn a_missing_file_is_not_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        let _watch = tandem_disk::watch_reads(
            folder.path(),
            Arc::new(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }),
        );
        let missing = folder.path().join("clip.wav");
        let error = FileReader::default().read(&missing, &AudioConfig::default()).unwrap_err();
        let AudioError::Read { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), io::ErrorKind::NotFound);
        assert_eq!(tries.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_fifo_in_place_of_a_recording_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clip.wav");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        // Nobody writes to it: a read that waited would not return.
        let error = FileReader::default().read(&path, &AudioConfig::default()).unwrap_err();
        let AudioError::Read { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.to_string(), "it is not a regular file");
        assert!(error.hint().is_some());
    }
}
