//! All rows of a prepared corpus in one file, with a checksum per block.
//!
//! ```text
//! header | records, 128 bytes each | names | meta (JSON) | one checksum per 64 KiB | their checksum
//! ```
//!
//! A block whose checksum does not match loses only its own rows. If the header, meta or checksum
//! table is damaged, the whole index is unusable and the segments are scanned instead. The file is read
//! to memory once: what happens to it later cannot change the rows of a run.

use crate::DataError;
use crate::cache::segment::SegmentKind;
use crate::cache::{Fingerprint, Record, Stamp};
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use tandem_disk::retry::RetryRead;
use tandem_disk::{ReadFile, retry};
use xxhash_rust::xxh3::xxh3_64;

/// File name inside the settings directory.
pub const FILE_NAME: &str = "index";
/// Offset of the first record: a multiple of its alignment.
pub const RECORDS_AT: u64 = 4096;

const MAGIC: [u8; 8] = *b"TANDIDX1";
const BLOCK: usize = 64 << 10;

/// Properties of the whole cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// Manifests, relative to the corpus, with their stamps when they were read.
    pub sources: Vec<Source>,
    /// Speaker names; a record has the index.
    pub speakers: Vec<String>,
    /// Language tags; a record has the index.
    pub languages: Vec<String>,
    /// Whether mel frames are stored too.
    pub features: bool,
    /// Mel bands of a frame.
    pub bands: u32,
    pub segments: Vec<SegmentUse>,
}

/// A manifest and its stamp when it was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    pub path: String,
    pub stamp: Stamp,
}

/// How much of a segment is still in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentUse {
    pub kind: SegmentKind,
    pub number: u32,
    /// Rows that refer to it now.
    pub live: u64,
    /// The largest number of rows that referred to it.
    pub written: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    settings: Fingerprint,
    rows: u64,
    names_length: u64,
    meta_length: u64,
    total: u64,
    check: u64,
}

impl Header {
    fn names_at(&self) -> Option<u64> {
        self.rows.checked_mul(size_of::<Record>() as u64)?.checked_add(RECORDS_AT)
    }
    fn meta_at(&self) -> Option<u64> {
        self.names_at()?.checked_add(self.names_length)
    }
    fn checks_at(&self) -> Option<u64> {
        self.meta_at()?.checked_add(self.meta_length)
    }
    fn sealed(mut self) -> Header {
        self.check = 0;
        self.check = xxh3_64(bytemuck::bytes_of(&self));
        self
    }
}

#[derive(Debug)]
pub struct Index {
    /// The file. Words, so that records are aligned.
    words: Vec<u64>,
    rows: usize,
    names_at: usize,
    names_end: usize,
    meta: Meta,
    damaged: Vec<bool>,
}

impl Index {
    /// Opens an index; the error is a sentence that describes the fault.
    pub fn open(directory: &Path, settings: Fingerprint) -> Result<Index, String> {
        let path = directory.join(FILE_NAME);
        let file = retry(|| ReadFile::open(&path)).map_err(|e| e.to_string())?;
        let length = usize::try_from(file.size()).map_err(|e| e.to_string())?;
        let mut file = RetryRead(file);
        let mut head = [0; size_of::<Header>()];
        file.read_exact(&mut head).map_err(cut_short)?;
        let header = read_header(&head, settings)?;
        let [names_at, meta_at, checks_at] = sections(&header, length)?;
        // Only now: the length of a file that is not an index is no reason to take memory.
        let mut words = vec![0u64; length.div_ceil(size_of::<u64>())];
        let bytes = &mut bytemuck::cast_slice_mut(&mut words)[..length];
        bytes[..head.len()].copy_from_slice(&head);
        file.read_exact(&mut bytes[head.len()..]).map_err(cut_short)?;
        let damaged = check_blocks(bytes, checks_at)?;
        if touches(&damaged, &(meta_at..checks_at)) || touches(&damaged, &(0..RECORDS_AT as usize))
        {
            return Err("its description is damaged".into());
        }
        let meta = serde_json::from_slice(&bytes[meta_at..checks_at]).map_err(|e| e.to_string())?;
        Ok(Index { rows: header.rows as usize, names_at, names_end: meta_at, meta, damaged, words })
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }

    /// Number of rows, with damaged ones.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Properties of the whole cache.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// A row's record; `None` if its part of the file is damaged.
    pub fn record(&self, row: usize) -> Option<&Record> {
        let start = RECORDS_AT as usize + row.checked_mul(size_of::<Record>())?;
        let range = start..start + size_of::<Record>();
        if row >= self.rows || touches(&self.damaged, &range) {
            return None;
        }
        bytemuck::try_from_bytes(&self.bytes()[range]).ok()
    }

    /// Id, audio path and note of a record.
    pub fn names(&self, record: &Record) -> Option<[&str; 3]> {
        let start = self.names_at.checked_add(usize::try_from(record.names_offset).ok()?)?;
        let id_end = start.checked_add(record.id_length as usize)?;
        let audio_end = id_end.checked_add(record.audio_length as usize)?;
        let end = audio_end.checked_add(record.note_length as usize)?;
        if end > self.names_end || touches(&self.damaged, &(start..end)) {
            return None;
        }
        let text = |range: Range<usize>| std::str::from_utf8(&self.bytes()[range]).ok();
        Some([text(start..id_end)?, text(id_end..audio_end)?, text(audio_end..end)?])
    }

    /// Number of damaged 64 KiB blocks.
    pub fn damaged_blocks(&self) -> usize {
        self.damaged.iter().filter(|bad| **bad).count()
    }
}

/// Completes an index whose records and names are already in `file`, from [`RECORDS_AT`] on.
pub fn seal(
    file: &mut tandem_disk::File,
    path: &Path,
    settings: Fingerprint,
    rows: u64,
    names_length: u64,
    meta: &Meta,
) -> Result<(), DataError> {
    let failed = |source| DataError::Write { path: path.to_path_buf(), source };
    let meta = serde_json::to_vec(meta).map_err(|error| failed(error.into()))?;
    let checked = RECORDS_AT + rows * size_of::<Record>() as u64 + names_length + meta.len() as u64;
    let blocks = checked.div_ceil(BLOCK as u64);
    let header = Header {
        magic: MAGIC,
        settings,
        rows,
        names_length,
        meta_length: meta.len() as u64,
        total: checked + (blocks + 1) * 8,
        check: 0,
    };
    let mut write = || -> io::Result<()> {
        file.seek(SeekFrom::End(0))?;
        file.write_all(&meta)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(bytemuck::bytes_of(&header.sealed()))?;
        let mut checks = block_checks(file)?;
        checks.push(xxh3_64(bytemuck::cast_slice(&checks)));
        file.seek(SeekFrom::End(0))?;
        file.write_all(bytemuck::cast_slice(&checks))?;
        file.sync_all()
    };
    write().map_err(failed)
}

fn block_checks(file: &mut tandem_disk::File) -> io::Result<Vec<u64>> {
    file.seek(SeekFrom::Start(0))?;
    let mut checks = Vec::new();
    let mut block = Vec::with_capacity(BLOCK);
    loop {
        block.clear();
        if Read::take(&mut *file, BLOCK as u64).read_to_end(&mut block)? == 0 {
            return Ok(checks);
        }
        checks.push(xxh3_64(&block));
    }
}

/// The reason why a file could not be read as far as its length.
fn cut_short(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it is cut short".into(),
        _ => error.to_string(),
    }
}

fn read_header(bytes: &[u8], settings: Fingerprint) -> Result<Header, String> {
    let header: Header = bytemuck::pod_read_unaligned(bytes);
    if header.magic != MAGIC {
        return Err("it is of another version or another program".into());
    }
    if header.sealed().check != header.check {
        return Err("its header is damaged".into());
    }
    if header.settings != settings {
        return Err("it belongs to other settings".into());
    }
    Ok(header)
}

fn sections(header: &Header, length: usize) -> Result<[usize; 3], String> {
    let offsets = [header.names_at(), header.meta_at(), header.checks_at()];
    let whole = header.total == length as u64;
    match offsets.map(|offset| offset.and_then(|at| usize::try_from(at).ok())) {
        [Some(names), Some(meta), Some(checks)] if whole && checks <= length => {
            Ok([names, meta, checks])
        }
        _ => Err("it is cut short".into()),
    }
}

fn check_blocks(bytes: &[u8], checks_at: usize) -> Result<Vec<bool>, String> {
    let table = &bytes[checks_at..];
    let blocks = checks_at.div_ceil(BLOCK);
    if table.len() != (blocks + 1) * 8 {
        return Err("it is cut short".into());
    }
    let stored = |n: usize| u64::from_le_bytes(table[n * 8..][..8].try_into().unwrap_or_default());
    if xxh3_64(&table[..blocks * 8]) != stored(blocks) {
        return Err("its checksums are damaged".into());
    }
    let blocks = bytes[..checks_at].chunks(BLOCK).enumerate();
    Ok(blocks.map(|(n, block)| xxh3_64(block) != stored(n)).collect())
}

fn touches(damaged: &[bool], range: &Range<usize>) -> bool {
    range.start < range.end
        && damaged[range.start / BLOCK..=(range.end - 1) / BLOCK].iter().any(|bad| *bad)
}
