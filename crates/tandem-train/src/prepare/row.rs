//! One row of a corpus: kept as it is in the cache, or made anew.
//!
//! In: a few [`Utterance`]s. Out: for each, what the cache shall hold of it. Reads recordings,
//! writes nothing. Next: [`mod@crate::prepare`], which runs this on all workers.

use crate::data_settings::DataSettings;
use crate::feed::worker_mel::WorkerMel;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem_data::audio::mel::MelKernel;
use tandem_data::audio::{AudioError, Decoder, FileReader, Sound};
use tandem_data::cache::{Cache, Fingerprint, Leftovers, Record, Row, RowState, Stamp};
use tandem_data::corpus::{RejectReason, Split, Utterance};
use tandem_data::text::{FrontEnd, Language, Memo, ProcessedText, TextError};
use tandem_pipeline::{Outlet, Payload, Stage, Trouble};
use tandem_units::{Bytes, Hint, Samples};

/// Texts a worker remembers: several voices often speak the same sentences. Some megabytes.
const TEXTS_HELD: usize = 4096;

/// Whether a recording whose stamp did not change is believed to be the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Yes: size, time and inode decide.
    #[default]
    Stamps,
    /// No: its bytes are read and hashed.
    Bytes,
}

/// Whether mel frames are kept in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Features {
    /// Made anew in every epoch.
    #[default]
    OnTheFly,
    /// WrittenCheckpoints, so that later epochs only copy.
    Cached,
}

/// What all workers share.
pub struct Surroundings {
    /// The corpus directory.
    pub root: File,
    /// Its path, for reading recordings.
    pub root_path: std::path::PathBuf,
    /// How text becomes symbols.
    pub front_end: Arc<FrontEnd>,
    /// How everything else is done.
    pub settings: DataSettings,
    /// What the cache holds now.
    pub old: Option<OldRows>,
    /// What an unfinished build left behind.
    pub leftovers: Leftovers,
    /// Whether unchanged stamps are believed.
    pub trust: Trust,
    /// Whether mel frames are kept.
    pub features: Features,
    /// Rows of the current cache that were found damaged.
    pub damaged: AtomicUsize,
}

/// The current cache, with its rows by id.
pub struct OldRows {
    cache: Arc<Cache>,
    // By the id's hash: a million ids as strings would weigh more than the index itself.
    rows: HashMap<u64, u32>,
}

impl OldRows {
    /// Makes the list of ids.
    pub fn of(cache: Arc<Cache>) -> OldRows {
        let known =
            (0..cache.len()).filter_map(|number| cache.row(number).map(|row| (number, row)));
        let rows = known.map(|(number, row)| (hash_id(row.id), number as u32)).collect();
        OldRows { cache, rows }
    }

    fn find(&self, id: &str) -> Option<(usize, Row<'_>)> {
        let number = *self.rows.get(&hash_id(id))? as usize;
        self.cache.row(number).filter(|row| row.id == id).map(|row| (number, row))
    }
}

fn hash_id(id: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// A few rows to look at. Several at once, since a phonemiser is started once for all of them.
pub struct Job(pub Vec<Utterance>);

/// The same rows, looked at.
pub struct Examined(pub Vec<(Utterance, Outcome)>);

/// What the cache shall hold of a row, and how that came about.
pub struct Outcome {
    /// Lengths, stamps and, for content that is on disk already, places.
    pub record: Record,
    /// How it came about.
    pub how: How,
    /// What it is.
    pub content: Content,
}

/// How the cache came by a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It holds the row already.
    WrittenCheckpoints,
    /// It holds the row already; only the recording's stamp is new.
    Touched,
    /// An unfinished build wrote it.
    Recovered,
    /// It was made anew.
    Made,
}

/// What is known of a row.
pub enum Content {
    /// What the current cache holds.
    Old,
    /// What an unfinished build left, in this language.
    Left(String),
    /// Something new.
    New(Box<Built>),
    /// Nothing: the row cannot be used.
    Unusable(Fault),
}

/// A row made anew.
pub struct Built {
    /// What it says.
    pub reading: ProcessedText,
    /// What it sounds like, where features are kept.
    pub mel: Option<Vec<f32>>,
}

/// Why a row cannot be used; kept in the cache as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fault {
    /// The kind.
    pub reason: RejectReason,
    /// The fact.
    pub message: String,
    /// The way out.
    pub fix: String,
}

impl Payload for Job {
    fn size(&self) -> Bytes {
        Bytes(self.0.iter().map(|row| (size_of::<Utterance>() + row.text.len()) as u64).sum())
    }
}

impl Payload for Examined {
    fn size(&self) -> Bytes {
        let mel = |outcome: &Outcome| match &outcome.content {
            Content::New(built) => built.mel.as_ref().map_or(0, Vec::len) * 4,
            _ => 0,
        };
        let row = |(row, outcome): &(Utterance, Outcome)| {
            (size_of::<Utterance>() + size_of::<Built>() + row.text.len() * 4 + mel(outcome)) as u64
        };
        Bytes(self.0.iter().map(row).sum())
    }
}

/// Looks at rows. One per worker: it owns decoder, kernel and buffers.
pub struct Examine {
    around: Arc<Surroundings>,
    file: FileReader,
    decoder: Decoder,
    mel: WorkerMel,
    memo: Memo,
}

/// What is known of a row before its text is read.
enum Heard {
    /// Nothing is left to do.
    Settled(Outcome),
    /// The recording is fine; the text is still to be read.
    Sound(Record, Option<Vec<f32>>),
}

impl Examine {
    /// A worker's own examiner.
    pub fn new(around: &Arc<Surroundings>) -> Examine {
        let settings = &around.settings;
        Examine {
            around: around.clone(),
            file: FileReader::default(),
            decoder: Decoder::new(settings.mel.rate, settings.audio),
            mel: WorkerMel::new(settings.mel.clone(), MelKernel::best_for(&settings.mel)),
            memo: Memo::new(TEXTS_HELD),
        }
    }

    /// Looks at a few rows.
    pub fn examine(&mut self, rows: Vec<Utterance>) -> Result<Examined, Trouble> {
        let mut heard = Vec::with_capacity(rows.len());
        for row in &rows {
            heard.push(self.listen(row).map_err(Trouble::stop)?);
        }
        let mut readings = self.read_texts(&rows, &heard)?.into_iter();
        let settle = |(row, heard): (Utterance, Heard)| {
            let outcome = match heard {
                Heard::Settled(outcome) => outcome,
                Heard::Sound(record, mel) => match readings.next() {
                    Some(Ok(reading)) => {
                        made(record, Content::New(Box::new(Built { reading, mel })))
                    }
                    Some(Err(fault)) => rejected(record, fault),
                    None => unreachable!("there is one reading for each row that was heard"),
                },
            };
            (row, outcome)
        };
        Ok(Examined(rows.into_iter().zip(heard).map(settle).collect()))
    }

    fn listen(&mut self, row: &Utterance) -> Result<Heard, tandem_data::DataError> {
        let mut record = Record {
            source: source_of(row),
            line: row.line,
            manifest: row.manifest,
            split: u8::from(row.split == Split::Eval),
            audio: Stamp::at(&self.around.root, &row.audio)?,
            ..Record::default()
        };
        let old = self.find_old(row, &record.source);
        if let Some((old, note)) = &old
            && old.audio == record.audio
            && self.around.trust == Trust::Stamps
        {
            return Ok(Heard::Settled(kept(record, old, note, How::WrittenCheckpoints)));
        }
        let path = self.around.root_path.join(&row.audio);
        let bytes = match self.file.read(&path, &self.around.settings.audio) {
            Ok(bytes) => bytes,
            Err(error) => {
                // A failed read says nothing about the recording: without its stamp, the next
                // start reads it again.
                if matches!(error, AudioError::Read { .. }) {
                    record.audio = Stamp::MISSING;
                }
                return Ok(Heard::Settled(rejected(record, audio_fault(&error))));
            }
        };
        record.audio_hash = Fingerprint::of(bytes);
        if let Some((old, note)) = &old
            && old.audio_hash == record.audio_hash
        {
            let how =
                if old.audio == record.audio { How::WrittenCheckpoints } else { How::Touched };
            return Ok(Heard::Settled(kept(record, old, note, how)));
        }
        if let Some(recovered) = recover(&self.around, record) {
            return Ok(Heard::Settled(recovered));
        }
        let extension = row.audio.extension().and_then(|extension| extension.to_str());
        let sound = self.decoder.decode(bytes, extension);
        Ok(match sound.map_err(|error| audio_fault(&error)) {
            Ok(sound) => hear(&mut self.mel, &self.around, record, sound),
            Err(fault) => Heard::Settled(rejected(record, fault)),
        })
    }

    /// The row in the current cache, if it was made from the same text and is whole.
    fn find_old(&self, row: &Utterance, source: &Fingerprint) -> Option<(Record, String)> {
        let old = self.around.old.as_ref()?;
        let (number, found) = old.find(&row.id)?;
        if found.record.source != *source {
            return None;
        }
        let cache = &old.cache;
        let record = found.record;
        let whole = match record.state() {
            RowState::Rejected => true,
            RowState::Usable => {
                cache.text(record).is_some() && self.has_features(cache, number, record)
            }
        };
        // Features that were never kept are missing, not damaged.
        if !whole && (record.mel_segment != 0 || cache.text(record).is_none()) {
            self.around.damaged.fetch_add(1, Ordering::Relaxed);
        }
        whole.then(|| (*record, found.note.to_string()))
    }

    fn has_features(&self, cache: &Cache, number: usize, record: &Record) -> bool {
        match (self.around.features, self.around.trust) {
            (Features::OnTheFly, _) => true,
            (Features::Cached, Trust::Stamps) => cache.has_mel(record),
            (Features::Cached, Trust::Bytes) => cache.mel(number, record).is_some(),
        }
    }

    fn read_texts(
        &mut self,
        rows: &[Utterance],
        heard: &[Heard],
    ) -> Result<Vec<Result<ProcessedText, Fault>>, Trouble> {
        let waiting = rows.iter().zip(heard).filter(|(_, heard)| matches!(heard, Heard::Sound(..)));
        let mut readings = Vec::new();
        let mut asked = Vec::new();
        for (row, _) in waiting {
            match row.language.as_deref().map(str::parse::<Language>).transpose() {
                Ok(language) => {
                    asked.push((readings.len(), (row.text.as_str(), language)));
                    readings.push(None);
                }
                Err(error) => readings.push(Some(Err(text_fault(&error)))),
            }
        }
        let texts: Vec<_> = asked.iter().map(|(_, text)| *text).collect();
        let read = self.memo.read_many(&self.around.front_end, &texts).map_err(Trouble::stop)?;
        for ((place, _), read) in asked.iter().zip(read) {
            readings[*place] = Some(read.map_err(|error| text_fault(&error)));
        }
        Ok(readings.into_iter().flatten().collect())
    }
}

impl Stage for Examine {
    type In = Job;
    type Out = Examined;

    fn name(&self) -> &'static str {
        "examine"
    }

    fn step(&mut self, job: Job, out: &mut dyn Outlet<Examined>) -> Result<(), Trouble> {
        let examined = self.examine(job.0)?;
        out.push(examined)
    }
}

/// What a row is known by apart from its recording. A row that moves to another line is the same.
fn source_of(row: &Utterance) -> Fingerprint {
    let split = [u8::from(row.split == Split::Eval)];
    let or_none = |column: &Option<String>| column.as_deref().unwrap_or_default().to_string();
    Fingerprint::of_parts(&[
        row.id.as_bytes(),
        row.text.as_bytes(),
        or_none(&row.speaker).as_bytes(),
        or_none(&row.language).as_bytes(),
        &split,
    ])
}

fn kept(new: Record, old: &Record, note: &str, how: How) -> Outcome {
    let record = Record { audio: new.audio, line: new.line, manifest: new.manifest, ..*old };
    let content = match (old.state(), serde_json::from_str(note)) {
        (RowState::Rejected, Ok(fault)) => Content::Unusable(fault),
        _ => Content::Old,
    };
    Outcome { record, how, content }
}

fn recover(around: &Surroundings, mut record: Record) -> Option<Outcome> {
    let text = around.leftovers.text.get(&record.key())?;
    if around.features == Features::Cached {
        let mel = around.leftovers.mel.get(&record.key())?;
        (record.mel_segment, record.mel_offset) = (mel.segment, mel.offset);
    }
    (record.text_segment, record.text_offset) = (text.place.segment, text.place.offset);
    (record.frames, record.symbols) = (text.frames, text.symbols);
    let content = Content::Left(text.language.clone());
    Some(Outcome { record, how: How::Recovered, content })
}

fn hear(mel: &mut WorkerMel, around: &Surroundings, mut record: Record, sound: Sound<'_>) -> Heard {
    let frames = around.settings.mel.frames(sound.len());
    let limit = around.settings.max_mel_frames;
    if frames.0 > limit {
        let rate = around.settings.mel.rate;
        let longest = rate.seconds(Samples(limit * around.settings.mel.hop.0));
        let fault = Fault {
            reason: RejectReason::AudioTooLong,
            message: format!(
                "lasts {} or {} mel frames, the limit is {limit}",
                rate.seconds(sound.len()),
                frames.0
            ),
            fix: format!("cut it below {longest}, or raise `--max-mel-frames`"),
        };
        return Heard::Settled(rejected(record, fault));
    }
    record.frames = frames.0 as u32;
    let features = (around.features == Features::Cached).then(|| {
        let mut out = vec![0.0; frames.0 * around.settings.mel.bands];
        mel.extract_into(sound, &mut out).map(|_| out)
    });
    match features.transpose() {
        Ok(features) => Heard::Sound(record, features),
        Err(error) => Heard::Settled(rejected(record, fault(RejectReason::BrokenAudio, &error))),
    }
}

fn made(record: Record, content: Content) -> Outcome {
    Outcome { record, how: How::Made, content }
}

fn rejected(record: Record, fault: Fault) -> Outcome {
    made(Record { state: 1, ..record }, Content::Unusable(fault))
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
        TextError::UnknownSymbol { .. } | TextError::NumbersUnsupported { .. } => {
            RejectReason::UnknownSymbol
        }
        TextError::Empty | TextError::NothingToSay { .. } => RejectReason::EmptyText,
        _ => RejectReason::UnknownLanguage,
    };
    fault(reason, error)
}

fn fault<E: std::error::Error + Hint>(reason: RejectReason, error: &E) -> Fault {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    Fault {
        reason,
        message: format!("{error}{cause}"),
        fix: error.hint().unwrap_or_else(|| "repair or remove the row".into()),
    }
}

/// The directory of a corpus, opened once for a million short look-ups.
pub fn open_root(root: &Path) -> Result<File, tandem_data::DataError> {
    File::open(root)
        .map_err(|source| tandem_data::DataError::Read { path: root.to_path_buf(), source })
}
