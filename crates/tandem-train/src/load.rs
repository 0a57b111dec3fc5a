//! The first stage: a planned batch gets its text, and its recordings are read and decoded.
//!
//! In: [`Planned`]. Out: [`Loaded`]: symbols and lengths in place, sound beside them; where
//! features are cached the mel frames are in place already. A row that cannot be loaded is left
//! out, counted and named; the batch goes on without it. Next: [`crate::preprocess`].

use crate::feed::Rows;
use crate::prepare::Prepared;
use crate::tickets::Planned;
use std::sync::Arc;
use tandem_data::audio::{Decoder, FileReader, Sound};
use tandem_data::batch::{HostBatch, Position, RowInfo};
use tandem_data::cache::{Fingerprint, Record, Stamp};
use tandem_pipeline::{Outlet, Payload, Pool, Pooled, Stage, Trouble};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Skipped, Warning};
use tandem_units::{Bytes, Ticket};

/// A batch whose mel frames may still be missing.
pub struct Loaded {
    /// Its place in the run.
    pub ticket: Ticket,
    /// Where to begin to get this batch first.
    pub position: Position,
    /// Its arrays.
    pub batch: Pooled<HostBatch>,
    /// The sound of each row whose mel frames are missing.
    pub sounds: Vec<Option<Clip>>,
}

/// Decoded sound, on its way to the mel kernel.
#[derive(Debug)]
pub enum Clip {
    /// Full scale is 32768.
    I16(Vec<i16>),
    /// Full scale is 1.0.
    F32(Vec<f32>),
}

impl Clip {
    /// The sound itself.
    pub fn as_sound(&self) -> Sound<'_> {
        match self {
            Clip::I16(samples) => Sound::I16(samples),
            Clip::F32(samples) => Sound::F32(samples),
        }
    }

    fn size(&self) -> Bytes {
        match self {
            Clip::I16(samples) => Bytes::of_slice(samples),
            Clip::F32(samples) => Bytes::of_slice(samples),
        }
    }
}

impl Payload for Loaded {
    fn size(&self) -> Bytes {
        self.batch.size() + self.sounds.iter().flatten().map(Clip::size).sum::<Bytes>()
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket)
    }
}

/// Reads and decodes. One per worker: it owns decoder and buffers.
pub struct Load {
    prepared: Arc<Prepared>,
    rows: Arc<Rows>,
    pool: Pool<HostBatch>,
    recorder: Recorder,
    file: FileReader,
    decoder: Decoder,
}

impl Load {
    /// A worker's own loader.
    pub fn new(
        prepared: Arc<Prepared>,
        rows: Arc<Rows>,
        pool: Pool<HostBatch>,
        recorder: Recorder,
    ) -> Load {
        let decoder = Decoder::new(prepared.settings.mel.rate, prepared.settings.audio);
        Load { prepared, rows, pool, recorder, file: FileReader::default(), decoder }
    }

    /// Enters one row into the batch, or says why not.
    fn load_row(&mut self, planned: u32, loaded: &mut Loaded) -> Result<(), String> {
        let prepared = self.prepared.clone();
        let number = self.rows.cache_row[planned as usize] as usize;
        let row = prepared.cache.row(number).ok_or("its part of the cache is damaged")?;
        let text = prepared.cache.text(row.record).ok_or("its text in the cache is damaged")?;
        let mel = prepared.cache.mel(number, row.record);
        let clip = match mel {
            Some(_) => None,
            None => {
                if row.record.mel_segment != 0 {
                    self.warn_of_damage(row.id);
                }
                Some(self.read_clip(row.audio, row.record)?)
            }
        };
        let info = RowInfo {
            row: planned,
            frames: row.record.frames as usize,
            symbols: text.symbol_count(),
            speaker: u32::from(row.record.speaker),
            language: u32::from(row.record.language),
        };
        let place = loaded.batch.push_row(info);
        for (place, symbol) in place.symbols.iter_mut().zip(text.symbols()) {
            *place = i32::from(symbol);
        }
        if let Some(mel) = mel {
            place.mel.copy_from_slice(mel);
        }
        loaded.sounds.push(clip);
        Ok(())
    }

    fn read_clip(&mut self, audio: &str, record: &Record) -> Result<Clip, String> {
        let settings = &self.prepared.settings;
        let path = self.prepared.root.join(audio);
        let stamp = Stamp::of(&path).map_err(|error| in_one_line(&error))?;
        let read = self.file.read(&path, &settings.audio);
        let bytes = read.map_err(|error| in_one_line(&error))?;
        // A new stamp over the same bytes is no change; other bytes do not say the prepared text.
        if stamp != record.audio && Fingerprint::of(bytes) != record.audio_hash {
            return Err("the recording changed since it was prepared".into());
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        let sound = self.decoder.decode(bytes, extension).map_err(|error| in_one_line(&error))?;
        if settings.mel.frames(sound.len()).0 != record.frames as usize {
            return Err("the recording has another length than when it was prepared".into());
        }
        Ok(match sound {
            Sound::I16(samples) => Clip::I16(samples.to_vec()),
            Sound::F32(samples) => Clip::F32(samples.to_vec()),
        })
    }

    /// The frames are right all the same, but every epoch pays for them.
    fn warn_of_damage(&self, id: &str) {
        let text = format!(
            "the mel frames of `{id}` in the cache are damaged and are made from its recording; \
             `tandem prepare --verify` mends them"
        );
        self.recorder.send(Warning { code: "cache_damage".into(), text });
    }

    fn report(&self, ticket: Ticket, planned: u32, why: String) {
        let number = self.rows.cache_row[planned as usize] as usize;
        let id = self.prepared.cache.row(number).map(|row| row.id.to_string());
        self.recorder.send(Skipped { ticket: Some(ticket), id, stage: "load".into(), why });
    }
}

impl Stage for Load {
    type In = Planned;
    type Out = Loaded;

    fn name(&self) -> &'static str {
        "load"
    }

    fn step(&mut self, planned: Planned, out: &mut dyn Outlet<Loaded>) -> Result<(), Trouble> {
        let Planned { ticket, position, shape, rows } = planned;
        let mut batch = self.pool.take();
        batch.reset(shape);
        let sounds = Vec::with_capacity(rows.len());
        let mut loaded = Loaded { ticket, position, batch, sounds };
        for row in rows {
            if let Err(why) = self.load_row(row, &mut loaded) {
                self.report(ticket, row, why);
            }
        }
        if loaded.sounds.is_empty() {
            return Err(Trouble::skip("not one of its rows could be loaded"));
        }
        out.push(loaded)
    }
}

/// An error and its cause, as a run record keeps it.
fn in_one_line(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}
