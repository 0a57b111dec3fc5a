//! The first stage: a planned batch gets its text, and its recordings are read and decoded.
//!
//! In: [`Planned`]. Out: [`Loaded`]: symbols and lengths filled in, and the decoded sound;
//! where features are cached, or the worker has a mel kernel, the mel frames are filled in instead. A
//! row that cannot be loaded is skipped, counted and named; the batch continues without it. Next:
//! [`crate::feed::mel`].

use crate::feed::Rows;
use crate::feed::recording::{OnFile, RecordingReader, in_one_line};
use crate::feed::reference::References;
use crate::feed::row_failures::RowFailures;
use crate::feed::schedule::Planned;
use crate::feed::skip_list::{Role, SkipList};
use crate::feed::worker_mel::WorkerMel;
use crate::prepare::Prepared;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tandem_audio::Sound;
use tandem_data::batch::{HostBatch, Position, RowInfo};
use tandem_data::cache::EntryBuffer;
use tandem_pipeline::{Emitter, Payload, Pool, Pooled, Stage, StageError};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Skipped, Warning};
use tandem_units::{Bytes, Seed, Ticket};

/// A batch whose mel frames may still be missing.
pub struct Loaded {
    pub ticket: Ticket,
    /// The start position that makes this batch the first one.
    pub position: Position,
    pub batch: Pooled<HostBatch>,
    /// The sound of each row whose mel frames are missing.
    pub sounds: Vec<Option<Clip>>,
    /// A reference segment of each row's speaker.
    pub references: References,
}

/// Decoded sound, input of the mel kernel.
#[derive(Debug)]
pub enum Clip {
    /// Full scale is 32768.
    I16(Vec<i16>),
    /// Full scale is 1.0.
    F32(Vec<f32>),
}

impl From<Sound<'_>> for Clip {
    fn from(sound: Sound<'_>) -> Clip {
        match sound {
            Sound::I16(samples) => Clip::I16(samples.to_vec()),
            Sound::F32(samples) => Clip::F32(samples.to_vec()),
        }
    }
}

impl Clip {
    pub fn as_sound(&self) -> Sound<'_> {
        match self {
            Clip::I16(samples) => Sound::I16(samples),
            Clip::F32(samples) => Sound::F32(samples),
        }
    }

    pub(crate) fn size(&self) -> Bytes {
        match self {
            Clip::I16(samples) => Bytes::of_slice(samples),
            Clip::F32(samples) => Bytes::of_slice(samples),
        }
    }
}

impl Payload for Loaded {
    fn size(&self) -> Bytes {
        let sounds = self.sounds.iter().flatten().map(Clip::size).sum::<Bytes>();
        self.batch.size() + sounds + self.references.size()
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket)
    }
}

/// The stage name of a reference segment that could not be read.
pub const REFERENCE: &str = "reference";
/// Why a row of the skip list is skipped.
const LISTED: &str = "it is in the list of rows to skip";

/// The utterance that serves as reference, and its first frame.
struct Choice {
    row: u32,
    at: usize,
}

/// Reads and decodes. One per worker: it owns decoder and buffers.
pub struct Load {
    prepared: Arc<Prepared>,
    rows: Arc<Rows>,
    pool: Pool<HostBatch>,
    recorder: Recorder,
    recordings: RecordingReader,
    mel: Option<WorkerMel>,
    text: EntryBuffer,
    seed: Seed,
    reference_frames: usize,
    failures: RowFailures,
    skip_list: SkipList,
}

impl Load {
    pub fn new(
        prepared: Arc<Prepared>,
        rows: Arc<Rows>,
        pool: Pool<HostBatch>,
        recorder: Recorder,
    ) -> Load {
        let recordings = RecordingReader::new(prepared.clone());
        let (seed, reference_frames) = (Seed(0), 0);
        let (failures, skip_list) = (RowFailures::default(), SkipList::default());
        Load {
            prepared,
            rows,
            pool,
            recorder,
            recordings,
            mel: None,
            text: EntryBuffer::default(),
            seed,
            reference_frames,
            failures,
            skip_list,
        }
    }

    /// Counts failed rows in `failures` and skips the rows of `skip_list`.
    pub fn with_failures(self, failures: RowFailures, skip_list: SkipList) -> Load {
        Load { failures, skip_list, ..self }
    }

    /// Adds a reference segment of `frames` frames to each row; 0: none.
    pub fn with_references(self, seed: Seed, frames: usize) -> Load {
        Load { seed, reference_frames: frames, ..self }
    }

    /// Computes mel frames right after decoding, while the sound is in this core's cache.
    pub fn with_mel(self, kernel: WorkerMel) -> Load {
        Load { mel: Some(kernel), ..self }
    }

    /// How long mel frames took since the last call.
    pub(crate) fn take_mel_time(&mut self) -> Duration {
        self.mel.as_mut().map_or(Duration::ZERO, WorkerMel::take_time)
    }

    /// Adds a segment of another utterance of the same speaker. A tenth of the rows, and speakers with
    /// one utterance, get no reference: the voice must also speak without one.
    fn load_reference(&mut self, planned: u32, loaded: &mut Loaded, on_file: OnFile<'_>) {
        let Some(choice) = self.choose(planned, loaded.ticket) else {
            return loaded.references.push_none();
        };
        if self.is_listed(loaded.ticket, planned, Role::Reference) {
            self.report(loaded.ticket, planned, REFERENCE, LISTED.into());
            return loaded.references.push_none();
        }
        let prepared = self.prepared.clone();
        let number = self.rows.cache_row[choice.row as usize] as usize;
        let Some(row) = prepared.cache.row(number) else {
            return loaded.references.push_none();
        };
        if let Some(mel) = prepared.cache.mel(row.record) {
            return loaded.references.push_frames(&mel, choice.at);
        }
        let references = &mut loaded.references;
        let read = self.recordings.read(row.audio, row.record, on_file);
        let placed = read.and_then(|sound| {
            match &mut self.mel {
                Some(mel) => {
                    let frames = mel.extract(sound).map_err(|error| in_one_line(&error))?;
                    references.push_frames(&frames, choice.at);
                }
                None => references.push_clip(sound.into(), choice.at),
            }
            Ok(())
        });
        // The row is trained without a reference; the run record lists it.
        if let Err(why) = placed {
            self.report(loaded.ticket, planned, REFERENCE, why);
            loaded.references.push_none();
        }
    }

    fn choose(&self, planned: u32, ticket: Ticket) -> Option<Choice> {
        let speaker = self.rows.speakers[planned as usize];
        let others = &self.rows.by_speaker[&speaker];
        let draw = self.seed.for_ticket(ticket).derive(u64::from(planned));
        let (which, start) = (draw.derive(1).0, draw.derive(2).0);
        if self.reference_frames == 0 || others.len() < 2 || draw.derive(3).0.is_multiple_of(10) {
            return None;
        }
        let own = others.binary_search(&planned).ok()?;
        let other = (own + 1 + (which % (others.len() as u64 - 1)) as usize) % others.len();
        let row = others[other];
        let spare = (self.rows.frames[row as usize] as usize).saturating_sub(self.reference_frames);
        Some(Choice { row, at: (start % (spare as u64 + 1)) as usize })
    }

    fn is_listed(&self, ticket: Ticket, planned: u32, role: Role) -> bool {
        let number = self.rows.cache_row[planned as usize] as usize;
        let row = self.prepared.cache.row(number);
        row.is_some_and(|row| self.skip_list.contains(ticket.seq, row.id, role))
    }

    /// Adds one row to the batch, or returns why it cannot be used.
    fn load_row(
        &mut self,
        planned: u32,
        loaded: &mut Loaded,
        on_file: OnFile<'_>,
    ) -> Result<(), String> {
        if self.is_listed(loaded.ticket, planned, Role::Utterance) {
            return Err(LISTED.into());
        }
        let prepared = self.prepared.clone();
        let number = self.rows.cache_row[planned as usize] as usize;
        let row = prepared.cache.row(number).ok_or("its part of the cache is damaged")?;
        let text = prepared.cache.text(row.record, &mut self.text);
        let text = text.ok_or("its text in the cache is damaged")?;
        let info = RowInfo {
            row: planned,
            frames: row.record.frames as usize,
            symbols: text.symbol_count(),
            speaker: u32::from(row.record.speaker),
            language: u32::from(row.record.language),
        };
        let target = loaded.batch.push_row(info);
        for (place, symbol) in target.symbols.iter_mut().zip(text.symbols()) {
            *place = i32::from(symbol);
        }
        if row.record.mel_segment != 0 {
            if prepared.cache.copy_mel(row.record, target.mel) {
                loaded.sounds.push(None);
                return Ok(());
            }
            self.warn_of_damage(row.id);
        }
        let read = self.recordings.read(row.audio, row.record, on_file);
        let placed = read.and_then(|sound| match &mut self.mel {
            Some(mel) => {
                let computed = mel.extract_into(sound, target.mel);
                computed.map(|_| None).map_err(|error| in_one_line(&error))
            }
            None => Ok(Some(sound.into())),
        });
        loaded.sounds.push(placed.inspect_err(|_| loaded.batch.pop_row())?);
        Ok(())
    }

    /// Loads a planned batch.
    pub(crate) fn load_batch(
        &mut self,
        planned: Planned,
        on_file: OnFile<'_>,
    ) -> Result<Loaded, StageError> {
        let Planned { ticket, position, shape, rows } = planned;
        let mut batch = self.pool.take();
        batch.reset(shape);
        let sounds = Vec::with_capacity(rows.len());
        let bands = self.prepared.settings.mel.bands;
        let references = References::new(self.reference_frames, bands);
        let mut loaded = Loaded { ticket, position, batch, sounds, references };
        for row in rows {
            match self.load_row(row, &mut loaded, on_file) {
                Ok(()) => self.load_reference(row, &mut loaded, on_file),
                Err(why) => self.report(ticket, row, "load", why),
            }
        }
        match loaded.sounds.is_empty() {
            true => Err(StageError::skip("none of its rows could be loaded")),
            false => Ok(loaded),
        }
    }

    /// The mel frames of one row, from the cache or from its recording.
    pub fn mel_of(&mut self, planned: u32, kernel: &mut WorkerMel) -> Result<Vec<f32>, String> {
        let prepared = self.prepared.clone();
        let number = self.rows.cache_row[planned as usize] as usize;
        let row = prepared.cache.row(number).ok_or("its part of the cache is damaged")?;
        if let Some(mel) = prepared.cache.mel(row.record) {
            return Ok(mel);
        }
        let sound = self.recordings.read(row.audio, row.record, &mut |_| {})?;
        kernel.extract(sound).map_err(|error| in_one_line(&error))
    }

    /// The sound of one row, from its recording also where mel frames are cached. A row that cannot be read is reported
    /// and counted.
    pub fn clip_of(
        &mut self,
        ticket: Ticket,
        planned: u32,
        on_file: &mut dyn FnMut(&Path),
    ) -> Option<Clip> {
        let read = match self.is_listed(ticket, planned, Role::Utterance) {
            true => Err(LISTED.into()),
            false => self.read_row(planned, on_file),
        };
        read.map_err(|why| self.report(ticket, planned, "load", why)).ok()
    }

    fn read_row(&mut self, planned: u32, on_file: OnFile<'_>) -> Result<Clip, String> {
        let prepared = self.prepared.clone();
        let number = self.rows.cache_row[planned as usize] as usize;
        let row = prepared.cache.row(number).ok_or("its part of the cache is damaged")?;
        self.recordings.read(row.audio, row.record, on_file).map(Clip::from)
    }

    /// The frames are still correct, but every epoch computes them again.
    fn warn_of_damage(&self, id: &str) {
        let text = format!(
            "the mel frames of `{id}` in the cache are damaged and are computed from its recording; \
             `tandem prepare --verify` repairs them"
        );
        self.recorder.send(Warning { code: "cache_damage".into(), text });
    }

    fn report(&self, ticket: Ticket, planned: u32, stage: &'static str, why: String) {
        let number = self.rows.cache_row[planned as usize] as usize;
        let id = self.prepared.cache.row(number).map(|row| row.id.to_string());
        if stage != REFERENCE && why != LISTED {
            let name = id.as_deref().unwrap_or("a row of a damaged cache");
            self.failures.add(ticket.epoch, planned, name, &why);
        }
        self.recorder.send(Skipped { ticket: Some(ticket), id, stage: stage.into(), why });
    }
}

impl Stage for Load {
    type In = Planned;
    type Out = Loaded;

    fn name(&self) -> &'static str {
        "load"
    }

    fn step(&mut self, planned: Planned, out: &mut dyn Emitter<Loaded>) -> Result<(), StageError> {
        // Tells the watchdog which file is being read.
        let loaded = self.load_batch(planned, &mut |path| out.item(&path.display()))?;
        out.push(loaded)
    }
}
