//! Memory that entries of a segment are read to, with read-ahead.
//!
//! In: a range of a segment. Out: its bytes, not verified; [`super::segment`] does that.

use crate::cache::segment::SegmentFile;

/// Memory for entries that are read. Entries that follow one another in the file are read ahead, so
/// that a pass over all texts costs few system calls.
#[derive(Debug, Default)]
pub struct EntryBuffer {
    /// The segment whose bytes are here; 0 for none.
    segment: u64,
    start: u64,
    bytes: Vec<u8>,
    ahead: usize,
}

impl EntryBuffer {
    /// Most texts with their header are shorter.
    const MIN_AHEAD: usize = 1 << 10;
    const MAX_AHEAD: usize = 64 << 10;

    /// A range of the file; `None` if the file ends before.
    pub(super) fn read(
        &mut self,
        segment: &SegmentFile,
        offset: u64,
        length: usize,
    ) -> Option<&[u8]> {
        let skipped = offset.checked_sub(self.start).filter(|_| self.segment == segment.id);
        let skipped = skipped.and_then(|skipped| usize::try_from(skipped).ok());
        let skipped = skipped.filter(|skipped| *skipped <= self.bytes.len());
        match skipped {
            Some(at) if length <= self.bytes.len() - at => {
                return Some(&self.bytes[at..][..length]);
            }
            // The next entry in the file: probably more will follow.
            Some(at) if at > 0 => self.ahead = (self.ahead * 4).min(Self::MAX_AHEAD),
            _ => self.ahead = Self::MIN_AHEAD,
        }
        let rest = usize::try_from(segment.length.checked_sub(offset)?).unwrap_or(usize::MAX);
        self.bytes.resize(self.ahead.max(length).min(rest), 0);
        let read = segment.read_at(&mut self.bytes, offset);
        self.bytes.truncate(read);
        (self.segment, self.start) = (segment.id, offset);
        self.bytes.get(..length)
    }
}
