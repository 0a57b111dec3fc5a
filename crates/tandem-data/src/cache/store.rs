//! Reads the current state of a prepared corpus.
//!
//! In: a cache directory. Out: [`Cache`], with text and mel frames by row. A run keeps the index in memory;
//! text and mel frames are read from the segments. Every copy is verified: a file that another program
//! damages during a run costs its rows, never a wrong one.

use crate::DataError;
use crate::cache::checked_segments::{self, CheckedSegments};
use crate::cache::index::{self, Index, Meta, RowBuffer};
use crate::cache::segment::{SegmentFile, SegmentKind};
use crate::cache::stamp::FolderStamps;
use crate::cache::text_entry::CachedText;
use crate::cache::{EntryBuffer, Record, RowState};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tandem_disk::Fingerprint;
use tandem_disk::read::look_up;
use tandem_disk::{AccessKind, retry};

/// A prepared corpus. Any number of threads may read it at once.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
    index: Index,
    text: HashMap<u32, SegmentFile>,
    mel: HashMap<u32, SegmentFile>,
    /// Text segments that an earlier start verified and that did not change since.
    checked: HashSet<u32>,
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

/// A row of [`Cache::read_row`], borrowed from its buffer.
#[derive(Clone, Copy, Debug)]
pub struct FoundRow<'a> {
    pub record: Record,
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
        let text: HashMap<u32, SegmentFile> = open(SegmentKind::Text);
        let checked = CheckedSegments::read(directory, index.seal());
        let is_checked = |number: u32, segment: &SegmentFile| {
            let (checked, stamp) = (checked.as_ref()?, segment.stamp?);
            checked.contains(number, &stamp).then_some(number)
        };
        Cache {
            directory: directory.to_path_buf(),
            checked: text.iter().filter_map(|(number, file)| is_checked(*number, file)).collect(),
            text,
            mel: open(SegmentKind::Mel),
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

    /// Number of damaged 64 KiB blocks of the index; reads all of it.
    pub fn damaged_blocks(&self) -> usize {
        self.index.damaged_blocks()
    }

    /// Reads a row; `None` if its part of the index is damaged. For rows in order: unlike
    /// [`Cache::row`] it keeps nothing but the buffer in memory.
    pub fn read_row<'b>(&self, row: usize, buffer: &'b mut RowBuffer) -> Option<FoundRow<'b>> {
        let record = self.index.read_record(row, buffer)?;
        let [id, audio, note] = self.index.read_names(&record, buffer)?;
        Some(FoundRow { record, id, audio, note })
    }

    /// Reads a row's record; see [`Cache::read_row`].
    pub fn read_record(&self, row: usize, buffer: &mut RowBuffer) -> Option<Record> {
        self.index.read_record(row, buffer)
    }

    /// A row; `None` if its part of the index is damaged. The first call reads the index to memory.
    pub fn row(&self, row: usize) -> Option<Row<'_>> {
        let record = self.index.record(row)?;
        let [id, audio, note] = self.index.names(record)?;
        Some(Row { record, id, audio, note })
    }

    /// A row's record; `None` if its part of the index is damaged. The first call reads the index to
    /// memory.
    pub fn record(&self, row: usize) -> Option<&Record> {
        self.index.record(row)
    }

    /// The text of a usable row; `None` if it is damaged.
    pub fn text<'b>(&self, record: &Record, buffer: &'b mut EntryBuffer) -> Option<CachedText<'b>> {
        let segment = self.text.get(&record.text_segment)?;
        let text = segment.get(record.text_offset, &record.key(), buffer);
        if text.is_none() && self.checked.contains(&record.text_segment) {
            // Otherwise the next start would not find the damage either. If the file cannot be removed, its segment is at
            // fault again when the text is used.
            let _ = checked_segments::forget(&self.directory);
        }
        CachedText::decode(text?)
    }

    /// Remembers that every text was verified, for the next start. Call it after [`Cache::all_fresh`] was true for all rows.
    /// Does nothing where a text segment may change without notice.
    pub fn remember_texts(&self) -> io::Result<()> {
        if self.text.keys().all(|number| self.checked.contains(number)) {
            return Ok(());
        }
        let stamped =
            |(number, file): (&u32, &SegmentFile)| Some((*number, file.unchanged_stamp()?));
        match self.text.iter().map(stamped).collect() {
            Some(stamps) => checked_segments::remember(&self.directory, self.index.seal(), stamps),
            None => Ok(()),
        }
    }

    /// Copies the mel frames of a row, `[frames, bands]`, to memory of that size. Returns false if
    /// there are none, they are damaged or of another size; the contents of `frames` are then
    /// undefined.
    pub fn copy_mel(&self, record: &Record, frames: &mut [f32]) -> bool {
        let segment = self.mel.get(&record.mel_segment);
        frames.len() == record.frames as usize * self.meta().bands as usize
            && segment.is_some_and(|segment| {
                segment.copy_to(record.mel_offset, &record.key(), bytemuck::cast_slice_mut(frames))
            })
    }

    /// The mel frames of a row, `[frames, bands]`; `None` if there are none or they are damaged.
    pub fn mel(&self, record: &Record) -> Option<Vec<f32>> {
        if !self.has_mel(record) {
            return None;
        }
        let mut frames = vec![0.0; record.frames as usize * self.meta().bands as usize];
        self.copy_mel(record, &mut frames).then_some(frames)
    }

    /// Whether the file of a row's mel frames exists and is long enough. Their bytes are verified
    /// when they are used: a check here would read the whole cache.
    pub fn has_mel(&self, record: &Record) -> bool {
        let length = (u64::from(record.frames) * u64::from(self.meta().bands)).saturating_mul(4);
        let segment = self.mel.get(&record.mel_segment);
        segment.is_some_and(|segment| segment.contains_range(record.mel_offset, length))
    }

    /// Whether every row of a range can be used without work: its index entry and text are complete, its mel frames exist if
    /// it has any, and its recording is unchanged. Texts of a segment that an earlier start verified are not read if the
    /// segment did not change. Each row must also pass `visit`. `root` is the corpus.
    pub fn all_fresh(
        &self,
        root: &File,
        rows: Range<usize>,
        mut visit: impl FnMut(&FoundRow<'_>) -> bool,
    ) -> Result<bool, DataError> {
        let mut stamps = FolderStamps::new(root);
        let (mut found, mut buffer) = (RowBuffer::default(), EntryBuffer::default());
        for row in rows {
            let fresh = match self.read_row(row, &mut found) {
                Some(row) => visit(&row) && self.is_fresh(&mut stamps, &row, &mut buffer)?,
                None => false,
            };
            if !fresh {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_fresh(
        &self,
        stamps: &mut FolderStamps<'_>,
        &FoundRow { ref record, audio, .. }: &FoundRow<'_>,
        buffer: &mut EntryBuffer,
    ) -> Result<bool, DataError> {
        if !audio.is_empty() && stamps.of(audio)? != record.audio {
            return Ok(false);
        }
        let mut text = || {
            self.checked.contains(&record.text_segment)
                || self.text.get(&record.text_segment).is_some_and(|text| {
                    text.get(record.text_offset, &record.key(), buffer).is_some()
                })
        };
        let mut complete = || text() && (record.mel_segment == 0 || self.has_mel(record));
        Ok(record.state() == RowState::Rejected || complete())
    }
}
