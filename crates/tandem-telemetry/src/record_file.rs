//! The file under a record, and the lines that wait for it.
//!
//! In: complete lines. Out: bytes on disk, in one `write` per batch, so that a killed program
//! leaves complete lines (at worst one torn at the end). A failed write is retried at
//! intervals from the byte where it stopped. Lines wait in memory up to a limit;
//! past it they are refused, which the caller counts. Errors are returned, never raised as panics.

use crate::event::Lane;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_disk::File;

/// A place for a record: a file, or something that behaves like one in a test.
pub trait RecordFile: Write + Send {
    /// Makes sure that all written bytes survive a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

impl RecordFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A record in memory: for tests, and for runs that want no file. Copies share the bytes.
#[derive(Clone, Debug, Default)]
pub struct MemoryFile(Arc<Mutex<Vec<u8>>>);

impl MemoryFile {
    /// All bytes written so far.
    pub fn contents(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RecordFile for MemoryFile {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a line was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Taken,
    Refused,
}

/// Lines on their way to a file.
pub(crate) struct Outbox {
    file: Box<dyn RecordFile>,
    lines: Vec<u8>,
    limit: usize,
    retry_every: Duration,
    retry_at: Option<Instant>,
}

impl Outbox {
    pub(crate) fn new(file: Box<dyn RecordFile>, limit: usize, retry_every: Duration) -> Outbox {
        Outbox { file, lines: Vec::new(), limit, retry_every, retry_at: None }
    }

    /// Takes a line with its line end. Bulk lines may fill three quarters of the room: the
    /// rest is reserved for events that reports need.
    pub(crate) fn offer(&mut self, line: &[u8], lane: Lane) -> Offer {
        let room = match lane {
            Lane::Essential => self.limit,
            Lane::Bulk => self.limit / 4 * 3,
        };
        if self.lines.len() + line.len() > room {
            return Offer::Refused;
        }
        self.lines.extend_from_slice(line);
        Offer::Taken
    }

    /// Hands all waiting lines to the file, unless it failed a moment ago.
    pub(crate) fn flush(&mut self, now: Instant) -> io::Result<()> {
        if self.retry_at.is_some_and(|at| now < at) {
            return Ok(());
        }
        let mut done = 0;
        let result = self.write_from(&mut done);
        // Written bytes are removed, so the next attempt continues at exactly this byte.
        self.lines.drain(..done);
        self.retry_at = result.is_err().then(|| now + self.retry_every);
        result
    }

    /// The last attempt: ignores the pause after a failure, and syncs.
    pub(crate) fn close(&mut self, now: Instant) -> io::Result<()> {
        self.retry_at = None;
        self.flush(now)?;
        self.file.sync()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.lines.len()
    }

    fn write_from(&mut self, done: &mut usize) -> io::Result<()> {
        while *done < self.lines.len() {
            match self.file.write(&self.lines[*done..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => *done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a few bytes, then fails, then takes again.
    struct Stutter {
        to: MemoryFile,
        calls: usize,
    }

    impl Write for Stutter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            match self.calls % 3 {
                0 => Err(io::ErrorKind::StorageFull.into()),
                1 => Err(io::ErrorKind::Interrupted.into()),
                _ => self.to.write(&bytes[..bytes.len().min(5)]),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl RecordFile for Stutter {
        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_failed_write_continues_at_the_same_byte() {
        let to = MemoryFile::default();
        let file = Stutter { to: to.clone(), calls: 0 };
        let mut outbox = Outbox::new(Box::new(file), 1000, Duration::from_secs(1));
        let text = b"{\"at\":1}\n{\"at\":22}\n{\"at\":333}\n";
        assert_eq!(outbox.offer(text, Lane::Essential), Offer::Taken);
        let mut now = Instant::now();
        let mut failures = 0;
        while outbox.waiting() > 0 {
            failures += u32::from(outbox.flush(now).is_err());
            assert!(failures < 100);
            now += Duration::from_secs(1);
        }
        assert_eq!(to.contents(), text);
        assert!(failures > 1);
    }

    #[test]
    fn a_failed_disk_is_left_alone_for_a_while() {
        let file = Stutter { to: MemoryFile::default(), calls: 1 };
        let mut outbox = Outbox::new(Box::new(file), 1000, Duration::from_secs(1));
        outbox.offer(b"0123456789\n", Lane::Essential);
        let now = Instant::now();
        assert!(outbox.flush(now).is_err());
        let waiting = outbox.waiting();
        assert!(outbox.flush(now + Duration::from_millis(900)).is_ok());
        assert_eq!(outbox.waiting(), waiting, "no attempt was made");
        assert!(outbox.flush(now + Duration::from_millis(1100)).is_err());
    }

    #[test]
    fn bulk_lines_leave_room_for_the_others() {
        let mut outbox = Outbox::new(Box::<MemoryFile>::default(), 100, Duration::ZERO);
        assert_eq!(outbox.offer(&[b'x'; 75], Lane::Bulk), Offer::Taken);
        assert_eq!(outbox.offer(&[b'x'; 1], Lane::Bulk), Offer::Refused);
        assert_eq!(outbox.offer(&[b'x'; 25], Lane::Essential), Offer::Taken);
        assert_eq!(outbox.offer(&[b'x'; 1], Lane::Essential), Offer::Refused);
    }
}
