//! One row of a corpus: reused from the cache if unchanged, processed otherwise.
//!
//! In: a few [`Utterance`]s. Out: for each, the cache record and its content. Reads recordings,
//! writes nothing. Next: [`mod@crate::prepare`], which runs this on all workers.

use crate::data_settings::DataSettings;
use crate::feed::worker_mel::WorkerMel;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem_audio::mel::MelKernel;
use tandem_audio::{AudioError, Decoder, FileReader, Sound};
use tandem_data::cache::{
    Cache, EntryBuffer, FoundRow, Leftovers, Record, RowBuffer, RowState, Stamp,
};
use tandem_data::corpus::{RejectReason, Split, Utterance};
use tandem_disk::Fingerprint;
use tandem_pipeline::{Emitter, Payload, Stage, StageError};
use tandem_text::{FrontEnd, Language, Memo, ProcessedText, TextError, WordCounts};
use tandem_units::{Bytes, Hint, Samples};

/// Texts whose reading a worker memoizes: several speakers often read the same sentences. A few
/// megabytes.
const MEMO_TEXTS: usize = 4096;

/// How a changed recording is detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeCheck {
    /// By its stamp: size, modification time and inode.
    #[default]
    Stamps,
    /// By its contents: every recording is read and hashed.
    Contents,
}

/// Whether mel frames are stored in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Features {
    /// No: computed again in every epoch.
    #[default]
    OnTheFly,
    /// Yes: later epochs only copy them.
    Cached,
}

/// What all workers share.
pub struct PrepareContext {
    /// The corpus directory, opened.
    pub root: File,
    pub root_path: std::path::PathBuf,
    pub front_end: Arc<FrontEnd>,
    pub settings: DataSettings,
    /// Rows of the current cache.
    pub old: Option<OldRows>,
    /// Entries that an interrupted build wrote.
    pub leftovers: Leftovers,
    pub change_check: ChangeCheck,
    pub features: Features,
    /// Rows of the current cache that were found damaged.
    pub damaged: AtomicUsize,
}

/// The current cache, with its rows by id.
pub struct OldRows {
    cache: Arc<Cache>,
    /// Hash of the id and row, sorted: a million ids as strings would need more memory than the index.
    rows: Vec<(u64, u32)>,
}

impl OldRows {
    pub fn of(cache: Arc<Cache>) -> OldRows {
        let mut buffer = RowBuffer::default();
        let mut rows = Vec::with_capacity(cache.len());
        for number in 0..cache.len() {
            let row = cache.read_row(number, &mut buffer);
            rows.extend(row.map(|row| (hash_id(row.id), number as u32)));
        }
        rows.sort_unstable();
        OldRows { cache, rows }
    }

    /// The row with this id and source. A corpus may have other rows with the id, which were rejected.
    fn find<'b>(
        &self,
        id: &str,
        source: &Fingerprint,
        buffer: &'b mut RowBuffer,
    ) -> Option<FoundRow<'b>> {
        let hash = hash_id(id);
        let from = self.rows.partition_point(|(known, _)| *known < hash);
        let same = self.rows[from..].iter().take_while(|(known, _)| *known == hash);
        let mut numbers = same.map(|(_, number)| *number as usize);
        let number = numbers.find(|number| {
            let row = self.cache.read_row(*number, buffer);
            row.is_some_and(|row| row.id == id && row.record.source == *source)
        })?;
        self.cache.read_row(number, buffer)
    }
}

fn hash_id(id: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// A few rows to process together: a phonemizer is started once for all of them.
pub struct RowChunk(pub Vec<Utterance>);

pub struct ProcessedRows(pub Vec<(Utterance, Outcome)>);

/// What the cache stores for a row.
pub struct Outcome {
    /// Lengths, stamps and, for content that is already on disk, offsets.
    pub record: Record,
    pub origin: RowOrigin,
    pub content: Content,
}

/// Where the content of a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowOrigin {
    /// The current cache; nothing changed.
    Unchanged,
    /// The current cache; only the recording's stamp changed.
    Touched,
    /// An interrupted build.
    Recovered,
    /// It was processed in this run.
    Processed,
}

/// The content of a row.
pub enum Content {
    /// Already in the current cache.
    Cached,
    /// Written by an interrupted build, in this language.
    Recovered(String),
    New(Box<RowData>),
    /// The row cannot be used.
    Unusable(Fault),
}

/// Text and features of a processed row.
pub struct RowData {
    pub text: RowText,
    /// `[frames, bands]`, where features are cached.
    pub mel: Option<Vec<f32>>,
}

/// What the cache stores of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowText {
    /// Language tag.
    pub language: String,
    pub symbols: Vec<u16>,
    pub normalized: String,
    /// IPA; empty where the symbols are characters.
    pub phonemes: String,
    /// Of built-in phonemes; not stored.
    pub words: WordCounts,
}

impl RowText {
    fn of(read: ProcessedText) -> RowText {
        RowText {
            language: read.language.tag().to_string(),
            symbols: read.transcript.ids().iter().map(|symbol| symbol.0).collect(),
            normalized: read.normalized,
            phonemes: read.phonemes.unwrap_or_default(),
            words: read.uncertain.counts(),
        }
    }
}

/// Why a row cannot be used; stored in the cache as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fault {
    pub reason: RejectReason,
    pub message: String,
    /// What the user can do about it.
    pub fix: String,
    /// Length of a text that is too long; moved to the record, where summaries find it.
    #[serde(skip)]
    pub symbols: Option<u32>,
}

impl Payload for RowChunk {
    fn size(&self) -> Bytes {
        Bytes(self.0.iter().map(|row| (size_of::<Utterance>() + row.text.len()) as u64).sum())
    }
}

impl Payload for ProcessedRows {
    fn size(&self) -> Bytes {
        let mel = |outcome: &Outcome| match &outcome.content {
            Content::New(data) => data.mel.as_ref().map_or(0, Vec::len) * 4,
            _ => 0,
        };
        let row = |(row, outcome): &(Utterance, Outcome)| {
            (size_of::<Utterance>() + size_of::<RowData>() + row.text.len() * 4 + mel(outcome))
                as u64
        };
        Bytes(self.0.iter().map(row).sum())
    }
}

/// Processes rows. One per worker: it owns decoder, kernel and buffers.
pub struct ProcessRows {
    context: Arc<PrepareContext>,
    file: FileReader,
    decoder: Decoder,
    mel: WorkerMel,
    memo: Memo,
    old_row: RowBuffer,
    old_text: EntryBuffer,
}

/// The state of a row after its recording was checked.
enum AudioCheck {
    /// The outcome is known; the text need not be read.
    Done(Outcome),
    /// The recording is usable and the text must still be read. Holds the mel frames, if cached.
    NeedsText(Record, Option<Vec<f32>>),
}

impl ProcessRows {
    pub fn new(context: &Arc<PrepareContext>) -> ProcessRows {
        let settings = &context.settings;
        ProcessRows {
            context: context.clone(),
            file: FileReader::default(),
            decoder: Decoder::new(settings.mel.rate, settings.audio),
            mel: WorkerMel::new(settings.mel.clone(), MelKernel::best_for(&settings.mel)),
            memo: Memo::new(MEMO_TEXTS),
            old_row: RowBuffer::default(),
            old_text: EntryBuffer::default(),
        }
    }

    pub fn process(&mut self, rows: Vec<Utterance>) -> Result<ProcessedRows, StageError> {
        self.process_named(rows, &mut |_| {})
    }

    /// The same; `name` is told each row before the work on it, for messages about work that does not end.
    fn process_named(
        &mut self,
        rows: Vec<Utterance>,
        name: &mut dyn FnMut(&Utterance),
    ) -> Result<ProcessedRows, StageError> {
        let mut checks = Vec::with_capacity(rows.len());
        for row in &rows {
            name(row);
            checks.push(self.check_audio(row).map_err(StageError::stop)?);
        }
        let mut readings = self.read_texts(&rows, &checks, name)?.into_iter();
        let finish = |(row, check): (Utterance, AudioCheck)| {
            let outcome = match check {
                AudioCheck::Done(outcome) => outcome,
                AudioCheck::NeedsText(record, mel) => match readings.next() {
                    Some(Ok(reading)) => {
                        let text = RowText::of(reading);
                        processed(record, Content::New(Box::new(RowData { text, mel })))
                    }
                    Some(Err(fault)) => {
                        let symbols = fault.symbols.unwrap_or(record.symbols);
                        rejected(Record { symbols, ..record }, fault)
                    }
                    None => unreachable!("each row that needs its text has one reading"),
                },
            };
            (row, outcome)
        };
        Ok(ProcessedRows(rows.into_iter().zip(checks).map(finish).collect()))
    }

    fn check_audio(&mut self, row: &Utterance) -> Result<AudioCheck, tandem_data::DataError> {
        let mut record = Record {
            source: source_of(row),
            line: row.line,
            manifest: row.manifest,
            split: u8::from(row.split == Split::Eval),
            audio: Stamp::at(&self.context.root, &row.audio)?,
            ..Record::default()
        };
        let old = self.find_old(row, &record.source);
        if let Some((old, note)) = &old
            && old.audio == record.audio
            && self.context.change_check == ChangeCheck::Stamps
        {
            return Ok(AudioCheck::Done(reuse(record, old, note, RowOrigin::Unchanged)));
        }
        let path = self.context.root_path.join(&row.audio);
        let bytes = match self.file.read(&path, &self.context.settings.audio) {
            Ok(bytes) => bytes,
            Err(error) => {
                // A failed read says nothing about the recording: without its stamp, the next
                // start reads it again.
                if matches!(error, AudioError::Read { .. }) {
                    record.audio = Stamp::MISSING;
                }
                return Ok(AudioCheck::Done(rejected(record, audio_fault(&error))));
            }
        };
        record.audio_hash = Fingerprint::of(bytes);
        if let Some((old, note)) = &old
            && old.audio_hash == record.audio_hash
        {
            let origin =
                if old.audio == record.audio { RowOrigin::Unchanged } else { RowOrigin::Touched };
            return Ok(AudioCheck::Done(reuse(record, old, note, origin)));
        }
        if let Some(recovered) = recover(&self.context, record) {
            return Ok(AudioCheck::Done(recovered));
        }
        let extension = row.audio.extension().and_then(|extension| extension.to_str());
        let sound = self.decoder.decode(bytes, extension);
        Ok(match sound.map_err(|error| audio_fault(&error)) {
            Ok(sound) => check_length(&mut self.mel, &self.context, record, sound),
            Err(fault) => AudioCheck::Done(rejected(record, fault)),
        })
    }

    /// The row in the current cache, if it has the same text and is undamaged.
    fn find_old(&mut self, row: &Utterance, source: &Fingerprint) -> Option<(Record, String)> {
        let context = self.context.clone();
        let old = context.old.as_ref()?;
        let found = old.find(&row.id, source, &mut self.old_row)?;
        let cache = &old.cache;
        let record = &found.record;
        let has_text = cache.text(record, &mut self.old_text).is_some();
        let whole = match record.state() {
            RowState::Rejected => true,
            RowState::Usable => has_text && has_features(&context, cache, record),
        };
        // Features that were never cached are missing, not damaged.
        if !whole && (record.mel_segment != 0 || !has_text) {
            context.damaged.fetch_add(1, Ordering::Relaxed);
        }
        whole.then(|| (*record, found.note.to_string()))
    }

    fn read_texts(
        &mut self,
        rows: &[Utterance],
        checks: &[AudioCheck],
        name: &mut dyn FnMut(&Utterance),
    ) -> Result<Vec<Result<ProcessedText, Fault>>, StageError> {
        let waiting =
            rows.iter().zip(checks).filter(|(_, check)| matches!(check, AudioCheck::NeedsText(..)));
        let mut readings = Vec::new();
        let mut requests = Vec::new();
        for (row, _) in waiting {
            match row.language.as_deref().map(str::parse::<Language>).transpose() {
                Ok(language) => match self.given_phonemes(row) {
                    Some(phonemes) => {
                        let read = self.context.front_end.read_given(&row.text, language, phonemes);
                        readings.push(Some(read.map_err(|error| text_fault(&error))));
                    }
                    None => {
                        requests.push((row, readings.len(), (row.text.as_str(), language)));
                        readings.push(None);
                    }
                },
                Err(error) => readings.push(Some(Err(text_fault(&error)))),
            }
        }
        // One by one where that costs nothing, so that each row has a name while it is read.
        let at_once =
            if self.context.front_end.reads_in_batches() { requests.len().max(1) } else { 1 };
        for some in requests.chunks(at_once) {
            some.first().iter().for_each(|(row, ..)| name(row));
            let texts: Vec<_> = some.iter().map(|(.., text)| *text).collect();
            let read =
                self.memo.read_many(&self.context.front_end, &texts).map_err(StageError::stop)?;
            for ((_, place, _), read) in some.iter().zip(read) {
                readings[*place] = Some(read.map_err(|error| text_fault(&error)));
            }
        }
        Ok(readings.into_iter().flatten().collect())
    }
}

fn has_features(context: &PrepareContext, cache: &Cache, record: &Record) -> bool {
    match (context.features, context.change_check) {
        (Features::OnTheFly, _) => true,
        (Features::Cached, ChangeCheck::Stamps) => cache.has_mel(record),
        (Features::Cached, ChangeCheck::Contents) => cache.mel(record).is_some(),
    }
}

impl ProcessRows {
    /// The phonemes of a row's column, unless characters were asked for.
    fn given_phonemes<'r>(&self, row: &'r Utterance) -> Option<&'r str> {
        row.phonemes.as_deref().filter(|_| self.context.front_end.uses_given_phonemes())
    }
}

impl Stage for ProcessRows {
    type In = RowChunk;
    type Out = ProcessedRows;

    fn name(&self) -> &'static str {
        "process"
    }

    fn step(
        &mut self,
        job: RowChunk,
        out: &mut dyn Emitter<ProcessedRows>,
    ) -> Result<(), StageError> {
        let name =
            &mut |row: &Utterance| out.item(&format_args!("row {} (line {})", row.id, row.line));
        let processed = self.process_named(job.0, name)?;
        out.push(processed)
    }
}

/// Identifies a row by everything but its recording. A row that moves to another line is the same.
fn source_of(row: &Utterance) -> Fingerprint {
    let split = [u8::from(row.split == Split::Eval)];
    let or_none = |column: &Option<String>| column.as_deref().unwrap_or_default().to_string();
    Fingerprint::of_parts(&[
        row.id.as_bytes(),
        row.text.as_bytes(),
        or_none(&row.speaker).as_bytes(),
        or_none(&row.language).as_bytes(),
        or_none(&row.phonemes).as_bytes(),
        &split,
    ])
}

fn reuse(new: Record, old: &Record, note: &str, origin: RowOrigin) -> Outcome {
    let record = Record { audio: new.audio, line: new.line, manifest: new.manifest, ..*old };
    let content = match (old.state(), serde_json::from_str(note)) {
        (RowState::Rejected, Ok(fault)) => Content::Unusable(fault),
        _ => Content::Cached,
    };
    Outcome { record, origin, content }
}

fn recover(context: &PrepareContext, mut record: Record) -> Option<Outcome> {
    let text = context.leftovers.text.get(&record.key())?;
    if context.features == Features::Cached {
        let mel = context.leftovers.mel.get(&record.key())?;
        (record.mel_segment, record.mel_offset) = (mel.segment, mel.offset);
    }
    (record.text_segment, record.text_offset) = (text.place.segment, text.place.offset);
    (record.frames, record.symbols) = (text.frames, text.symbols);
    let content = Content::Recovered(text.language.clone());
    Some(Outcome { record, origin: RowOrigin::Recovered, content })
}

fn check_length(
    mel: &mut WorkerMel,
    context: &PrepareContext,
    mut record: Record,
    sound: Sound<'_>,
) -> AudioCheck {
    let frames = context.settings.mel.frames(sound.len());
    let limit = context.settings.max_mel_frames;
    // Also of a row that is rejected: the summary says which limit would keep it.
    record.frames = u32::try_from(frames.0).unwrap_or(u32::MAX);
    if frames.0 > limit {
        let rate = context.settings.mel.rate;
        let longest = rate.seconds(Samples(limit * context.settings.mel.hop.0));
        let fault = Fault {
            reason: RejectReason::AudioTooLong,
            message: format!(
                "lasts {} or {} mel frames, the limit is {limit}",
                rate.seconds(sound.len()),
                frames.0
            ),
            fix: format!("cut it below {longest}, or raise `--max-mel-frames`"),
            symbols: None,
        };
        return AudioCheck::Done(rejected(record, fault));
    }
    let features = (context.features == Features::Cached).then(|| {
        let mut out = vec![0.0; frames.0 * context.settings.mel.bands];
        mel.extract_into(sound, &mut out).map(|_| out)
    });
    match features.transpose() {
        Ok(features) => AudioCheck::NeedsText(record, features),
        Err(error) => AudioCheck::Done(rejected(record, fault(RejectReason::BrokenAudio, &error))),
    }
}

fn processed(record: Record, content: Content) -> Outcome {
    Outcome { record, origin: RowOrigin::Processed, content }
}

fn rejected(record: Record, fault: Fault) -> Outcome {
    processed(Record { state: 1, ..record }, Content::Unusable(fault))
}

fn audio_fault(error: &AudioError) -> Fault {
    let reason = match error {
        AudioError::TooLong { .. } | AudioError::Endless { .. } => RejectReason::AudioTooLong,
        AudioError::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            RejectReason::MissingAudio
        }
        _ => RejectReason::BrokenAudio,
    };
    fault(reason, error)
}

fn text_fault(error: &TextError) -> Fault {
    let reason = match error {
        TextError::TooLong { .. } => RejectReason::TextTooLong,
        TextError::UnknownSymbol { .. } | TextError::UnknownPhoneme { .. } => {
            RejectReason::UnknownSymbol
        }
        TextError::Empty | TextError::NothingToSay { .. } => RejectReason::EmptyText,
        _ => RejectReason::UnknownLanguage,
    };
    let symbols = match error {
        TextError::TooLong { symbols, .. } => u32::try_from(*symbols).ok(),
        _ => None,
    };
    Fault { symbols, ..fault(reason, error) }
}

fn fault<E: std::error::Error + Hint>(reason: RejectReason, error: &E) -> Fault {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    Fault {
        reason,
        message: format!("{error}{cause}"),
        fix: error.hint().unwrap_or_else(|| "repair or remove the row".into()),
        symbols: None,
    }
}

/// Opens the corpus directory once, for a million stat calls relative to it.
pub fn open_root(root: &Path) -> Result<File, tandem_data::DataError> {
    File::open(root)
        .map_err(|source| tandem_data::DataError::Read { path: root.to_path_buf(), source })
}
