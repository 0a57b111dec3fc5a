//! Writes the next state of a prepared corpus.
//!
//! In: rows in corpus order. Out: a new index, committed atomically. Text and mel frames go to new
//! segments; unchanged rows refer to the old ones. Nothing is visible before [`Draft::commit`]. A crash
//! leaves the old state, and segments from which the next build continues ([`Leftovers`]).

use crate::DataError;
use crate::cache::index::{self, Meta, RECORDS_AT, SegmentUse};
use crate::cache::segment::{self, EntryLocation, SegmentKind, SegmentWriter};
use crate::cache::store::{Cache, Found};
use crate::cache::text_entry::CachedText;
use crate::cache::{EntryBuffer, Record};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tandem_disk::File;
use tandem_disk::Fingerprint;
use tandem_disk::directory_lock::DirectoryLock;
use tandem_disk::replace_file::{self, draft_path};

/// Segments with a smaller share of entries in use are compacted into new ones.
const MIN_LIVE_SHARE: f64 = 0.5;

/// From so many segments of a kind on, the smaller half is compacted too: each is an open file while
/// the cache is in use, and a process may open 1024 by default.
const MAX_SEGMENTS: usize = 64;

/// Temporary file for the names until all records are written.
const NAMES: &str = "names";

/// The next state. It owns the lock, so there is one at a time.
#[derive(Debug)]
pub struct Draft {
    directory: PathBuf,
    settings: Fingerprint,
    _lock: DirectoryLock,
    records: BufWriter<File>,
    names: BufWriter<File>,
    rows: u64,
    names_length: u64,
    next_segment: u32,
    text: Option<SegmentWriter>,
    mel: Option<SegmentWriter>,
    uses: HashMap<(SegmentKind, u32), SegmentUse>,
    sparse: HashSet<(SegmentKind, u32)>,
}

/// A row to append: its record without index offsets, and its strings.
#[derive(Clone, Copy, Debug)]
pub struct NewRow<'a> {
    /// Lengths, stamps and locations of text and mel frames.
    pub record: Record,
    pub id: &'a str,
    /// The recording, relative to the corpus; empty if none was found.
    pub audio: &'a str,
    /// Why the row is rejected, as JSON; empty for a usable row.
    pub note: &'a str,
}

/// Complete entries of a build that did not finish, by row key.
#[derive(Debug, Default)]
pub struct Leftovers {
    pub text: HashMap<Fingerprint, LeftText>,
    pub mel: HashMap<Fingerprint, EntryLocation>,
}

/// A text entry of an unfinished build.
#[derive(Clone, Debug)]
pub struct LeftText {
    pub place: EntryLocation,
    /// Mel frames of the recording.
    pub frames: u32,
    /// Symbols of the transcript.
    pub symbols: u32,
    pub language: String,
}

impl Draft {
    /// Starts the next state in a settings directory. `old` is the current state, if any.
    pub fn begin(
        directory: &Path,
        settings: Fingerprint,
        lock: DirectoryLock,
        old: Option<&Cache>,
    ) -> Result<Draft, DataError> {
        create_directory(directory)?;
        remove_drafts(directory)?;
        let existing = list_segments(directory)?;
        let mut draft = Draft {
            directory: directory.to_path_buf(),
            settings,
            _lock: lock,
            records: create(&draft_path(&directory.join(index::FILE_NAME)))?,
            names: create(&draft_path(&directory.join(NAMES)))?,
            rows: 0,
            names_length: 0,
            next_segment: existing.iter().map(|(_, number)| number + 1).max().unwrap_or(1),
            text: None,
            mel: None,
            uses: HashMap::new(),
            sparse: HashSet::new(),
        };
        for used in old.iter().flat_map(|cache| &cache.meta().segments) {
            let id = (used.kind, used.number);
            draft.uses.insert(id, SegmentUse { live: 0, ..*used });
            if (used.live as f64) < MIN_LIVE_SHARE * used.written as f64 {
                draft.sparse.insert(id);
            }
        }
        for kind in [SegmentKind::Text, SegmentKind::Mel] {
            let all = old.iter().flat_map(|cache| &cache.meta().segments);
            let mut all: Vec<_> = all.filter(|used| used.kind == kind).collect();
            if all.len() >= MAX_SEGMENTS {
                all.sort_by_key(|used| (used.live, used.number));
                draft.sparse.extend(all[..MAX_SEGMENTS / 2].iter().map(|used| (kind, used.number)));
            }
        }
        let path = draft.index_draft();
        let failed = |source| DataError::Write { path, source };
        draft.records.write_all(&[0; RECORDS_AT as usize]).map_err(failed)?;
        Ok(draft)
    }

    /// Entries of segments that no index refers to, because an earlier build was killed. `old` is
    /// the current state, whose segments are skipped.
    pub fn leftovers(&self, old: Option<&Cache>) -> Result<Leftovers, DataError> {
        let known: HashSet<_> = old
            .iter()
            .flat_map(|cache| &cache.meta().segments)
            .map(|used| (used.kind, used.number))
            .collect();
        let mut left = Leftovers::default();
        for (kind, number) in list_segments(&self.directory)? {
            if known.contains(&(kind, number)) {
                continue;
            }
            segment::scan(
                &self.directory,
                kind,
                number,
                self.settings,
                |key, location, body| match (kind, CachedText::decode(body)) {
                    (SegmentKind::Mel, _) => _ = left.mel.insert(key, location),
                    (SegmentKind::Text, Some(text)) => {
                        let text = LeftText {
                            place: location,
                            frames: text.frames,
                            symbols: text.symbol_count() as u32,
                            language: text.language.to_string(),
                        };
                        left.text.insert(key, text);
                    }
                    (SegmentKind::Text, None) => {}
                },
            );
        }
        Ok(left)
    }

    /// Writes the text of a row under its key.
    pub fn add_text(
        &mut self,
        key: Fingerprint,
        text: &CachedText<'_>,
    ) -> Result<EntryLocation, DataError> {
        let mut head = Vec::new();
        self.add(SegmentKind::Text, key, &text.encode(&mut head))
    }

    /// Writes the mel frames of a row under its key. Its text must be written first.
    pub fn add_mel(&mut self, key: Fingerprint, mel: &[f32]) -> Result<EntryLocation, DataError> {
        // Texts reach the disk before the mebibyte of mel frames that belongs to them. A build that
        // is killed or fills the disk then leaves complete rows, not mel frames alone.
        let crosses = |mel_file: &SegmentWriter| mel_file.crosses_mebibyte(size_of_val(mel) as u64);
        if let (Some(mel_file), Some(text)) = (&self.mel, &mut self.text)
            && crosses(mel_file)
        {
            text.flush()?;
        }
        self.add(SegmentKind::Mel, key, &[bytemuck::cast_slice(mel)])
    }

    fn add(
        &mut self,
        kind: SegmentKind,
        key: Fingerprint,
        parts: &[&[u8]],
    ) -> Result<EntryLocation, DataError> {
        let number = self.next_segment;
        let slot = match kind {
            SegmentKind::Text => &mut self.text,
            SegmentKind::Mel => &mut self.mel,
        };
        let writer = match slot {
            Some(writer) => writer,
            None => {
                let new = SegmentWriter::create(&self.directory, kind, number, self.settings)?;
                slot.insert(new)
            }
        };
        writer.append(key, parts)
    }

    /// Appends a row. Entries in mostly unused segments are copied to the new segment; `old` is the
    /// state that they are read from.
    pub fn push(&mut self, row: NewRow<'_>, old: Option<&Cache>) -> Result<(), DataError> {
        let mut record = row.record;
        if let Some(old) = old {
            self.move_from_sparse(&mut record, old)?;
        }
        record.names_offset = self.names_length;
        record.id_length = row.id.len() as u16;
        record.audio_length = row.audio.len() as u16;
        record.note_length = row.note.len() as u32;
        let path = self.index_draft();
        let failed = |source| DataError::Write { path, source };
        let names = [row.id, row.audio, row.note];
        let written = names.iter().try_for_each(|name| self.names.write_all(name.as_bytes()));
        written
            .and_then(|()| self.records.write_all(bytemuck::bytes_of(&record)))
            .map_err(failed)?;
        self.names_length += names.iter().map(|name| name.len() as u64).sum::<u64>();
        self.rows += 1;
        self.count_use(SegmentKind::Text, record.text_segment);
        self.count_use(SegmentKind::Mel, record.mel_segment);
        Ok(())
    }

    fn move_from_sparse(&mut self, record: &mut Record, old: &Cache) -> Result<(), DataError> {
        if self.sparse.contains(&(SegmentKind::Text, record.text_segment))
            && let Some(text) = old.text(record, &mut EntryBuffer::default())
        {
            let location = self.add_text(record.key(), &text)?;
            (record.text_segment, record.text_offset) = (location.segment, location.offset);
        }
        if self.sparse.contains(&(SegmentKind::Mel, record.mel_segment))
            && let Some(mel) = old.mel(record)
        {
            let location = self.add_mel(record.key(), &mel)?;
            (record.mel_segment, record.mel_offset) = (location.segment, location.offset);
        }
        Ok(())
    }

    fn count_use(&mut self, kind: SegmentKind, number: u32) {
        if number == 0 {
            return;
        }
        let fresh = SegmentUse { kind, number, live: 0, written: 0 };
        let used = self.uses.entry((kind, number)).or_insert(fresh);
        used.live += 1;
        used.written = used.written.max(used.live);
    }

    /// Makes the draft the current state atomically, and removes files that are no longer used. The
    /// lock is released.
    pub fn commit(mut self, mut meta: Meta) -> Result<Cache, DataError> {
        for writer in [self.text.take(), self.mel.take()].into_iter().flatten() {
            writer.finish()?;
        }
        meta.segments = self.uses.values().copied().filter(|used| used.live > 0).collect();
        meta.segments.sort_by_key(|used| (used.kind as u8, used.number));
        let path = self.index_draft();
        let failed = |source| DataError::Write { path: path.clone(), source };
        let mut file = self.join_names().map_err(failed)?;
        index::seal(&mut file, &path, self.settings, self.rows, self.names_length, &meta)?;
        // The names of new segments are synced before the index that refers to them.
        tandem_disk::sync_directory(&self.directory)
            .and_then(|()| replace_file::commit(&path, &self.directory.join(index::FILE_NAME)))
            .map_err(failed)?;
        remove_drafts(&self.directory)?;
        self.remove_unused(&meta)?;
        match Cache::open(&self.directory, self.settings) {
            Found::Ready(cache) => Ok(*cache),
            Found::Nothing => Err(DataError::CacheLost { path, why: "it is gone".into() }),
            Found::Unusable(why) => Err(DataError::CacheLost { path, why }),
        }
    }

    /// Ends an unfinished build so that the next one can use its entries.
    pub fn suspend(mut self) -> Result<(), DataError> {
        let finish = |writer: Option<SegmentWriter>| writer.map_or(Ok(0), SegmentWriter::finish);
        let (text, mel) = (finish(self.text.take()), finish(self.mel.take()));
        // Drafts are removed even after a full disk: their space is needed.
        remove_drafts(&self.directory).and(text).and(mel).map(|_| ())
    }

    fn join_names(&mut self) -> io::Result<File> {
        self.records.flush()?;
        self.names.flush()?;
        let mut names = self.names.get_ref().try_clone()?;
        names.seek(SeekFrom::Start(0))?;
        let mut file = self.records.get_ref().try_clone()?;
        io::copy(&mut names, &mut file)?;
        Ok(file)
    }

    fn remove_unused(&self, meta: &Meta) -> Result<(), DataError> {
        for (kind, number) in list_segments(&self.directory)? {
            if meta.segments.iter().all(|used| (used.kind, used.number) != (kind, number)) {
                let path = self.directory.join(segment::file_name(kind, number));
                tandem_disk::remove_file(&path)
                    .map_err(|source| DataError::Write { path, source })?;
            }
        }
        Ok(())
    }

    fn index_draft(&self) -> PathBuf {
        draft_path(&self.directory.join(index::FILE_NAME))
    }
}

fn create_directory(directory: &Path) -> Result<(), DataError> {
    let made = tandem_disk::create_dir_all(directory);
    made.map_err(|source| DataError::Write { path: directory.to_path_buf(), source })
}

fn create(path: &Path) -> Result<BufWriter<File>, DataError> {
    match File::create(path) {
        Ok(file) => Ok(BufWriter::with_capacity(1 << 18, file)),
        Err(source) => Err(DataError::Write { path: path.to_path_buf(), source }),
    }
}

fn list_segments(directory: &Path) -> Result<Vec<(SegmentKind, u32)>, DataError> {
    let failed = |source| DataError::Read { path: directory.to_path_buf(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        found.extend(name.to_str().and_then(segment::parse_file_name));
    }
    found.sort_by_key(|(kind, number)| (*kind as u8, *number));
    Ok(found)
}

/// Removes the drafts of builds that were killed. This process has the lock, so no other process
/// writes to them. Drafts of other files are not protected by the lock and stay.
fn remove_drafts(directory: &Path) -> Result<(), DataError> {
    let ours = [index::FILE_NAME, NAMES].map(|name| format!(".{name}.draft-"));
    let failed = |source| DataError::Read { path: directory.to_path_buf(), source };
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if ours.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            let path = entry.path();
            tandem_disk::remove_file(&path).map_err(|source| DataError::Write { path, source })?;
        }
    }
    Ok(())
}
