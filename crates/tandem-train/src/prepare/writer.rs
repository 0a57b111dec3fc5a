//! Writes processed rows to the cache in corpus order, while the workers process the next ones.
//!
//! In: rows with their [`Outcome`]. Out: the new cache and [`PrepareCounts`]. Runs on one thread.

use crate::TrainError;
use crate::prepare::row::{Content, Fault, Outcome, RowData, RowOrigin, RowText};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use tandem_data::cache::{Cache, CachedText, Draft, Meta, NewRow, Record};
use tandem_data::corpus::{RejectedRow, Utterance};
use tandem_text::WordCounts;

/// What one preparation counts to the cache.
#[derive(Debug, Default)]
pub struct PrepareCounts {
    /// Rows processed in this run.
    pub rebuilt: usize,
    /// Rows recovered from an interrupted build.
    pub recovered: usize,
    /// Rows whose recording has a new stamp and the same contents.
    pub touched: usize,
    /// Words of the rows processed in this run.
    pub words: WordCounts,
    /// Damage found in the previous cache.
    pub damage: Option<String>,
}

/// Writes the next version of the cache, row by row.
pub struct CacheWriter {
    draft: Draft,
    old: Option<Arc<Cache>>,
    speakers: Names,
    languages: Names,
    counts: PrepareCounts,
}

impl CacheWriter {
    pub fn new(draft: Draft, old: Option<Arc<Cache>>) -> CacheWriter {
        let counts = PrepareCounts::default();
        let (speakers, languages) = (Names::of("speakers"), Names::of("languages"));
        CacheWriter { draft, old, speakers, languages, counts }
    }

    pub fn push(&mut self, row: &Utterance, outcome: Outcome) -> Result<(), TrainError> {
        let Outcome { mut record, origin, content } = outcome;
        self.count(origin);
        let mut note = String::new();
        match content {
            Content::Cached => record.language = self.old_language(record.language)?,
            Content::Recovered(language) => record.language = self.languages.number(&language)?,
            Content::New(data) => self.write_new(&mut record, &data)?,
            Content::Unusable(fault) => note = as_note(&fault)?,
        }
        record.speaker = self.speakers.number(row.speaker.as_deref().unwrap_or_default())?;
        let audio = row.audio.to_string_lossy();
        let new = NewRow { record, id: &row.id, audio: &audio, note: &note };
        Ok(self.draft.push(new, self.old.as_deref())?)
    }

    /// Writes a row whose manifest line could not be used, so that its recording was never read.
    pub fn push_unread(
        &mut self,
        row: &RejectedRow,
        manifests: &[PathBuf],
    ) -> Result<(), TrainError> {
        let RejectedRow { reason, message, fix, .. } = row.clone();
        let manifest = manifests.iter().position(|path| path.as_os_str() == row.manifest.as_str());
        let record = Record {
            state: 1,
            line: row.line,
            manifest: manifest.unwrap_or_default() as u16,
            ..Record::default()
        };
        let note = as_note(&Fault { reason, message, fix, symbols: None })?;
        let new = NewRow { record, id: &row.id, audio: "", note: &note };
        Ok(self.draft.push(new, None)?)
    }

    /// Replaces the current cache.
    pub fn commit(self, meta: Meta) -> Result<(Cache, PrepareCounts), TrainError> {
        let meta = Meta { speakers: self.speakers.list, languages: self.languages.list, ..meta };
        Ok((self.draft.commit(meta)?, self.counts))
    }

    /// Ends early. The next preparation recovers what was written.
    pub fn suspend(self) -> Result<(), TrainError> {
        Ok(self.draft.suspend()?)
    }

    fn count(&mut self, origin: RowOrigin) {
        match origin {
            RowOrigin::Unchanged => {}
            RowOrigin::Touched => self.counts.touched += 1,
            RowOrigin::Recovered => self.counts.recovered += 1,
            RowOrigin::Processed => self.counts.rebuilt += 1,
        }
    }

    fn old_language(&mut self, number: u16) -> Result<u16, TrainError> {
        let names = self.old.as_ref().map(|cache| &cache.meta().languages);
        let name = names.and_then(|names| names.get(usize::from(number))).cloned();
        self.languages.number(&name.unwrap_or_default())
    }

    fn write_new(&mut self, record: &mut Record, data: &RowData) -> Result<(), TrainError> {
        let RowText { language, symbols, normalized, phonemes, words } = &data.text;
        self.counts.words += *words;
        record.language = self.languages.number(language)?;
        record.symbols = symbols.len() as u32;
        let text = CachedText::new(record.frames, language, symbols, normalized, phonemes);
        let place = self.draft.add_text(record.key(), &text)?;
        (record.text_segment, record.text_offset) = (place.segment, place.offset);
        if let Some(mel) = &data.mel {
            let place = self.draft.add_mel(record.key(), mel)?;
            (record.mel_segment, record.mel_offset) = (place.segment, place.offset);
        }
        Ok(())
    }
}

/// Names in the order of their first use; rows store the position.
#[derive(Debug)]
struct Names {
    what: &'static str,
    list: Vec<String>,
    numbers: HashMap<String, u16>,
}

impl Names {
    fn of(what: &'static str) -> Names {
        Names { what, list: Vec::new(), numbers: HashMap::new() }
    }

    fn number(&mut self, name: &str) -> Result<u16, TrainError> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let full = |_| TrainError::TooManyNames { what: self.what };
        let number = u16::try_from(self.list.len()).map_err(full)?;
        self.list.push(name.to_string());
        self.numbers.insert(name.to_string(), number);
        Ok(number)
    }
}

fn as_note(fault: &Fault) -> Result<String, TrainError> {
    serde_json::to_string(fault).map_err(TrainError::Settings)
}
