//! All rows of a prepared corpus in one file, with a checksum per block.
//!
//! ```text
//! header | records, 128 bytes each | names | meta (JSON) | one checksum per 64 KiB | their checksum
//! ```
//!
//! A block whose checksum does not match loses only its own rows. If the header, meta or checksum
//! table is damaged, the whole index is unusable and the segments are scanned instead.
//!
//! Preparing reads the file block by block into a [`RowBuffer`], whose size does not depend on the
//! number of rows. A run needs rows in any order: its first [`Index::record`] reads the file to memory,
//! and what happens to it later cannot change the rows of that run. Both verify what they read.

use crate::DataError;
use crate::cache::segment::SegmentKind;
use crate::cache::{Record, Stamp};
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tandem_disk::Fingerprint;
use tandem_disk::read::look_up;
use tandem_disk::retry::RetryRead;
use tandem_disk::{AccessKind, ReadFile, retry};
use xxhash_rust::xxh3::xxh3_64;

/// File name inside the settings directory.
pub const FILE_NAME: &str = "index";
/// Offset of the first record: a multiple of its alignment.
pub const RECORDS_AT: u64 = 4096;

const MAGIC: [u8; 8] = *b"TANDIDX1";
const BLOCK: usize = 64 << 10;
/// Blocks that are read at once when damaged ones are counted.
const WINDOW: usize = 16;

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
    file: File,
    path: PathBuf,
    /// Differs between any two open indexes of this process.
    id: u64,
    rows: usize,
    names_at: usize,
    names_end: usize,
    /// Where the part with checksums ends.
    checked_end: usize,
    meta: Meta,
    /// One checksum per block.
    checks: Vec<u64>,
    /// Of the checksums, and so of the whole file.
    seal: u64,
    /// All blocks, once a row was asked for by [`Index::record`].
    whole: OnceLock<Blocks>,
}

impl Index {
    /// Opens an index; the error is a sentence that describes the fault.
    pub fn open(directory: &Path, settings: Fingerprint) -> Result<Index, String> {
        static OPENED: AtomicU64 = AtomicU64::new(1);
        let path = directory.join(FILE_NAME);
        let file = retry(|| ReadFile::open(&path)).map_err(|e| e.to_string())?;
        let length = usize::try_from(file.size()).map_err(|e| e.to_string())?;
        let mut head = [0; size_of::<Header>()];
        let mut reader = RetryRead(file);
        reader.read_exact(&mut head).map_err(cut_short)?;
        let header = read_header(&head, settings)?;
        let [names_at, meta_at, checks_at] = sections(&header, length)?;
        let mut index = Index {
            file: reader.0.into_inner(),
            path: path.clone(),
            id: OPENED.fetch_add(1, Ordering::Relaxed),
            rows: header.rows as usize,
            names_at,
            names_end: meta_at,
            checked_end: checks_at,
            meta: Meta::default(),
            checks: Vec::new(),
            seal: 0,
            whole: OnceLock::new(),
        };
        (index.checks, index.seal) = index.read_checks(checks_at, length)?;
        // The checksums end with the last byte of the meta.
        let description = [0..RECORDS_AT as usize, meta_at..checks_at];
        let mut window = Blocks::default();
        for range in &description {
            window.read(&index, blocks_of(range));
            let bytes = window.get(range).ok_or("its description is damaged")?;
            if range.start == meta_at {
                index.meta = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
            }
        }
        Ok(index)
    }

    fn read_checks(&self, checks_at: usize, length: usize) -> Result<(Vec<u64>, u64), String> {
        let blocks = checks_at.div_ceil(BLOCK);
        if length - checks_at != (blocks + 1) * 8 {
            return Err("it is cut short".into());
        }
        let mut checks = vec![0u64; blocks + 1];
        let bytes = bytemuck::cast_slice_mut(&mut checks);
        if self.read_at(bytes, checks_at as u64) < bytes.len() {
            return Err("it is cut short".into());
        }
        let last = checks.pop().unwrap_or_default();
        match xxh3_64(bytemuck::cast_slice(&checks)) == last {
            true => Ok((checks, last)),
            false => Err("its checksums are damaged".into()),
        }
    }

    /// Reads as many bytes as there are from an offset; fewer if the file cannot be read.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let read = retry(|| {
                look_up(AccessKind::Read, &self.path, || {
                    self.file.read_at(&mut bytes[done..], offset + done as u64)
                })
            });
            match read {
                Ok(0) | Err(_) => break,
                Ok(count) => done += count,
            }
        }
        done
    }

    fn whole(&self) -> &Blocks {
        self.whole.get_or_init(|| {
            let mut blocks = Blocks::default();
            blocks.read(self, 0..self.checks.len());
            blocks
        })
    }

    /// A checksum of the whole file.
    pub fn seal(&self) -> u64 {
        self.seal
    }

    /// Number of rows, with damaged ones.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Properties of the whole cache.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// A row's record; `None` if its part of the file is damaged. The first call reads the whole file.
    pub fn record(&self, row: usize) -> Option<&Record> {
        bytemuck::try_from_bytes(self.whole().get(&self.record_range(row)?)?).ok()
    }

    /// Id, audio path and note of a record. The first call reads the whole file.
    pub fn names(&self, record: &Record) -> Option<[&str; 3]> {
        split_names(record, self.whole().get(&self.names_range(record)?)?)
    }

    /// Reads a row's record; `None` if its part of the file is damaged. Keeps nothing but the buffer.
    pub fn read_record(&self, row: usize, buffer: &mut RowBuffer) -> Option<Record> {
        let range = self.record_range(row)?;
        buffer.records.reach(self, &range);
        bytemuck::try_pod_read_unaligned(buffer.records.get(&range)?).ok()
    }

    /// Reads id, audio path and note of a record.
    pub fn read_names<'b>(
        &self,
        record: &Record,
        buffer: &'b mut RowBuffer,
    ) -> Option<[&'b str; 3]> {
        let range = self.names_range(record)?;
        buffer.names.reach(self, &range);
        split_names(record, buffer.names.get(&range)?)
    }

    /// Number of damaged 64 KiB blocks; reads the whole file.
    pub fn damaged_blocks(&self) -> usize {
        let mut window = Blocks::default();
        let mut damaged = 0;
        for first in (0..self.checks.len()).step_by(WINDOW) {
            window.read(self, first..self.checks.len().min(first + WINDOW));
            damaged += window.damaged.iter().filter(|bad| **bad).count();
        }
        damaged
    }

    fn record_range(&self, row: usize) -> Option<Range<usize>> {
        let start = RECORDS_AT as usize + row.checked_mul(size_of::<Record>())?;
        (row < self.rows).then_some(start..start + size_of::<Record>())
    }

    fn names_range(&self, record: &Record) -> Option<Range<usize>> {
        let start = self.names_at.checked_add(usize::try_from(record.names_offset).ok()?)?;
        let lengths = [record.id_length.into(), record.audio_length.into(), record.note_length];
        let end =
            lengths.iter().try_fold(start, |end, length| end.checked_add(*length as usize))?;
        (end <= self.names_end).then_some(start..end)
    }
}

fn split_names<'b>(record: &Record, names: &'b [u8]) -> Option<[&'b str; 3]> {
    let (id, rest) = names.split_at_checked(record.id_length.into())?;
    let (audio, note) = rest.split_at_checked(record.audio_length.into())?;
    let text = |bytes: &'b [u8]| std::str::from_utf8(bytes).ok();
    Some([text(id)?, text(audio)?, text(note)?])
}

/// Two small windows of the file, each verified when it is read. Rows in order are cheap; any other row
/// costs two blocks.
#[derive(Debug, Default)]
pub struct RowBuffer {
    records: Blocks,
    names: Blocks,
}

/// Consecutive blocks of the file in memory.
#[derive(Debug, Default)]
struct Blocks {
    /// [`Index::id`] of the file; 0 for none.
    index: u64,
    /// Number of the first block.
    first: usize,
    /// Words, so that records are aligned.
    words: Vec<u64>,
    /// For each block, whether its checksum does not match.
    damaged: Vec<bool>,
}

impl Blocks {
    /// Reads the blocks that contain a range, unless they are here.
    fn reach(&mut self, index: &Index, range: &Range<usize>) {
        let wanted = blocks_of(range);
        let here = self.first..self.first + self.damaged.len();
        if self.index != index.id || wanted.start < here.start || wanted.end > here.end {
            self.read(index, wanted);
        }
    }

    fn read(&mut self, index: &Index, blocks: Range<usize>) {
        (self.index, self.first) = (index.id, blocks.start);
        let start = blocks.start * BLOCK;
        let length = index.checked_end.min(blocks.end * BLOCK).saturating_sub(start);
        self.words.resize(length.div_ceil(size_of::<u64>()), 0);
        let bytes = &mut bytemuck::cast_slice_mut(&mut self.words)[..length];
        let read = index.read_at(bytes, start as u64);
        let checks = &index.checks[blocks];
        let check = |(n, block): (usize, &[u8])| {
            n * BLOCK + block.len() > read || xxh3_64(block) != checks[n]
        };
        self.damaged.clear();
        self.damaged.extend(bytes.chunks(BLOCK).enumerate().map(check));
    }

    /// A range of the file; `None` if it is damaged or not here.
    fn get(&self, range: &Range<usize>) -> Option<&[u8]> {
        let blocks = blocks_of(range);
        let here = blocks.start.checked_sub(self.first)?..blocks.end.checked_sub(self.first)?;
        if self.damaged.get(here)?.iter().any(|bad| *bad) {
            return None;
        }
        let start = self.first * BLOCK;
        bytemuck::cast_slice(&self.words).get(range.start - start..range.end - start)
    }
}

/// The blocks that contain a range; none for an empty range.
fn blocks_of(range: &Range<usize>) -> Range<usize> {
    let first = range.start / BLOCK;
    first..if range.is_empty() { first } else { range.end.div_ceil(BLOCK) }
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
