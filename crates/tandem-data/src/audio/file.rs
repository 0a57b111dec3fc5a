//! Reads a recording's bytes, whole, into one buffer that is used again and again.
//!
//! `read`, not a memory map: mapping many small files does not scale over threads.
//! Decodes nothing. Next on the path: [`super::decode`].

use super::{AudioError, AudioLimits};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use tandem_units::Bytes;

/// Owns the buffer; one per worker.
#[derive(Debug, Default)]
pub struct FileReader {
    buffer: Vec<u8>,
}

impl FileReader {
    /// The bytes of one file, lent until the next is read.
    ///
    /// The size is checked before anything is read, and never more than it is read: a file
    /// that grows meanwhile cannot get past the limit.
    pub fn read(&mut self, path: &Path, limits: &AudioLimits) -> Result<&[u8], AudioError> {
        let fail = |source| AudioError::Read { path: path.to_path_buf(), source };
        let mut file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if !meta.is_file() {
            return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let size = Bytes(meta.len());
        if size > limits.max_file {
            return Err(AudioError::FileTooLarge { size, limit: limits.max_file });
        }
        self.fill(&mut file, size).map_err(fail)?;
        match self.buffer.len() {
            0 => Err(AudioError::EmptyFile),
            _ => Ok(&self.buffer),
        }
    }

    /// One `read` for the whole file in the usual case: the length is already known.
    fn fill(&mut self, file: &mut File, size: Bytes) -> io::Result<()> {
        let size = size.0 as usize;
        // Only growth is zeroed; what an earlier, longer file left is overwritten.
        self.buffer.resize(size, 0);
        let mut held = 0;
        while held < size {
            match file.read(&mut self.buffer[held..]) {
                Ok(0) => break,
                Ok(more) => held += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.buffer.truncate(held);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(contents: &[u8], limits: AudioLimits) -> Result<Vec<u8>, AudioError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clip.wav");
        std::fs::write(&path, contents).unwrap();
        let mut reader = FileReader::default();
        reader.read(&path, &limits).map(<[u8]>::to_vec)
    }

    #[test]
    fn a_file_is_read_whole_into_the_same_buffer() {
        let folder = tempfile::tempdir().unwrap();
        let mut reader = FileReader::default();
        for contents in [&[7u8; 3000][..], &[1, 2, 3], &[9; 2000]] {
            let path = folder.path().join("clip.wav");
            std::fs::write(&path, contents).unwrap();
            assert_eq!(reader.read(&path, &AudioLimits::default()).unwrap(), contents);
        }
        assert_eq!(reader.buffer.capacity(), 3000);
    }

    #[test]
    fn empty_missing_large_and_special_files_are_told_apart() {
        let small = AudioLimits { max_file: Bytes(10), ..AudioLimits::default() };
        assert!(matches!(reading(&[], small), Err(AudioError::EmptyFile)));
        assert!(matches!(reading(&[0; 11], small), Err(AudioError::FileTooLarge { .. })));
        assert_eq!(reading(&[0; 10], small).unwrap().len(), 10);
        let mut reader = FileReader::default();
        let missing = reader.read(Path::new("no/such/file.wav"), &small);
        assert!(matches!(missing, Err(AudioError::Read { .. })));
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(reader.read(folder.path(), &small), Err(AudioError::Read { .. })));
    }
}
