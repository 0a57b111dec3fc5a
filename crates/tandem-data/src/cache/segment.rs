//! Append-only files of entries with checksums.
//!
//! In: payloads with keys. Out: payloads, copied to the caller's memory. An entry is a 64-byte header
//! (length, key, checksum) and its payload, padded to 64 bytes. An entry is used only if key, length
//! and checksum of the copy match. After a crash [`scan`] finds every complete entry. The checksum of mel
//! frames is computed once, and again after the file changed; see `verified.rs`.
//!
//! Never memory-mapped: another program may truncate or overwrite the file during a run. A read then
//! returns too few bytes or wrong ones, which the check of the copy notices; a mapping would raise
//! SIGBUS, or change under the reader after it was checked.

use crate::DataError;
use crate::cache::EntryBuffer;
use crate::cache::verified::{FileStamp, Verified};
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IoSliceMut, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tandem_disk::Fingerprint;
use tandem_disk::read::look_up;
use tandem_disk::retry::RetryRead;
use tandem_disk::{AccessKind, ReadFile, retry};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

const ALIGN: u64 = 64;
const FILE_MAGIC: [u8; 8] = *b"TANDSEG1";
const ENTRY_MAGIC: u32 = 0x5444_4E45;
// Entries are not converted after reading: a big-endian machine must not open them.
const _: () = assert!(cfg!(target_endian = "little"), "the cache is little-endian");

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SegmentKind {
    /// Symbols and normalised text.
    Text,
    /// Mel frames.
    Mel,
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryLocation {
    /// Number of the segment, from 1; 0 means that there is no entry.
    pub segment: u32,
    /// Byte offset of the entry's header.
    pub offset: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct FileHeader {
    magic: [u8; 8],
    kind: u32,
    number: u32,
    settings: Fingerprint,
    reserved: [u8; 24],
    check: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct EntryHeader {
    magic: u32,
    reserved: u32,
    length: u64,
    key: Fingerprint,
    check: u64,
    padding: [u8; 24],
}

impl EntryHeader {
    /// The checksum covers key and length too, so that a payload under another key does not match.
    fn seed(length: u64, key: &Fingerprint) -> u64 {
        xxh3_64_with_seed(&key.0, length)
    }

    fn is_of(&self, key: &Fingerprint) -> bool {
        self.magic == ENTRY_MAGIC && self.key == *key
    }

    fn matches(&self, key: Option<&Fingerprint>, payload: &[u8]) -> bool {
        self.magic == ENTRY_MAGIC
            && self.length == payload.len() as u64
            && key.is_none_or(|key| *key == self.key)
            && self.check == xxh3_64_with_seed(payload, Self::seed(self.length, &self.key))
    }
}

/// The name of a segment's file.
pub fn file_name(kind: SegmentKind, number: u32) -> String {
    match kind {
        SegmentKind::Text => format!("text-{number:06}.seg"),
        SegmentKind::Mel => format!("mel-{number:06}.seg"),
    }
}

/// Kind and number of a segment, if the file name is that of a segment.
pub fn parse_file_name(name: &str) -> Option<(SegmentKind, u32)> {
    let (kind, number) = name.strip_suffix(".seg")?.split_once('-')?;
    let kind = match kind {
        "text" => SegmentKind::Text,
        "mel" => SegmentKind::Mel,
        _ => return None,
    };
    let number = number.parse().ok()?;
    // Another spelling of a number (`text-7.seg`) is not one of our files. The largest number has no
    // successor.
    (file_name(kind, number) == name && number < u32::MAX).then_some((kind, number))
}

/// Appends entries to a new segment.
#[derive(Debug)]
pub struct SegmentWriter {
    file: BufWriter<tandem_disk::File>,
    path: PathBuf,
    number: u32,
    at: u64,
}

impl SegmentWriter {
    /// Creates a segment; an existing file of that number is an error and is never overwritten.
    pub fn create(
        directory: &Path,
        kind: SegmentKind,
        number: u32,
        settings: Fingerprint,
    ) -> Result<SegmentWriter, DataError> {
        let path = directory.join(file_name(kind, number));
        let failed = |source| DataError::Write { path: path.clone(), source };
        let file = tandem_disk::File::create_new(&path).map_err(failed)?;
        let mut file = BufWriter::with_capacity(buffer(kind), file);
        file.write_all(bytemuck::bytes_of(&header(kind, number, settings))).map_err(failed)?;
        Ok(SegmentWriter { file, path: path.clone(), number, at: ALIGN })
    }

    /// Appends one entry that consists of `parts`.
    pub fn append(
        &mut self,
        key: Fingerprint,
        parts: &[&[u8]],
    ) -> Result<EntryLocation, DataError> {
        let location = EntryLocation { segment: self.number, offset: self.at };
        self.write(key, parts)
            .map_err(|source| DataError::Write { path: self.path.clone(), source })?;
        Ok(location)
    }

    fn write(&mut self, key: Fingerprint, parts: &[&[u8]]) -> io::Result<()> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let mut check = Xxh3::with_seed(EntryHeader::seed(length, &key));
        parts.iter().for_each(|part| check.update(part));
        let header = EntryHeader {
            magic: ENTRY_MAGIC,
            reserved: 0,
            length,
            key,
            check: check.digest(),
            padding: [0; 24],
        };
        self.file.write_all(bytemuck::bytes_of(&header))?;
        parts.iter().try_for_each(|part| self.file.write_all(part))?;
        let end = entry_end(self.at, length);
        let padding = end - (self.at + ALIGN + length);
        self.file.write_all(&[0; ALIGN as usize][..padding as usize])?;
        self.at = end;
        Ok(())
    }

    /// Whether an entry of this length crosses a mebibyte boundary of the file.
    pub fn crosses_mebibyte(&self, length: u64) -> bool {
        self.at >> 20 != entry_end(self.at, length) >> 20
    }

    /// Passes everything to the system, so that it survives if this process is killed.
    pub fn flush(&mut self) -> Result<(), DataError> {
        let flushed = self.file.flush();
        flushed.map_err(|source| DataError::Write { path: self.path.clone(), source })
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    /// Syncs the file, so that it survives a power cut. Returns its length.
    pub fn finish(mut self) -> Result<u64, DataError> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        synced.map_err(|source| DataError::Write { path: self.path.clone(), source })?;
        Ok(self.at)
    }
}

/// A segment open for reading. Any number of threads may read it at once.
#[derive(Debug)]
pub struct SegmentFile {
    file: File,
    path: PathBuf,
    /// Length when the file was opened.
    pub(super) length: u64,
    /// Differs between any two open segments of this process.
    pub(super) id: u64,
    /// When the file was opened; none if the system does not tell.
    pub(super) stamp: Option<FileStamp>,
    verified: Verified,
}

impl SegmentFile {
    /// Opens a segment of these settings; `None` for anything else, which is then built again.
    pub fn open(
        directory: &Path,
        kind: SegmentKind,
        number: u32,
        settings: Fingerprint,
    ) -> Option<SegmentFile> {
        static OPENED: AtomicU64 = AtomicU64::new(1);
        let path = directory.join(file_name(kind, number));
        let file = retry(|| ReadFile::open(&path)).ok()?;
        let (length, file) = (file.size(), file.into_inner());
        let id = OPENED.fetch_add(1, Ordering::Relaxed);
        let stamp = FileStamp::of(&file);
        let segment = SegmentFile { file, path, length, id, stamp, verified: Verified::default() };
        let mut found = [0; ALIGN as usize];
        segment.fill(&mut found, 0)?;
        (found == bytemuck::bytes_of(&header(kind, number, settings))).then_some(segment)
    }

    /// The stamp since the file was opened, if its bytes did not change and the next change will show.
    pub(super) fn unchanged_stamp(&self) -> Option<FileStamp> {
        self.stamp.filter(|then| then.is_settled() && FileStamp::of(&self.file) == self.stamp)
    }

    /// The payload of an entry, if it is complete and has this key.
    pub fn get<'b>(
        &self,
        offset: u64,
        key: &Fingerprint,
        buffer: &'b mut EntryBuffer,
    ) -> Option<&'b [u8]> {
        let head: EntryHeader =
            bytemuck::pod_read_unaligned(buffer.read(self, offset, ALIGN as usize)?);
        if !head.is_of(key) || !self.contains_range(offset, head.length) {
            return None;
        }
        // The header is read again with the payload: the file may change between two reads.
        let length = ALIGN as usize + usize::try_from(head.length).ok()?;
        let (head, payload) = buffer.read(self, offset, length)?.split_at(ALIGN as usize);
        let head: EntryHeader = bytemuck::pod_read_unaligned(head);
        head.matches(Some(key), payload).then_some(payload)
    }

    /// Copies the payload of an entry whose length is known. Returns whether it is complete and has
    /// this key; otherwise the contents of `payload` are undefined.
    pub fn copy_to(&self, offset: u64, key: &Fingerprint, payload: &mut [u8]) -> bool {
        let check = self.verified.before_read(&self.file, offset);
        let Some(head) = self.read_entry(offset, payload) else { return false };
        if !head.is_of(key) || head.length != payload.len() as u64 {
            return false;
        }
        check.after_read(&self.file, || head.matches(Some(key), payload))
    }

    /// Reads header and payload with one system call, as a rule; `None` if the file ends before.
    fn read_entry(&self, offset: u64, payload: &mut [u8]) -> Option<EntryHeader> {
        let mut head = [0; ALIGN as usize];
        let wanted = head.len() + payload.len();
        let mut parts = [IoSliceMut::new(&mut head), IoSliceMut::new(payload)];
        let read = retry(|| {
            look_up(AccessKind::Read, &self.path, || {
                Ok(rustix::io::preadv(&self.file, &mut parts, offset)?)
            })
        });
        if read.ok()? < wanted {
            // The end of the file, or a read that was cut short.
            self.fill(&mut head, offset)?;
            self.fill(payload, offset.checked_add(ALIGN)?)?;
        }
        Some(bytemuck::pod_read_unaligned(&head))
    }

    /// Whether an entry of this length was inside the file when it was opened; reads nothing.
    pub fn contains_range(&self, offset: u64, length: u64) -> bool {
        let end = offset.checked_add(ALIGN).and_then(|body| body.checked_add(length));
        end.is_some_and(|end| end <= self.length)
    }

    /// Fills `bytes` from an offset; `None` if the file ends before, or cannot be read.
    fn fill(&self, bytes: &mut [u8], offset: u64) -> Option<()> {
        (self.read_at(bytes, offset) == bytes.len()).then_some(())
    }

    /// Reads as many bytes as there are from an offset; none if the file cannot be read.
    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let read = retry(|| {
                look_up(AccessKind::Read, &self.path, || {
                    self.file.read_at(&mut bytes[done..], offset + done as u64)
                })
            });
            match read {
                Ok(0) => break,
                Ok(count) => done += count,
                // The caller treats the entry as damaged, and makes it from its sources.
                Err(_) => return 0,
            }
        }
        done
    }
}

/// Calls `found` for every complete entry of a segment that a crash may have left.
pub fn scan(
    directory: &Path,
    kind: SegmentKind,
    number: u32,
    settings: Fingerprint,
    mut found: impl FnMut(Fingerprint, EntryLocation, &[u8]),
) {
    let path = directory.join(file_name(kind, number));
    let Ok(file) = retry(|| ReadFile::open(&path)) else { return };
    // The size of the file limits the allocation that a damaged header can cause.
    let total = file.size();
    let mut reader = BufReader::with_capacity(1 << 20, RetryRead(file));
    let mut head = [0u8; ALIGN as usize];
    let expected = header(kind, number, settings);
    if reader.read_exact(&mut head).is_err() || head != bytemuck::bytes_of(&expected) {
        return;
    }
    let mut at = ALIGN;
    let mut payload = Vec::new();
    while reader.read_exact(&mut head).is_ok() {
        let entry: EntryHeader = bytemuck::pod_read_unaligned(&head);
        if entry.magic != ENTRY_MAGIC || entry.length > total {
            return;
        }
        let end = entry_end(at, entry.length);
        payload.resize((end - at - ALIGN) as usize, 0);
        if reader.read_exact(&mut payload).is_err() {
            return;
        }
        let body = &payload[..entry.length as usize];
        if !entry.matches(None, body) {
            return;
        }
        found(entry.key, EntryLocation { segment: number, offset: at }, body);
        at = end;
    }
}

/// What a kill costs at most, against a system call now and then: some hundred texts, or a few
/// recordings.
fn buffer(kind: SegmentKind) -> usize {
    match kind {
        SegmentKind::Text => 64 << 10,
        SegmentKind::Mel => 1 << 20,
    }
}

fn header(kind: SegmentKind, number: u32, settings: Fingerprint) -> FileHeader {
    let mut header = FileHeader {
        magic: FILE_MAGIC,
        kind: kind as u32,
        number,
        settings,
        reserved: [0; 24],
        check: 0,
    };
    header.check = xxh3_64(bytemuck::bytes_of(&header));
    header
}

fn entry_end(at: u64, length: u64) -> u64 {
    (at + ALIGN + length).next_multiple_of(ALIGN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SETTINGS: Fingerprint = Fingerprint([7; 16]);

    fn write(directory: &Path, payloads: &[Vec<u8>]) -> Vec<EntryLocation> {
        let mut writer = SegmentWriter::create(directory, SegmentKind::Text, 1, SETTINGS).unwrap();
        let locations =
            payloads.iter().map(|p| writer.append(Fingerprint::of(p), &[p]).unwrap()).collect();
        let length = writer.finish().unwrap();
        let on_disk = directory.join(file_name(SegmentKind::Text, 1)).metadata().unwrap().len();
        assert_eq!(length, on_disk);
        locations
    }

    fn open(directory: &Path) -> Option<SegmentFile> {
        SegmentFile::open(directory, SegmentKind::Text, 1, SETTINGS)
    }

    #[test]
    fn a_segment_of_other_settings_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &[b"text".to_vec()]);
        let other = Fingerprint([8; 16]);
        assert!(SegmentFile::open(dir.path(), SegmentKind::Text, 1, other).is_none());
        assert!(open(dir.path()).is_some());
    }

    #[test]
    fn only_the_names_we_write_are_segments() {
        let name = file_name(SegmentKind::Mel, 12);
        assert_eq!(parse_file_name(&name), Some((SegmentKind::Mel, 12)));
        for foreign in ["text-7.seg", "text-+00007.seg", "text-4294967295.seg", "old-000001.seg"] {
            assert_eq!(parse_file_name(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn an_entry_is_not_returned_for_another_key() {
        let dir = tempfile::tempdir().unwrap();
        let locations = write(dir.path(), &[b"one".to_vec(), b"two".to_vec()]);
        let segment = open(dir.path()).unwrap();
        let mut buffer = EntryBuffer::default();
        assert!(segment.get(locations[0].offset, &Fingerprint::of(b"one"), &mut buffer).is_some());
        assert!(segment.get(locations[0].offset, &Fingerprint::of(b"two"), &mut buffer).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn appended_entries_are_read_back_and_found_by_a_scan(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..12),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let locations = write(dir.path(), &payloads);
            let segment = open(dir.path()).unwrap();
            let (mut scanned, mut buffer) = (Vec::new(), EntryBuffer::default());
            scan(dir.path(), SegmentKind::Text, 1, SETTINGS, |_, location, body| {
                scanned.push((location, body.to_vec()));
            });
            prop_assert_eq!(scanned.len(), payloads.len());
            for (payload, (location, (found, body))) in
                payloads.iter().zip(locations.iter().zip(&scanned))
            {
                let key = Fingerprint::of(payload);
                prop_assert_eq!(segment.get(location.offset, &key, &mut buffer), Some(&payload[..]));
                let mut copy = vec![0; payload.len()];
                prop_assert!(segment.copy_to(location.offset, &key, &mut copy));
                prop_assert_eq!(&copy, payload);
                prop_assert!(!segment.copy_to(location.offset, &key, &mut [0; 400]));
                prop_assert_eq!((found, body), (location, payload));
            }
        }

        #[test]
        fn a_flipped_bit_is_always_detected(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 1..6),
            at in any::<prop::sample::Index>(),
            bit in 0u8..8,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let locations = write(dir.path(), &payloads);
            let path = dir.path().join(file_name(SegmentKind::Text, 1));
            let mut bytes = std::fs::read(&path).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            std::fs::write(&path, &bytes).unwrap();
            for (payload, location) in payloads.iter().zip(&locations) {
                let (key, mut buffer) = (Fingerprint::of(payload), EntryBuffer::default());
                let segment = open(dir.path());
                let found = segment.and_then(|s| s.get(location.offset, &key, &mut buffer).map(<[u8]>::to_vec));
                // Damage elsewhere leaves an entry readable; a returned entry is always correct.
                prop_assert!(found.is_none() || found.as_ref() == Some(payload));
            }
        }

        #[test]
        fn a_truncated_file_keeps_the_entries_before_its_end(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 1..6),
            at in any::<prop::sample::Index>(),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let locations = write(dir.path(), &payloads);
            let path = dir.path().join(file_name(SegmentKind::Text, 1));
            let bytes = std::fs::read(&path).unwrap();
            let cut = at.index(bytes.len());
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let mut kept = 0;
            scan(dir.path(), SegmentKind::Text, 1, SETTINGS, |_, _, _| kept += 1);
            let whole = payloads
                .iter()
                .zip(&locations)
                .filter(|(p, location)| entry_end(location.offset, p.len() as u64) <= cut as u64)
                .count();
            prop_assert_eq!(kept, whole);
        }
    }
}
