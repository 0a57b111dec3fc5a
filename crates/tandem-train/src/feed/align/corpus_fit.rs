//! Texts of a prepared corpus, aligned to its recordings by a trained voice.
//!
//! In: a voice and the rows of a split. Out: [`TextFit`]. Each text is aligned as in training, with a reference of the same
//! speaker. One row at a time. Used by the crate `tandem-eval`.

use crate::TrainError;
use crate::feed::Rows;
use crate::feed::align::priors;
use crate::feed::align::text_fit::{TextFit, fit_text};
use crate::feed::languages::language_numbers;
use crate::feed::load::Load;
use crate::feed::worker_mel::WorkerMel;
use crate::prepare::Prepared;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_audio::mel::MelKernel;
use tandem_data::batch::HostBatch;
use tandem_data::cache::EntryBuffer;
use tandem_data::corpus::Split;
use tandem_device::backend::guarded;
use tandem_model::Device;
use tandem_model::alignment::Aligner;
use tandem_model::metrics::HealthLimits;
use tandem_model::train_batch::AlignedBatch;
use tandem_model::trained_voice::TrainedVoice;
use tandem_pipeline::Pool;
use tandem_telemetry::Recorder;
use tandem_units::Seed;

/// Length of the reference segment, as in training.
const REFERENCE_FRAMES: usize = 128;

/// The text of a row, as the cache has it.
#[derive(Clone, Debug)]
pub struct CachedText {
    pub symbols: Vec<i32>,
    /// Language number of the corpus.
    pub language: usize,
}

impl CachedText {
    /// None where the cache is damaged.
    pub fn of(prepared: &Prepared, rows: &Rows, row: u32) -> Option<CachedText> {
        let record = prepared.cache.record(rows.cache_row[row as usize] as usize)?;
        let mut buffer = EntryBuffer::default();
        let text = prepared.cache.text(record, &mut buffer)?;
        let symbols = text.symbols().map(i32::from).collect();
        Some(CachedText { symbols, language: usize::from(record.language) })
    }
}

/// Aligns rows one after the other.
pub struct CorpusFit<'a> {
    pub trained: &'a TrainedVoice,
    pub device: &'a Device,
    pub prepared: &'a Arc<Prepared>,
    pub rows: Arc<Rows>,
    /// The voice's numbers of the corpus's languages.
    languages: Vec<i32>,
    load: Load,
    kernel: WorkerMel,
    /// The two longest rows of each speaker.
    longest: HashMap<u16, Vec<u32>>,
    /// Normalised reference frames, by row.
    references: HashMap<u32, Vec<f32>>,
    aligner: Aligner,
    limits: HealthLimits,
}

impl<'a> CorpusFit<'a> {
    pub fn new(
        trained: &'a TrainedVoice,
        device: &'a Device,
        prepared: &'a Arc<Prepared>,
        split: Split,
    ) -> Result<CorpusFit<'a>, TrainError> {
        let rows = Arc::new(Rows::of(prepared, split));
        if rows.cache_row.is_empty() {
            return Err(TrainError::NoRows { corpus: prepared.root.clone() });
        }
        let mel = prepared.settings.mel.clone();
        let kernel = WorkerMel::new(mel.clone(), MelKernel::best_for(&mel));
        let pool = Pool::new(1, move || HostBatch::new(&mel));
        Ok(CorpusFit {
            trained,
            device,
            prepared,
            languages: language_numbers(prepared, &trained.document.languages)?,
            load: Load::new(prepared.clone(), rows.clone(), pool, Recorder::off()),
            rows,
            kernel,
            longest: HashMap::new(),
            references: HashMap::new(),
            aligner: Aligner::default(),
            limits: HealthLimits::default(),
        })
    }

    pub fn bands(&self) -> usize {
        self.trained.document.config.bands
    }

    /// The voice's number of a language of the corpus.
    pub fn language(&self, of_corpus: usize) -> i32 {
        self.languages[of_corpus]
    }

    /// The normalised frames of a recording, or why it cannot be used.
    pub fn frames_of(&mut self, row: u32) -> Result<Vec<f32>, String> {
        let mel = self.load.mel_of(row, &mut self.kernel)?;
        Ok(self.trained.document.scale.normalised(&mel))
    }

    /// The start of the speaker's longest other utterance, normalised; empty where there is none.
    pub fn reference_for(&mut self, row: u32) -> Vec<f32> {
        let speaker = self.rows.speakers[row as usize];
        let longest =
            self.longest.entry(speaker).or_insert_with(|| two_longest(&self.rows, speaker));
        let Some(&other) = longest.iter().find(|&&other| other != row) else { return Vec::new() };
        if let Some(known) = self.references.get(&other) {
            return known.clone();
        }
        // An unreadable utterance is reported when it is aligned itself.
        let mut frames = self.frames_of(other).unwrap_or_default();
        frames.truncate(REFERENCE_FRAMES * self.bands());
        self.references.insert(other, frames.clone());
        frames
    }

    /// Aligns every text to the same frames, by what the voice predicts for it.
    pub fn fit(
        &mut self,
        texts: &[&CachedText],
        frames: &[f32],
        reference: &[f32],
    ) -> Result<Vec<Option<TextFit>>, TrainError> {
        let bands = self.bands();
        let languages = texts.iter().map(|text| self.languages[text.language]).collect();
        let batch = encoder_batch(texts, languages, reference, bands);
        let encoder = &self.trained.voice.encoder;
        let priors = guarded("encoding texts", || priors(encoder, &batch, self.device))?;
        let fits = texts.iter().zip(priors.chunks_exact(batch.symbols * bands));
        Ok(fits
            .map(|(text, prior)| self.fit_prior(frames, &prior[..text.symbols.len() * bands]))
            .collect())
    }

    /// Aligns a text whose symbols have these mean frames.
    pub fn fit_prior(&mut self, frames: &[f32], prior: &[f32]) -> Option<TextFit> {
        let bands = self.bands();
        fit_text(&mut self.aligner, frames, prior, bands, &self.limits)
    }
}

fn two_longest(rows: &Rows, speaker: u16) -> Vec<u32> {
    let mut same = rows.by_speaker.get(&speaker).cloned().unwrap_or_default();
    same.sort_by_key(|&row| std::cmp::Reverse(rows.frames[row as usize]));
    same.truncate(2);
    same
}

/// Input of the text encoder: texts, and one reference for all of them.
fn encoder_batch(
    texts: &[&CachedText],
    languages: Vec<i32>,
    reference: &[f32],
    bands: usize,
) -> AlignedBatch {
    let rows = texts.len();
    let symbols = texts.iter().map(|text| text.symbols.len()).max().unwrap_or_default();
    let mut symbol_ids = Vec::with_capacity(rows * symbols);
    for (row, text) in texts.iter().enumerate() {
        symbol_ids.extend_from_slice(&text.symbols);
        symbol_ids.resize((row + 1) * symbols, 0);
    }
    let mut padded = reference.to_vec();
    padded.resize(REFERENCE_FRAMES * bands, 0.0);
    AlignedBatch {
        rows,
        symbols,
        bands,
        patch: 1,
        symbol_counts: texts.iter().map(|text| text.symbols.len()).collect(),
        symbol_ids,
        languages,
        reference_frames: REFERENCE_FRAMES,
        reference: padded.repeat(rows),
        reference_counts: vec![reference.len() / bands; rows],
        seed: Seed(0),
        ..AlignedBatch::default()
    }
}
