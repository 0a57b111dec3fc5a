//! Reads the current state of a prepared corpus.
//!
//! In: a cache directory. Out: [`Cache`], with text and mel frames by row. Opening costs one pass over
//! the index; text and mel frames are in memory-mapped segments. A mel entry is verified at its first
//! use, so that later epochs only copy it.

use crate::DataError;
use crate::cache::index::{self, Index, Meta};
use crate::cache::segment::{SegmentFile, SegmentKind};
use crate::cache::text_entry::CachedText;
use crate::cache::{Fingerprint, Record, RowState, Stamp};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tandem_disk::read::look_up;
use tandem_disk::{AccessKind, retry};

/// Rows that are checked before the memory of their texts is released: a check of a million rows
/// would otherwise keep half a gigabyte in memory.
const ROWS_PER_RELEASE: usize = 1 << 14;

/// A prepared corpus. Any number of threads may read it at once.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
    index: Index,
    text: HashMap<u32, SegmentFile>,
    mel: HashMap<u32, SegmentFile>,
    mel_checked: Vec<AtomicBool>,
}

#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub record: &'a Record,
    pub id: &'a str,
    /// The recording, relative to the corpus; empty if none was found.
    pub audio: &'a str,
    /// Why the row is rejected, as JSON; empty for a usable row.
    pub note: &'a str,
}

#[derive(Debug)]
pub enum Found {
    Nothing,
    /// The index cannot be used; the reason.
    Unusable(String),
    /// Some rows may be damaged.
    Ready(Box<Cache>),
}

impl Cache {
    /// Opens the cache in a settings directory.
    pub fn open(directory: &Path, settings: Fingerprint) -> Found {
        let path = directory.join(index::FILE_NAME);
        // Not `exists`: it would take a failing disk for an empty cache.
        match retry(|| look_up(AccessKind::Stat, &path, || std::fs::metadata(&path))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return Found::Unusable(error.to_string()),
            Ok(_) => {}
        }
        match Index::open(directory, settings) {
            Ok(index) => Found::Ready(Box::new(Cache::with_index(directory, settings, index))),
            Err(why) => Found::Unusable(why),
        }
    }

    fn with_index(directory: &Path, settings: Fingerprint, index: Index) -> Cache {
        let open = |wanted: SegmentKind| {
            let numbers = index.meta().segments.iter().filter(|used| used.kind == wanted);
            numbers
                .filter_map(|used| {
                    let file = SegmentFile::open(directory, wanted, used.number, settings)?;
                    Some((used.number, file))
                })
                .collect()
        };
        Cache {
            directory: directory.to_path_buf(),
            text: open(SegmentKind::Text),
            mel: open(SegmentKind::Mel),
            mel_checked: (0..index.rows()).map(|_| AtomicBool::new(false)).collect(),
            index,
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn meta(&self) -> &Meta {
        self.index.meta()
    }

    /// Number of rows, with rejected and damaged ones.
    pub fn len(&self) -> usize {
        self.index.rows()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of damaged 64 KiB blocks of the index.
    pub fn damaged_blocks(&self) -> usize {
        self.index.damaged_blocks()
    }

    /// A row; `None` if its part of the index is damaged.
    pub fn row(&self, row: usize) -> Option<Row<'_>> {
        let record = self.index.record(row)?;
        let [id, audio, note] = self.index.names(record)?;
        Some(Row { record, id, audio, note })
    }

    /// A row's record; `None` if its part of the index is damaged.
    pub fn record(&self, row: usize) -> Option<&Record> {
        self.index.record(row)
    }

    /// The text of a usable row; `None` if it is damaged.
    pub fn text(&self, record: &Record) -> Option<CachedText<'_>> {
        let segment = self.text.get(&record.text_segment)?;
        CachedText::decode(segment.get(record.text_offset, &record.key())?)
    }

    /// The mel frames of a row, `[frames, bands]`; `None` if there are none or they are damaged.
    pub fn mel(&self, row: usize, record: &Record) -> Option<&[f32]> {
        let segment = self.mel.get(&record.mel_segment)?;
        let key = record.key();
        let checked = &self.mel_checked[row];
        let payload = if checked.load(Ordering::Relaxed) {
            segment.get_verified(record.mel_offset, &key)?
        } else {
            let payload = segment.get(record.mel_offset, &key)?;
            checked.store(true, Ordering::Relaxed);
            payload
        };
        let frames: &[f32] = bytemuck::try_cast_slice(payload).ok()?;
        let expected = record.frames as usize * self.meta().bands as usize;
        (frames.len() == expected).then_some(frames)
    }

    /// Whether the file of a row's mel frames exists and is long enough. Their bytes are verified
    /// when they are used: a check here would read the whole cache.
    pub fn has_mel(&self, record: &Record) -> bool {
        let length = u64::from(record.frames) * u64::from(self.meta().bands) * 4;
        let segment = self.mel.get(&record.mel_segment);
        segment.is_some_and(|segment| segment.contains_range(record.mel_offset, length))
    }

    /// The mel frames of a record without a row number, always verified.
    pub(super) fn mel_of_record(&self, record: &Record) -> Option<&[f32]> {
        let segment = self.mel.get(&record.mel_segment)?;
        bytemuck::try_cast_slice(segment.get(record.mel_offset, &record.key())?).ok()
    }

    /// Whether every row of a range can be used without work: its index entry and text are complete,
    /// its mel frames exist if it has any, and its recording is unchanged. `root` is the corpus.
    pub fn all_fresh(&self, root: &File, rows: Range<usize>) -> Result<bool, DataError> {
        for row in rows {
            if !self.is_fresh(root, row)? {
                return Ok(false);
            }
            if row.is_multiple_of(ROWS_PER_RELEASE) {
                self.text.values().for_each(SegmentFile::release_pages);
            }
        }
        self.text.values().for_each(SegmentFile::release_pages);
        Ok(true)
    }

    fn is_fresh(&self, root: &File, row: usize) -> Result<bool, DataError> {
        let Some(Row { record, audio, .. }) = self.row(row) else { return Ok(false) };
        if !audio.is_empty() && Stamp::at(root, Path::new(audio))? != record.audio {
            return Ok(false);
        }
        let text = || {
            let segment = self.text.get(&record.text_segment);
            segment.is_some_and(|text| text.get(record.text_offset, &record.key()).is_some())
        };
        let complete = || text() && (record.mel_segment == 0 || self.has_mel(record));
        Ok(record.state() == RowState::Rejected || complete())
    }
}
