//! The newest packets of a trace, within a number of bytes.
//!
//! In: encoded packets, oldest first. Out: the same bytes, without the oldest ones where there
//! was not room for all; how many were dropped is counted. An entry goes or stays whole, so that
//! the begin of a slice never loses its end.

use std::collections::VecDeque;
use std::io::{self, Write};

pub(crate) struct TraceRing {
    bytes: VecDeque<u8>,
    lengths: VecDeque<u32>,
    limit: usize,
    dropped: u64,
}

impl TraceRing {
    pub(crate) fn new(limit: usize) -> TraceRing {
        TraceRing { bytes: VecDeque::new(), lengths: VecDeque::new(), limit, dropped: 0 }
    }

    /// Adds an entry; `reserved` bytes of the limit belong to others.
    pub(crate) fn push(&mut self, entry: &[u8], reserved: usize) {
        let room = self.limit.saturating_sub(reserved);
        let length = u32::try_from(entry.len()).ok().filter(|_| entry.len() <= room);
        let Some(length) = length else {
            self.dropped += 1;
            return;
        };
        while self.bytes.len() + entry.len() > room {
            let Some(oldest) = self.lengths.pop_front() else { break };
            self.bytes.drain(..oldest as usize);
            self.dropped += 1;
        }
        self.bytes.extend(entry);
        self.lengths.push_back(length);
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let (older, newer) = self.bytes.as_slices();
        out.write_all(older)?;
        out.write_all(newer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(ring: &TraceRing) -> Vec<u8> {
        let mut bytes = Vec::new();
        ring.write_to(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_oldest_entries_go_whole_and_are_counted() {
        let mut ring = TraceRing::new(10);
        [&b"aaaa"[..], b"bbbb", b"cc"].into_iter().for_each(|entry| ring.push(entry, 0));
        assert_eq!((contents(&ring), ring.dropped()), (b"aaaabbbbcc".to_vec(), 0));
        ring.push(b"d", 0);
        assert_eq!((contents(&ring), ring.dropped()), (b"bbbbccd".to_vec(), 1));
        ring.push(b"eeee", 4);
        assert_eq!((contents(&ring), ring.dropped()), (b"deeee".to_vec(), 3));
    }

    #[test]
    fn an_entry_larger_than_the_ring_is_dropped_alone() {
        let mut ring = TraceRing::new(10);
        ring.push(b"aaaa", 0);
        ring.push(&[b'x'; 11], 0);
        assert_eq!((contents(&ring), ring.dropped()), (b"aaaa".to_vec(), 1));
    }
}
