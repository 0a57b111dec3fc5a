//! Splits a manifest into lines without loading it into memory.
//!
//! In: any bytes. Out: [`Line`]s with their number and offset. A line that is too long is
//! reported, not stored, so that a file without line ends costs no memory.

use std::io::{self, BufRead};

/// The longest line in bytes: far longer than a row of a real manifest, short enough for memory.
pub(super) const LONGEST: usize = 1 << 20;

/// One line, without its line end and without the byte order mark of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Counted from one.
    pub number: u32,
    /// Byte offset of the line in the file.
    pub offset: u64,
    /// The content; only its beginning if `overlong`.
    pub bytes: &'a [u8],
    /// The line is longer than [`LONGEST`].
    pub overlong: bool,
}

/// The lines of a source, one at a time.
pub(super) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    number: u32,
    offset: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), number: 0, offset: 0 }
    }

    /// The next line, or `None` at the end of the source.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let length = self.fill()?;
        if length == 0 {
            return Ok(None);
        }
        let offset = self.offset;
        self.offset += length;
        self.number = self.number.saturating_add(1);
        let overlong = self.buffer.len() > LONGEST;
        let mut bytes = &self.buffer[..self.buffer.len().min(LONGEST)];
        bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if self.number == 1 {
            bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        }
        Ok(Some(Line { number: self.number, offset, bytes, overlong }))
    }

    /// Reads one line and returns its length in bytes. Stores at most one buffer more than
    /// [`LONGEST`] of it.
    fn fill(&mut self) -> io::Result<u64> {
        let mut length = 0;
        loop {
            let piece = match self.source.fill_buf() {
                Ok(piece) => piece,
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => continue,
                Err(fault) => return Err(fault),
            };
            let end = memchr::memchr(b'\n', piece);
            let taken = end.map_or(piece.len(), |at| at + 1);
            if self.buffer.len() <= LONGEST {
                self.buffer.extend_from_slice(&piece[..taken]);
            }
            self.source.consume(taken);
            length += taken as u64;
            if end.is_some() || taken == 0 {
                return Ok(length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &[(u32, u64, &[u8])]) {
        // A tiny buffer, so that lines span several reads.
        let mut lines = Lines::new(io::BufReader::with_capacity(3, bytes));
        let mut found = Vec::new();
        while let Some(line) = lines.next().expect("memory can be read") {
            found.push((line.number, line.offset, line.bytes.to_vec()));
        }
        let expected: Vec<_> = expected.iter().map(|&(n, o, b)| (n, o, b.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_end_in_lf_or_crlf_or_at_the_end() {
        check(b"ab\r\n\ncd", &[(1, 0, b"ab"), (2, 4, b""), (3, 5, b"cd")]);
        check(b"", &[]);
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_start_only() {
        let text = "\u{feff}a\n\u{feff}b\n".as_bytes();
        check(text, &[(1, 0, b"a"), (2, 5, "\u{feff}b".as_bytes())]);
    }

    #[test]
    fn an_endless_line_is_cut_and_the_next_one_is_found() {
        let mut bytes = vec![b'x'; 3 * LONGEST];
        bytes.extend_from_slice(b"\nnext\n");
        let mut lines = Lines::new(io::BufReader::new(bytes.as_slice()));
        let first = lines.next().expect("readable").expect("there is a line");
        assert!(first.overlong);
        assert_eq!(first.bytes.len(), LONGEST);
        let held = lines.buffer.len();
        assert!(held < LONGEST + (1 << 16), "{held} bytes held");
        let second = lines.next().expect("readable").expect("there is a line");
        assert_eq!((second.number, second.bytes, second.overlong), (2, &b"next"[..], false));
    }
}
